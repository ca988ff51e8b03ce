"""The owner's mechanism: who sees all values lets a walk decide where releasing begins.

law.py: what a walk does. side.py: a side that is to be designed. common_mass.py, programs.py: the
designs. search.py: the best rules of a setting. greedy.py: ε = 0. mechanism.py: tables, problems.
"""
