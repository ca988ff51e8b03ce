"""The paper: what it states and draws, computed anew and set beside the paper's value.

numbers     its numbers beside ours           errata      where it does not hold as printed
figures     the rows of Figs. 1 to 3
bounds      its bounds as printed             comparison  mechanisms side by side
"""
