"""Attacks on a released table: what whoever holds it, its certificate and the model infers.

released   table and certificate, read        fitted      attackers who know more
shown      what a table shows of records      neighbours  another chain at the same time
steps      how records follow each other      attacking   all of them
walking    Bayes, record by record            result      what they found; picture: drawn
reading    what both sides tell of a secret

Of the owner's walks:
owner      Bayes, cluster by cluster          sides       how likely what is shown there is
beside     what lies beside clusters          courses     where a walk may have gone
roles      who walks there                    stretches   sums along a stretch
sights     what is shown there                heldout     gaps that one choice serves
"""

from offrecord.attack.attacking import attack
from offrecord.attack.result import Attack, Attacker

__all__ = ["Attack", "Attacker", "attack"]
