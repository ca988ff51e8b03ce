"""Sides, pairs and gaps: what to aim at, made into thresholds, and refereed as they act."""
