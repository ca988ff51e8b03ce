"""A small sample of every campaign of `make soak`, by the same code; and what it would say."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from soak.campaign import Outcome, ViolationError
from soak.campaigns import CAMPAIGNS
from soak.watched import Watched

from soak import running

ROOT = Path(__file__).parent.parent.parent
forks = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
#: Of each campaign, kinds that take little, and how many cases.
SAMPLE = {
    "designs": (["window, alone", "3r-relaxed, set of two values", "best-local, start"], 8),
    "certificates": (["local", "owner", "a set"], 25),
    "kills": (["in memory, .csv", "several on one output", "after another release"], 2),
    "inputs": (
        [
            "redact, table .csv", "redact --after, kept", "redact --growing, ledger",
            "verify, certificate", "answer, policy", "key, options",
        ],
        12,
    ),
}  # fmt: skip


def ended(watched):
    while (outcome := watched.ended()) is None:
        time.sleep(0.02)
    return outcome


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("soak")


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_of_each_campaign_finds_nothing(name, store):
    """In a process of its own, as it forks, which threads of other tests would not outlive."""
    kinds, cases = SAMPLE[name]
    command = [sys.executable, "-W", "ignore", "-m", "soak", "sample", name, *kinds]
    told = subprocess.run(
        [*command, "--cases", str(cases), "--state", store],
        cwd=ROOT, env=os.environ | {"POLARS_MAX_THREADS": "1"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (told.returncode, told.stdout) == (0, ""), told.stderr
    found = running.totals(store, CAMPAIGNS[name])
    assert [found[kind].cases for kind in kinds] == [cases] * len(kinds)


class Broken:
    """A campaign in which everything goes wrong."""

    name, least, kinds, limit, memory = "broken", 1, {"any": 1.0}, 1.0, None

    def ready(self, folder, kind):
        pass

    def run(self, case, folder, store):
        match case.number:
            case 1:
                raise ViolationError("what must not be")
            case 2:
                return {}["a fault of the program"]
            case 3:
                os.kill(os.getpid(), signal.SIGKILL)
            case 4:
                time.sleep(60)
        return {"good": 1}


@forks
@pytest.mark.parametrize(
    ("first", "cases", "said"),
    [
        (0, 1, []),
        (0, 2, [(1, "what must not be")]),
        (2, 1, [(2, "KeyError: 'a fault of the program'")]),
        (3, 1, [(3, "ends the process (SIGKILL)")]),
        (4, 1, [(4, "hangs")]),
    ],
)
def test_whatever_happens_is_seen(first, cases, said, store):
    outcome = ended(Watched.start(Broken(), "any", 0, store, seconds=60, cases=cases, first=first))
    assert isinstance(outcome, Outcome)
    assert [number for number, _ in outcome.found] == [number for number, _ in said]
    for (_, what), (_, start) in zip(outcome.found, said, strict=True):
        assert what.startswith(start)
    assert outcome.cases == cases


def test_a_case_is_the_same_each_time():
    """By its name and numbers alone; a run goes on after the batches that were run."""
    from soak.campaign import Case

    one, other = Case("designs", "quilt, alone", 3, 7), Case("designs", "quilt, alone", 3, 8)
    assert one.random().random() == one.random().random() != other.random().random()


@forks
def test_a_run_goes_on_where_it_was(tmp_path):
    campaign = Broken()
    watched = Watched.start(campaign, "any", 4, tmp_path, seconds=60, cases=1)
    running.record(tmp_path, watched, ended(watched), "a test")
    with (tmp_path / "broken.jsonl").open("a") as file:
        file.write('{"kind": "any", "bat')  # killed while writing
    total = running.totals(tmp_path, campaign)["any"]
    assert (total.cases, total.batches, total.notes) == (1, 5, {"good": 1})


def test_all_campaigns_get_as_far_as_each_other(tmp_path):
    """Whatever a case of each takes: in forty turns, by twos."""
    slow, quick = SimpleNamespace(name="slow", least=100), SimpleNamespace(name="quick", least=9000)
    slow.kinds = {"a": 1.0, "b": 3.0}
    quick.kinds = {"c": 1.0}
    cases = {"slow": 2, "quick": 400}
    turns = running._Turns([slow, quick], tmp_path)
    taken = [turns.take(), turns.take()]
    for _ in range(38):
        campaign, kind, _ = taken.pop(0)
        turns.count(campaign, kind, Outcome(cases=cases[campaign.name], seconds=20.0))
        taken.append(turns.take())
    shares = [turns.cases[one.name] / one.least for one in (slow, quick)]
    assert min(shares) > 0.4
    assert shares[0] == pytest.approx(shares[1], abs=0.07)
    assert turns.next["slow", "b"] == pytest.approx(3 * turns.next["slow", "a"], abs=2)
