"""Learning a model from reference data, and judging how well it fits."""
