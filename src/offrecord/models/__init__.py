"""Models of how records depend on each other: what they are, what they were learned from, how they
are published.
"""
