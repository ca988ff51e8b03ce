"""Secrets that share a design in a set of models: what the set allows counts, not its chain."""

import numpy as np
import pytest

import offrecord as off
from offrecord.designs.library import Setting
from offrecord.designs.needs import SurroundingCounts
from offrecord.designs.sharing import designs_for
from offrecord.mechanisms import mechanism_named
from offrecord.mechanisms.surroundings import Surrounding

#: The chain never comes to value 2; in the set 1 may be followed by it, and 0 may not.
RARELY = off.MarkovChain(
    [[0.55, 0.45, 0], [0.45, 0.55, 0], [0.1, 0.3, 0.6]],
    box=off.Box(
        (
            [[0.5, 0.4, 0], [0.3, 0.4, 0], [0.05, 0.2, 0.5]],
            [[0.6, 0.5, 0], [0.6, 0.7, 0.2], [0.1, 0.4, 0.7]],
        ),
        (
            [[0.55, 0.4, 0], [0.4, 0.55, 0], [0, 0, 0]],
            [[0.6, 0.45, 0], [0.45, 0.6, 0], [0.2, 0.9, 0]],
        ),
    ),
)


@pytest.mark.parametrize("name", ["window", "3r-constant", "best-local"])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 7])
def test_runs_that_can_end_otherwise_have_designs_of_their_own(name, length):
    """(0, 2) are possible ends of three private records, and not of two."""
    epsilon, rooms = 0.5, np.array([4, 4])
    setting = Setting(RARELY, epsilon, mechanism_named(name), "run")
    lengths = np.array([2, length])
    needs = SurroundingCounts(rooms, rooms, lengths, np.zeros(2, int), np.ones(2, int))
    designs, which = designs_for(setting, needs)
    problem = Surrounding(4, 4, length).problem(RARELY, epsilon, "run")
    redaction = designs.designs[which[1]].redaction(problem)
    assert off.worst_output(problem, redaction).upper <= epsilon
