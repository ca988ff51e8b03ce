"""Attacks on a release: what anybody who holds it, its certificate and the model can infer.

attacking  a release from its files, all attackers, and counts
paths      what it shows, followed along chains: Bayes against local rules
walks      Bayes against stopping rules
result     what they inferred
"""

from offrecord.attacks.attacking import attack
from offrecord.attacks.result import Attack, Attacker

__all__ = ["Attack", "Attacker", "attack"]
