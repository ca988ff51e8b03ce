"""BestLocal: the best local mechanism there is.

mechanism.py chooses the way: binary_optimum.py where the optimum is known, sequential_lp.py
elsewhere.
"""

from offrecord.mechanisms.best_local.mechanism import BestLocal, solved

__all__ = ["BestLocal", "solved"]
