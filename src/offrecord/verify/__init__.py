"""Checking a certificate, by arithmetic that rounds outwards and by nothing that made it.

Nothing here imports how models are read from data, designs are made or tables are redacted: only
the certificate's own form. A test walks the imports.

verdict     the whole check               document    whether a certificate agrees with itself
designs     every design, judged          room        whether it serves larger rooms
problem     what a local design redacts   chain       the model as exact numbers
alone       under the model alone         two_values  over a set of models, two values
balls       numbers in balls
"""

from offrecord.verify.verdict import Verdict, verify

__all__ = ["Verdict", "verify"]
