"""Attacks on a release: what anybody who holds it, its certificate and the model can infer.

released   a release from its files    paths         what it shows, followed along chains
local      Bayes against local rules   walks         Bayes against stopping rules
attacking  all attackers, and counts   result        what they inferred
"""

from offrecord.attacks.attacking import attack
from offrecord.attacks.result import Attack, Attacker

__all__ = ["Attack", "Attacker", "attack"]
