"""Models of how records depend on each other: what they are, and how they are published."""
