"""Checking a certificate, and a released table against it, by code of its own.

It shares the form of files and the reading of tables with what made the release; chains are drawn,
rules evaluated, coins drawn and cells recomputed by nothing that made it. A test walks the imports.

verdict   the whole check           agreement whether a certificate agrees with itself
members   plausible chains, drawn   rules     what acts, unpacked
law       what rules leak           pairs     both sides of a lone record
table     a released table          reading   its rows, and private records
runs      cores and clusters        coins     drawn again from the key
cells     what must go, and may     chance    releases without a key
recount   counts of a model learned from the release
"""

from offrecord.verification.verdict import Verdict, verify

__all__ = ["Verdict", "verify"]
