"""Verdicts of the audit: on chains that are what was fitted, and on chains that are not."""

import json
import math
from itertools import product

import numpy as np
import pytest
from test_audit_counting import daily, drawn_values
from test_fit import as_chains, stationary_chains

from offrecord.demo import halves
from offrecord.errors import InputError
from offrecord.fitting.audit.audit import EPSILONS, audited
from offrecord.fitting.audit.calibration import SHARES, Enlargement, calibrated, enlargements
from offrecord.fitting.audit.designs import (
    BestWindows,
    PhasedWindows,
    WidenedWindows,
    surroundings,
)
from offrecord.fitting.audit.result import Audit, Finding
from offrecord.fitting.audit.survey import windows_of
from offrecord.fitting.believed import Reference
from offrecord.fitting.boxes import Sureness
from offrecord.fitting.fit import fit_chains
from offrecord.mechanisms.window import window_of
from offrecord.models.audited import DOUBTFUL, GOOD, verdict_on
from offrecord.models.chain import MarkovChain
from offrecord.models.phased import PhasedChain
from offrecord.models.records import Chains
from offrecord.theory.problem import Problem

RAIN = MarkovChain.binary(0.0209, 0.2938)  # JFK's hours
HOURS = 8691
SLOW = np.array([[0.95, 0.04, 0.01], [0.05, 0.90, 0.05], [0.02, 0.08, 0.90]])


def one_chain(values):
    values = np.asarray(values, dtype=np.int8)
    return Chains(np.array([0, len(values)]), values, np.arange(len(values)), False, None)


def audit_of(chains, k=2, **options):
    """With windows of the first-order chain fitted to the rest, as `fit` audits it."""
    learn = reference_of(chains, k)._learn(Enlargement(), None)
    return audited(chains, list(range(k)), learn, **options)


def reference_of(chains, k=2, sure=None):
    """Records that belong to nobody's secret, without phases."""
    dropped = np.zeros(chains.count, dtype=bool)
    sure = Sureness() if sure is None else sure
    return Reference(chains, list(range(k)), dropped, {}, None, None, sure)


@pytest.fixture(scope="module")
def rain_of_order_3():
    """The kernel of order 3 that JFK's year shows."""
    import polars as pl

    year = pl.concat(halves())
    hours = year["time"].str.to_datetime().dt.epoch("s").to_numpy() // 3600
    rain = year["rain"].cast(pl.Int64).to_numpy()
    counts = np.full((2, 2, 2, 2), 0.5)
    for t in range(3, len(rain)):
        if hours[t] - hours[t - 3] == 3:
            counts[tuple(rain[t - 3 : t + 1])] += 1
    return counts / counts.sum(axis=-1, keepdims=True)


# ---- power and size


def verdicts(kernel, count, length, seed):
    rng = np.random.default_rng(seed)
    return [audit_of(one_chain(drawn_values(kernel, length, rng))).verdict for _ in range(count)]


def test_chains_of_order_1_are_good():
    assert verdicts(RAIN.transition, 12, HOURS, 1).count("good") >= 11


@pytest.mark.soak
def test_95_of_100_chains_of_order_1_are_good():
    assert verdicts(RAIN.transition, 100, HOURS, 2).count("good") >= 95


@pytest.mark.parametrize(
    ("count", "least"), [(8, 7), pytest.param(100, 95, marks=pytest.mark.soak)]
)
@pytest.mark.parametrize(
    "kernel",
    [
        MarkovChain.binary(0.0036, 0.0121).transition,
        MarkovChain.binary(0.24, 0.33).transition,
        SLOW,
    ],
    ids=["slow", "fast", "three values"],
)
def test_other_chains_of_order_1_are_good(kernel, count, least):
    rng, k = np.random.default_rng(3), len(kernel)
    drawn = stationary_chains(rng, kernel, count, 6000)
    found = [audit_of(one_chain(values), k).verdict for values in drawn]
    assert found.count("good") >= least


