"""Spark: `from offrecord.tables.spark import redact`."""

from offrecord.tables.engines.spark import SparkRelease, redact

__all__ = ["SparkRelease", "redact"]
