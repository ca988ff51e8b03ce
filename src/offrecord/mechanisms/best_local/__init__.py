"""The best local mechanism. optimum.py: two values, proven. sequential_lp.py: any other chain of
order 1, by linear programs. mechanism.py: which of them serves a problem.
"""
