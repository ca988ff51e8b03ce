"""The owner's mechanism: who sees all values chooses where releasing begins."""
