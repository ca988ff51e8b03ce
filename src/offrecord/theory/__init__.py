"""The mathematics of one secret: the problem, influence, and exact leakage of any redaction."""