def test_many_short_chains_are_good():
    rng = np.random.default_rng(4)
    chains = as_chains(stationary_chains(rng, RAIN.transition, 60, 120))
    audit = audit_of(chains, instants=chains.order)
    assert audit.verdict == "good"
    assert "chains" in audit.looked_at
    assert audit.held_back.startswith("chains")


def test_chains_of_order_3_fitted_with_order_1_are_not_good(rain_of_order_3):
    assert verdicts(rain_of_order_3, 6, HOURS, 5).count("good") <= 1


@pytest.mark.soak
def test_95_of_100_chains_of_order_3_are_not_good(rain_of_order_3):
    assert verdicts(rain_of_order_3, 100, HOURS, 6).count("good") <= 5


# ---- what is counted is what leaks


class Fixed:
    """The same window for every ε."""

    def __init__(self, window, model=RAIN):
        self.own, self.model = window, model

    def window(self, epsilon, phase):
        return self.own


def exact_odds(kernel, window):
    """The largest odds from two records on each side of a window, over all values (order 2)."""
    chain = MarkovChain(kernel, order=2)
    lifted, start = chain.lifted.transition, chain.start.ravel()
    second = chain.coordinate(1)
    joint = np.zeros((4, 2, 4))
    for x in (0, 1):
        middle = np.linalg.matrix_power(lifted, window[0] + 1) * (second == x)
        # two records on from the nearest one released on the right is that one and the next
        beyond = np.linalg.matrix_power(lifted, window[1] + 2)
        joint[:, x] = start[:, np.newaxis] * (middle @ beyond)
    given = joint / joint.sum(axis=(0, 2), keepdims=True)
    return max((given[:, x] / given[:, other]).max() for x, other in product((0, 1), repeat=2))


def test_counted_odds_are_those_of_the_chain():
    """Against the exact leakage of windows under the chain that the data come from (R6, V6)."""
    kernel = np.array([[[0.95, 0.05], [0.4, 0.6]], [[0.8, 0.2], [0.2, 0.8]]])
    assert math.log(exact_odds(kernel, (1, 1))) == pytest.approx(4.016095736)
    chains = one_chain(drawn_values(kernel, 200_000, np.random.default_rng(1)))
    audit = audited(chains, [0, 1], lambda rest: Fixed((2, 2)))
    (found,) = [one for one in audit.findings if one.depth == (2, 2) and one.epsilon == 1.0]
    exact = exact_odds(kernel, (2, 2))
    assert found.at_least <= exact <= 1.3 * found.at_least
    assert found.odds == pytest.approx(exact, rel=0.2)


def test_a_wider_window_lowers_the_odds():
    chains = one_chain(drawn_values(RAIN.transition, 20_000, np.random.default_rng(8)))
    found = [audited(chains, [0, 1], lambda rest, w=w: Fixed((w, w))).at_least for w in (0, 3, 10)]
    assert found[0] > 2 * found[1] > 2 * found[2]


# ---- periods and other chains


def test_a_daily_rhythm_is_found_by_its_hours_and_its_period():
    """Records are independent given the hour: the model of order 1 forgets within a few hours."""
    values, hours = daily(np.random.default_rng(1), 400), np.arange(24 * 400) % 24
    audit = audit_of(one_chain(values), by={"hour": hours})
    assert audit.verdict != "good"
    assert {"hour", "period"} <= set(audit.looked_at)
    period = [one for one in audit.findings if one.kind == "period"]
    assert max(one.excess for one in period) > DOUBTFUL
    assert "at a distance of 24 steps" in max(period, key=lambda one: one.excess).where


def test_kernels_that_change_with_the_hour_are_found():
    """Nights forget slowly, days at once; one kernel is too fast for nights."""
    rng, n = np.random.default_rng(2), 24 * 700
    hours = np.arange(n) % 24
    night = hours < 12
    values = np.zeros(n, dtype=np.int8)
    for t, draw in enumerate(rng.random(n - 1)):
        stays = 0.97 if night[t] else 0.5
        values[t + 1] = values[t] if draw < stays else 1 - values[t]
    audit = audit_of(one_chain(values), by={"hour": hours})
    assert audit.verdict == "unfit"
    assert audit.kind == "hour"
    assert "fit a kernel for each hour" in audit.advice.lower()


