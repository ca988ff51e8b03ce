"""The owner's mechanism: who sees all values chooses where releasing begins."""

from offrecord.mechanisms.owner.mechanism import OwnerStopping

__all__ = ["OwnerStopping"]
