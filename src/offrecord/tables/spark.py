"""Spark: `from offrecord.tables.spark import redact`."""

from offrecord.tables.engines.spark import SparkRelease, as_spark, redact

__all__ = ["SparkRelease", "as_spark", "redact"]