def test_a_chain_that_tells_of_another_is_found_and_how_much():
    """Two chains begin anew at the same times, four times in five with the same value: each by
    itself is the first-order chain that is fitted.
    """
    rng = np.random.default_rng(3)
    anew = np.flatnonzero(rng.random(HOURS) < RAIN.alpha + RAIN.beta)
    anew[0] = 0
    begun = (rng.random((2, len(anew))) < RAIN.start[1]).astype(np.int8)
    begun[1] = np.where(rng.random(len(anew)) < 0.8, begun[0], begun[1])
    one, other = np.repeat(begun, np.diff(anew, append=HOURS), axis=1)
    third = drawn_values(RAIN.transition, HOURS, rng)
    chains = as_chains(np.stack([one, other, third]))
    audit = audit_of(chains, instants=chains.order)
    assert audit.verdict == "unfit"
    assert audit.kind == "chains"
    assert not audit.is_mendable
    pairs = {
        finding.where.rpartition("(")[2]: finding
        for finding in audit.findings
        if finding.kind == "chains" and finding.depth == (1, 0)
    }
    assert len(pairs) == 6
    likely, unlikely = (np.mean(other[one == value] == 1) for value in (1, 0))
    assert pairs["chain 2 about chain 1)"].odds == pytest.approx(likely / unlikely)
    assert pairs["chain 3 about chain 1)"].at_least < 1.5
    without = audit_of(chains)
    assert without.verdict == "good"


# ---- what is given


def test_windows_are_those_of_unlimited_room():
    for epsilon in EPSILONS:
        far = window_of(Problem(RAIN, 2001, [1001], epsilon))
        assert BestWindows(RAIN).window(epsilon, None) == far
        assert WidenedWindows(BestWindows(RAIN), 0.5).window(2 * epsilon, None) == far


def test_windows_with_equal_kernels_in_all_phases_are_those_of_one_kernel():
    phases = np.arange(2000) // 24 % 7
    chains = one_chain(np.zeros(2000))
    model = PhasedChain("weekday", np.tile(RAIN.transition, (7, 1, 1)), np.tile(RAIN.start, (7, 1)))
    phased = PhasedWindows.along(model, chains, phases)
    for phase, epsilon in product((0, 3, 6), EPSILONS):
        assert phased.window(epsilon, phase) == BestWindows(RAIN).window(epsilon, None)


def test_surroundings_are_phases_that_the_reference_shows():
    places = np.concatenate([np.arange(0, 100), np.arange(150, 400)])
    phases = places // 24 % 7
    chains = Chains(np.array([0, 350]), np.zeros(350, np.int8), places, False, places)
    for phase, (along, place) in surroundings(chains, phases).items():
        assert along[place] == phase
        starts = [
            i
            for i in range(350 - len(along) + 1)
            if np.array_equal(phases[i:][: len(along)], along)
        ]
        assert any(np.all(np.diff(places[i:][: len(along)]) == 1) for i in starts)


def test_windows_of_each_part_and_phase():
    class Phased:
        model = RAIN

        def __init__(self, size):
            self.size = size

        def window(self, epsilon, phase):
            return None if phase == 1 else (self.size, phase)

    part, phases = np.array([0, 0, 1, 1]), np.array([0, 1, 2, 0])
    found = windows_of([Phased(5), Phased(7)], part, phases, 1.0)
    assert found.tolist() == [[5, -1, 7, 7], [0, -1, 2, 0]]


def test_a_reference_too_short_to_hold_anything_back_is_refused():
    with pytest.raises(InputError, match="too short to hold anything back: 199 records"):
        audit_of(one_chain(np.arange(199) % 2))
    with pytest.raises(InputError, match="too short for the audit"):
        audited(one_chain(np.arange(300) % 2), [0, 1], lambda rest: Fixed((140, 140)))


def test_nothing_tells_where_nothing_is_released():
    audit = audited(one_chain(np.arange(300) % 2), [0, 1], lambda rest: Fixed(None))
    assert audit.verdict == "good"
    assert audit.closed == EPSILONS
    assert not audit.is_passed
    assert "all is redacted" in audit.sentence


