"""Other processes that work for this one.

pipes.py: questions and answers. crew.py: several that share work which takes seconds.
"""
