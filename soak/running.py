"""Which batch is next, and what was run: one line for each batch, so that a run that ends at any
moment goes on where it was.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from soak.campaign import Campaign, Outcome
from soak.watched import Watched

STATE = Path("out/soak")
BATCH_SECONDS = 20.0
_LOOK = 0.05  # seconds between looks at what is under way


@dataclass
class Total:
    """What was run of a kind, or of a campaign."""

    cases: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    batches: int = 0
    notes: Counter[str] = field(default_factory=Counter)
    found: list[dict[str, object]] = field(default_factory=list)
    commits: Counter[str] = field(default_factory=Counter)

    def add(self, line: Mapping[str, object]) -> None:
        """Count one batch."""
        self.cases += line["cases"]
        self.seconds += line["seconds"]
        self.cpu += line["cpu"]
        self.batches = max(self.batches, line["batch"] + 1)
        self.notes.update(line["notes"])
        self.commits[line["commit"]] += line["cases"]
        self.found += [
            {"kind": line["kind"], "batch": line["batch"], "number": number, "what": what}
            for number, what in line["found"]
        ]


def lines(state: Path, campaign: str) -> Iterator[dict[str, object]]:
    """What was run of a campaign, batch by batch; a line that was cut off is none."""
    file = state / f"{campaign}.jsonl"
    if file.exists():
        for line in file.read_text().splitlines():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                continue


def totals(state: Path, campaign: Campaign) -> dict[str, Total]:
    """By kind, all of them."""
    found: dict[str, Total] = {kind: Total() for kind in campaign.kinds}
    for line in lines(state, campaign.name):
        found.setdefault(line["kind"], Total()).add(line)
    return found


def commit() -> str:
    """Of the sources that are run, and whether they were changed since."""
    said = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=9"],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parent,
    )  # fmt: skip
    return said.stdout.strip() or "unknown"


def run(
    campaigns: Sequence[Campaign], state: Path, *, minutes: float, processes: int,
    batch_seconds: float = BATCH_SECONDS,
) -> None:  # fmt: skip
    """Batches of all campaigns in turn, for so long: all of them get as far, measured by the least
    that a full run has, and each kind has its share of the campaign's time; counted with what was
    run before.
    """
    state.mkdir(parents=True, exist_ok=True)
    for campaign in campaigns:
        prepare(campaign, state)
    ends = time.monotonic() + 60 * minutes
    version = commit()
    turns = _Turns(campaigns, state)
    under_way: list[Watched] = []
    while under_way or time.monotonic() < ends:
        while len(under_way) < processes and time.monotonic() < ends:
            campaign, kind, batch = turns.take()
            seconds = min(batch_seconds, max(ends - time.monotonic(), 0.1))
            under_way.append(Watched.start(campaign, kind, batch, state, seconds=seconds))
        time.sleep(_LOOK)
        for one in list(under_way):
            outcome = one.ended()
            if outcome is not None:
                under_way.remove(one)
                record(state, one, outcome, version)
                turns.count(one.campaign, one.kind, outcome)


def record(state: Path, watched: Watched, outcome: Outcome, version: str) -> None:
    """One line of what was run; what was found is said at once."""
    name = watched.campaign.name
    line = {
        "kind": watched.kind,
        "batch": watched.batch,
        "cases": outcome.cases,
        "seconds": round(outcome.seconds, 3),
        "cpu": round(outcome.cpu, 3),
        "notes": {what: count for what, count in sorted(outcome.notes.items()) if count},
        "found": outcome.found,
        "commit": version,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with (state / f"{name}.jsonl").open("a") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")
    for number, what in outcome.found:
        print(f"{name} {watched.kind!r} {watched.batch} {number}: {what}", flush=True)


class _Turns:
    """Who is next: the campaign that is furthest from the least that a full run has, and of it the
    kind that had the least time for its share.
    """

    def __init__(self, campaigns: Sequence[Campaign], state: Path) -> None:
        self.campaigns = campaigns
        self.spent: dict[tuple[str, str], float] = defaultdict(float)
        self.next: dict[tuple[str, str], int] = defaultdict(int)
        self.cases: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.under_way: Counter[str] = Counter()
        for campaign in campaigns:
            for kind, total in totals(state, campaign).items():
                self.spent[campaign.name, kind] = total.seconds
                self.next[campaign.name, kind] = total.batches
                self.cases[campaign.name] += total.cases
                self.ended[campaign.name] += total.batches

    def take(self) -> tuple[Campaign, str, int]:
        """A campaign, a kind and the number of a batch that nobody has run."""
        campaign = min(self.campaigns, key=self._done)
        shares = campaign.kinds
        kind = min(shares, key=lambda one: self.spent[campaign.name, one] / shares[one])
        batch = self.next[campaign.name, kind]
        self.next[campaign.name, kind] += 1
        # as if it were done, so that the other process takes another
        self.spent[campaign.name, kind] += BATCH_SECONDS
        self.under_way[campaign.name] += 1
        return campaign, kind, batch

    def count(self, campaign: Campaign, kind: str, outcome: Outcome) -> None:
        """What it took instead, and what was run."""
        self.spent[campaign.name, kind] += outcome.seconds - BATCH_SECONDS
        self.under_way[campaign.name] -= 1
        self.ended[campaign.name] += 1
        self.cases[campaign.name] += outcome.cases

    def _done(self, campaign: Campaign) -> tuple[float, int]:
        """The share of its least, with what is expected of batches that are under way."""
        name = campaign.name
        each = self.cases[name] / self.ended[name] if self.ended[name] else 0.0
        done = (self.cases[name] + self.under_way[name] * each) / campaign.least
        return done, self.under_way[name]


def prepare(campaign: Campaign, state: Path) -> None:
    """In a process of its own: what it starts, no batch inherits."""
    process = os.fork()
    if process == 0:
        try:
            campaign.prepared(state)
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(70)
    _, status = os.waitpid(process, 0)
    if status:
        raise RuntimeError(f"the campaign {campaign.name} cannot be prepared")


def sample(campaign: Campaign, state: Path, kinds: Sequence[str], cases: int) -> bool:
    """So many cases of some kinds; whether nothing was found."""
    state.mkdir(parents=True, exist_ok=True)
    prepare(campaign, state)
    good = True
    for kind in kinds:
        watched = Watched.start(campaign, kind, 0, state, seconds=float("inf"), cases=cases)
        outcome = _ended(watched)
        record(state, watched, outcome, commit())
        good &= not outcome.found
    return good


def _ended(watched: Watched) -> Outcome:
    while (outcome := watched.ended()) is None:
        time.sleep(_LOOK)
    return outcome


def replayed(campaign: Campaign, state: Path, kind: str, batch: int, number: int) -> Outcome:
    """One case again."""
    return _ended(
        Watched.start(campaign, kind, batch, state, seconds=float("inf"), cases=1, first=number)
    )