def test_records_without_values_are_neither_secrets_nor_seen():
    rng = np.random.default_rng(11)
    values = drawn_values(RAIN.transition, 4000, rng)
    blank = np.where(rng.random(4000) < 0.1, -1, values).astype(np.int8)
    kept = np.flatnonzero(blank >= 0)
    sparse = Chains(np.array([0, len(kept)]), blank[kept], kept, False, kept)
    one, other = (
        audited(chains, [0, 1], lambda rest: Fixed((3, 4))) for chains in (one_chain(blank), sparse)
    )
    assert one.cases == other.cases == len(kept)
    # parts are cut by rows, which are fewer without blanks; a fixed window does not mind
    assert one.findings == other.findings


# ---- the result


@pytest.fixture(scope="module")
def unfit(rain_of_order_3):
    return audit_of(one_chain(drawn_values(rain_of_order_3, HOURS, np.random.default_rng(5))))


def test_verdicts_by_how_much_the_promise_is_exceeded():
    assert [verdict_on(x, chance=False) for x in (1.0, GOOD, 1.26, DOUBTFUL, 2.01)] == [
        "good",
        "good",
        "doubtful",
        "doubtful",
        "unfit",
    ]
    assert verdict_on(50.0, chance=True) == "good"


def test_files_hold_the_verdict_and_no_counts(unfit):
    content = json.loads(json.dumps(unfit.to_dict()))
    known = Audit.from_dict(content)
    assert known.verdict == unfit.verdict
    assert known.where == unfit.where
    assert known.at_least == pytest.approx(unfit.at_least, rel=1e-2)
    assert known.to_dict() == unfit.to_dict()
    assert not {"cases", "patterns", "left_out", "findings"} & set(content)
    for name in ("odds", "at_least"):
        assert len(f"{content[name]:g}".replace(".", "").strip("0")) <= 3
    summary = json.loads(json.dumps(unfit.summary()))
    assert summary["cases"] == HOURS
    assert len(summary["findings"]) == len(unfit.findings) >= 27


def test_odds_that_are_infinite_are_written_as_text():
    audit = Audit(
        "unfit", math.inf, 7.0, math.e, 1.0, "neighbours", "x", False, "y", ("neighbours",), ()
    )
    assert audit.to_dict()["odds"] == "inf"
    assert Audit.from_dict(audit.to_dict()).to_dict() == audit.to_dict()
    assert math.isinf(Audit.from_dict(audit.to_dict()).odds)
    assert "at least 7 to 1" in str(audit)


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "fine"},
        {"odds": "many"},
        {"at_least": "inf"},
        {"at_least": -1},
        {"epsilon": True},
        {"chance": 1},
        {"closed": ["a"]},
        {"more": 1},
        {"verdict": "good"},
        {"at_least": 1.0},
        {"promised": 100.0},
        {"epsilon": 1e6},
    ],
)
def test_other_content_is_refused(unfit, change):
    with pytest.raises(InputError, match="audit"):
        Audit.from_dict({**unfit.to_dict(), **change})


def test_the_page_says_what_was_found(unfit):
    page = str(unfit)
    assert page.startswith(f"Audit: {unfit.verdict}. Held back: stretches")
    flat = " ".join(page.split())
    assert f"at least {unfit.at_least:.3g} to 1" in flat
    assert unfit.where in flat
    assert all(len(line) <= 100 for line in page.splitlines())
    assert unfit.worst(1.0).epsilon == 1.0
    assert unfit.worst(3.0) is None


# ---- calibration


def stub(excess, *, kind="neighbours", chance=False, closed=()):
    finding = Finding("neighbours", 1.0, (1, 1), excess, excess * math.e, "x")
    verdict = verdict_on(excess, chance=chance)
    told = (verdict, excess * math.e, excess * math.e, math.e, 1.0, kind, "x", chance, "y")
    return Audit(*told, ("neighbours",), closed, findings=(finding,))


