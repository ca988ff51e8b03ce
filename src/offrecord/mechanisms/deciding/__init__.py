"""Deciding: side rules laid onto tables. layout.py: positions, and which rules a table needs;
local.py, stopping.py: the two kinds of rules; decide.py: what acts; expect.py: what is expected.
"""
