"""The local kind: each record is redacted by itself, by a probability for its value."""