def calibrated_by(audits, default=None):
    """With the audit of an enlargement looked up by its words."""

    def audit(learn):
        found = audits.get(learn, default)
        if found is None:
            raise InputError("no such designs")
        return found

    return calibrated(
        enlargements(Enlargement(), (1, 2, 3), ("hour",)), lambda one: audit(str(one))
    )


def test_enlargements_come_in_order():
    words = [str(one) for one in enlargements(Enlargement(), (1, 2, 3), ("hour", "weekday"))]
    assert words == [
        "order 1",
        "order 2",
        "order 3",
        "order 1, a kernel for each hour",
        "order 1, a kernel for each weekday",
        "order 1, a set of models with confidence 0.99",
        "order 1, a set of models with confidence 0.999",
        "order 1, a set that holds the kernels of every quarter",
    ]


def test_the_first_enlargement_that_passes_is_chosen():
    found = calibrated_by(
        {"order 1": stub(4.0), "order 2": stub(1.5), "order 3": stub(1.1), "other": stub(1.0)}
    )
    assert found.chosen == Enlargement(order=3)
    assert [one.order for one, _ in found.tried] == [1, 2, 3]
    assert "counted, not on a model" in str(found)


def test_windows_are_widened_where_nothing_else_passes():
    """Of the enlargement that exceeds its promise least, and what chance does is no excuse."""
    found = calibrated_by(
        {
            "order 1": stub(4.0),
            "order 2": stub(2.5),
            "order 2, windows as for 0.8 of ε": stub(2.0, chance=True),
            "order 2, windows as for 0.64 of ε": stub(1.0, closed=(0.5,)),
            "order 2, windows as for 0.5 of ε": stub(1.2),
        }
    )
    assert found.chosen == Enlargement(order=2, share=0.5)
    assert found.audit == stub(1.2)


def test_if_nothing_passes_it_says_what_would():
    found = calibrated_by({}, default=stub(50.0))
    assert found.chosen is None
    assert len(found.tried) == 7 + len(SHARES)
    assert "coarser steps" in str(found)
    assert calibrated_by({}).audit is None
    chains = calibrated_by({}, default=stub(50.0, kind="chains"))
    assert len(chains.tried) == 7
    assert "Release one of these chains" in str(chains)


def test_wider_sets_are_wider_than_what_was_asked_for(monkeypatch):
    def refused(*_):
        raise InputError("no such designs")

    monkeypatch.setattr(Reference, "audited", refused)
    reference = reference_of(one_chain([0, 1, 1, 0]), sure=Sureness(0.995))
    tried = [one for one, _ in reference.calibrated(Enlargement()).tried]
    assert {one.confidence for one in tried} == {None, 0.999}


def test_a_set_counts_in_the_audit_where_it_was_enlarged():
    """Else the model alone, whose windows are shorter, so that more is seen."""
    chains = one_chain(drawn_values(RAIN.transition, 2000, np.random.default_rng(7)))
    reference = reference_of(chains)
    alone, wider = (
        reference._learn(one, None)(chains) for one in (Enlargement(), Enlargement(confidence=0.99))
    )
    assert alone.model.box is None
    assert wider.model.box.confidence == 0.99
    assert sum(alone.window(1.0, None)) < sum(wider.window(1.0, None))


def test_a_real_calibration_finds_the_order(rain_of_order_3):
    """Windows of order 2 are refused for data of order 3 no more than their leakage is above ε."""
    chains = one_chain(drawn_values(rain_of_order_3, HOURS, np.random.default_rng(5)))

    def make(enlargement):
        if enlargement.confidence or enlargement.hull:
            raise InputError("no sets of models here")
        return lambda rest: WidenedWindows(
            BestWindows(fit_chains(rest, [0, 1], order=enlargement.order).model),
            enlargement.share,
        )

    found = calibrated(
        enlargements(Enlargement(), (1, 2)), lambda one: audited(chains, [0, 1], make(one))
    )
    assert found.chosen is not None
    assert found.chosen != Enlargement()
    assert found.tried[0][1].verdict != "good"
    assert found.audit.is_passed
