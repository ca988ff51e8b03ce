"""python -m soak: run campaigns, draw a case again, or write what was found."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

# What tests are measured by is there once: every sequence, every output, in fractions.
_ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(_ROOT / "tests"), str(_ROOT / "tests" / "verify")]

from soak import running  # noqa: E402 - the path comes first
from soak.campaigns import CAMPAIGNS  # noqa: E402


def main() -> int:
    """The command line; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="campaigns for some minutes, or until each has its least")
    run.add_argument("campaigns", nargs="*", help=f"of {', '.join(CAMPAIGNS)}; without, all")
    run.add_argument("--minutes", type=float, default=60.0)
    run.add_argument("--processes", type=int, default=2)
    some = verbs.add_parser("sample", help="a few cases of some kinds")
    some.add_argument("campaign", choices=CAMPAIGNS)
    some.add_argument("kinds", nargs="+")
    some.add_argument("--cases", type=int, default=10)
    replay = verbs.add_parser("replay", help="one case again")
    replay.add_argument("campaign", choices=CAMPAIGNS)
    replay.add_argument("kind")
    replay.add_argument("batch", type=int)
    replay.add_argument("number", type=int)
    write = verbs.add_parser("report", help="write docs/reliability.md")
    for one in (run, some, replay, write):
        one.add_argument("--state", type=Path, default=running.STATE)
    given = parser.parse_args()
    if given.verb == "run":
        chosen = [CAMPAIGNS[name] for name in given.campaigns or CAMPAIGNS]
        running.run(chosen, given.state, minutes=given.minutes, processes=given.processes)
        return 0
    if given.verb == "sample":
        campaign = CAMPAIGNS[given.campaign]
        return 0 if running.sample(campaign, given.state, given.kinds, given.cases) else 1
    if given.verb == "replay":
        campaign = CAMPAIGNS[given.campaign]
        found = running.replayed(campaign, given.state, given.kind, given.batch, given.number)
        print(*[what for _, what in found.found] or ["nothing is found"], sep="\n")
        return 1 if found.found else 0
    from soak.report import written

    return written(given.state)


if __name__ == "__main__":
    sys.exit(main())
