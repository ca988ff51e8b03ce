"""Rooms that share a design: private in each room, as good as one of its own, and fewer."""

import numpy as np
import pytest

import offrecord as off
from offrecord.mechanisms.best_local.few_designs import FewDesigns
from offrecord.mechanisms.surroundings import Surrounding

FAST = [[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]]
IN_A_SET = off.MarkovChain(
    FAST,
    box=off.Box(
        (np.array(FAST) - 0.03, np.array(FAST) + 0.03),
        (np.array(FAST) - 0.03, np.array(FAST) + 0.03),
    ),
)


@pytest.mark.parametrize("chain", [off.MarkovChain(FAST), IN_A_SET])
@pytest.mark.parametrize("epsilon", [0.4, 1.0])
def test_designs_that_are_shared(chain, epsilon):
    room = 9
    shop = FewDesigns(off.BestLocal(), chain, epsilon, "run", room)
    masses = chain.marginal(1)
    shared = set()
    for left, right in [(9, 9), (9, 8), (7, 9), (6, 6), (9, 3), (5, 3), (2, 9), (1, 1), (0, 9)]:
        around = Surrounding(left, right, 1)
        problem = around.problem(chain, epsilon, "run")
        design, own = shop.around(around), off.BestLocal().around(problem, around)
        assert design.surrounding == around
        assert off.worst_output(problem, design.redaction(problem)).upper <= epsilon
        assert design.cost(masses, left, right) <= 1.005 * own.cost(masses, left, right)
        assert design.window == own.window
        shared.add((design.left.rows.tobytes(), design.right.rows.tobytes()))
    assert chain.box is None or len(shared) < 7


SLOW = [[0.85, 0.1, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]]


def test_rooms_whose_window_redacts_all_of_one_side_share_the_other(monkeypatch):
    wide = (np.array(SLOW) - 0.02, np.array(SLOW) + 0.02)
    chain, room, epsilon = off.MarkovChain(SLOW, box=off.Box(wide, wide)), 30, 1.0
    made = []
    own = off.BestLocal.around

    def counted(self, problem, surrounding):
        made.append(surrounding[:2])
        return own(self, problem, surrounding)

    monkeypatch.setattr(off.BestLocal, "around", counted)
    shop = FewDesigns(off.BestLocal(), chain, epsilon, "run", room)
    masses = chain.marginal(1)
    for left, right in [(3, 30), (5, 30), (6, 30), (30, 4), (30, 6)]:
        around = Surrounding(left, right, 1)
        problem = around.problem(chain, epsilon, "run")
        design = shop.around(around)
        assert off.worst_output(problem, design.redaction(problem)).upper <= epsilon
        best = own(off.BestLocal(), problem, around).cost(masses, left, right)
        assert design.cost(masses, left, right) <= 1.001 * best
    assert sorted(made) == [(0, 30), (30, 0), (30, 30)]
