"""Checking a certificate, by arithmetic that rounds outwards and by nothing that made it.

Nothing here imports how models are read from data, designs are made or tables are redacted: only
the certificate's own form. A test walks the imports.

<<<<<<< HEAD
verdict     the whole check               document    whether a certificate agrees with itself
designs     every design, judged          room        whether it serves larger rooms
problem     what a local design redacts   chain       the model as exact numbers
alone       under the model alone         two_values  over a set of models, two values
balls       numbers in balls
=======
balls    numbers in balls                  chain     the model as exact numbers
problem  what a local design redacts       alone     what it tells under the model alone
stopping what owner's designs tell, sides, pairs and gaps
>>>>>>> a358599ea6ed165d2ff0421d4983fe56555b6368
"""

from offrecord.verify.verdict import Verdict, verify

__all__ = ["Verdict", "verify"]
