"""Attacks on a release: what anybody who holds it, its certificate and the model can infer.

shown      what a table shows          local, walks  Bayes against the two kinds of rules
paths      forward–backward in chains  reading       from both sides of a core to its private run
counting   patterns near private runs  neighbours    another chain at the same time
released   a release from its files    attacking     all attackers; result: what they found
"""

from offrecord.attack.attacking import attack
from offrecord.attack.result import Attack, Attacker

__all__ = ["Attack", "Attacker", "attack"]
