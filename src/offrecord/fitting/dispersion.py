"""How much more the transitions of a chain on hidden states vary than a Markov chain's would.

In a chain on values, by how much a transition differs from its expectation is independent of what
came before, so that a likelihood-ratio statistic is chi-square. Regimes last: for as long as one
does, transitions differ to the same side, and the statistic is larger by chance alone.
"""

from __future__ import annotations

import numpy as np

from offrecord.models.base import Floats
from offrecord.models.chain import MarkovChain
from offrecord.models.hidden import value_kernel


def dispersion(chain: MarkovChain) -> float:
    """What to divide a likelihood-ratio statistic of transitions between values by, at least 1.

    Of a stationary chain on hidden states with many records; what comes of it is chi-square or
    smaller. With f_ab(s, s') = 1[s shows a]·(1[s' shows b] − K[a, b]) for a step of the states and
    K the kernel on values, the statistic is about Σ_ab (Σ_t f_ab)²/(n·π_a·K_ab). That is a sum of
    independent squares, weighted by the eigenvalues of the scaled long-run covariances of f, of
    which none exceeds the largest sum of a row.
    """
    often, shows, k = chain.lifted.start, chain.coordinate(0), chain.k
    values = value_kernel(chain.lifted.transition, often, shows, k)
    showing = (shows == np.arange(k)[:, np.newaxis]).astype(float)
    scale = np.sqrt(((showing @ often)[:, np.newaxis] * values).ravel())
    later = _with_later_steps(chain.lifted.transition, often, values, showing)
    covariances = _of_one_step(showing @ often, values) + later + later.T
    seen = scale > 0
    scaled = covariances[np.ix_(seen, seen)] / np.outer(scale[seen], scale[seen])
    return max(float(np.abs(scaled).sum(axis=1).max()), 1.0)


def _of_one_step(masses: Floats, values: Floats) -> Floats:
    """(k², k²) covariances of f at one step: those of a multinomial in each row."""
    k = len(values)
    out = np.zeros((k, k, k, k))
    for a, row in enumerate(values):
        out[a, :, a] = masses[a] * (np.diag(row) - np.outer(row, row))
    return out.reshape(k * k, k * k)


def _with_later_steps(transition: Floats, often: Floats, values: Floats, showing: Floats) -> Floats:
    """(k², k²) covariances of f at one step with all of f at later ones.

    Σ_l P^l·g = (I − P + 1π)⁻¹·g for what is expected of a step out of each state, g, as π·g = 0.
    """
    k, h = showing.shape
    expected = showing[:, np.newaxis] * (showing @ transition.T - values[:, :, np.newaxis])
    ahead = np.linalg.solve(np.eye(h) - transition + often, expected.reshape(k * k, h).T)
    reached = (showing * often) @ transition
    met = reached[:, np.newaxis] * (showing - values[:, :, np.newaxis])
    return np.asarray(met.reshape(k * k, h) @ ahead)
