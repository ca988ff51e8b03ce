"""The local kind: each record is redacted by itself, with a probability that depends on its value."""
