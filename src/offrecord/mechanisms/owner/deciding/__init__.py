"""What decides tables by the menu: clusters, walks level by level, gaps, missing values."""
