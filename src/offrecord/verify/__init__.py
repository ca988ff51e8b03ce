"""Checking a certificate, by arithmetic that rounds outwards and by nothing that made it.

Nothing here imports how models are read from data, designs are made or tables are redacted: only
the certificate's own form, and whether a file of Parquet is damaged. A test walks the imports.

verdict     the whole check               document    whether a certificate agrees with itself
designs     every design, judged          room        whether it serves larger rooms
problem     what a local design redacts   chain       the model as exact numbers
alone       under the model alone         histories   of order above 1
hidden      with hidden states            states      what both have in common
two_values  over a set, two values        sets        over a set, any number of states
stopping    what owner's designs tell     table       a released table, cell by cell
balls       numbers in balls
"""

from offrecord.verify.verdict import Verdict, verify

__all__ = ["Verdict", "verify"]
