"""Attacks on a released table: what whoever holds it, its certificate and the model infers.

released   table and certificate, read        walking     Bayes for all secrets at once
shown      what a table shows of records      owner       the same for walks
fitted     attackers who know more            neighbours  another chain at the same time
attacking  all of them                        result      what they found; picture: drawn
"""

from offrecord.attack.attacking import attack
from offrecord.attack.result import Attack, Attacker

__all__ = ["Attack", "Attacker", "attack"]
