"""python -m soak: run campaigns, draw a case again, or write docs/reliability.md."""

from __future__ import annotations

import argparse
import sys
from itertools import count
from pathlib import Path

# exact enumeration is where tests have it
_TESTS = Path(__file__).parent.parent / "tests"
sys.path[:0] = [str(_TESTS), str(_TESTS / "mechanisms" / "deciding")]

from soak import coverage, fits, hostile, kills, rules, running, twins  # noqa: E402

CAMPAIGNS = {
    "rules": rules.CAMPAIGN,
    "coverage": coverage.CAMPAIGN,
    "fits": fits.CAMPAIGN,
    "hostile": hostile.CAMPAIGN,
    "twins": twins.CAMPAIGN,
    "kills": kills.CAMPAIGN,
}


def main() -> int:
    """The command line; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="batches for some minutes")
    run.add_argument("campaigns", nargs="*", help=f"of {', '.join(CAMPAIGNS)}; without, all")
    run.add_argument("--minutes", type=float, default=60.0)
    run.add_argument("--processes", type=int, default=2)
    run.add_argument("--state", type=Path, default=running.STATE)
    one = verbs.add_parser("batch", help="cases from a number on, here")
    one.add_argument("campaign", choices=CAMPAIGNS)
    one.add_argument("kind")
    one.add_argument("first", type=int)
    one.add_argument("--cases", type=int)
    one.add_argument("--seconds", type=float, default=float("inf"))
    write = verbs.add_parser("report", help="write docs/reliability.md")
    write.add_argument("--state", type=Path, default=running.STATE)
    given = parser.parse_args()
    if given.verb == "run":
        chosen = {name: CAMPAIGNS[name] for name in given.campaigns or CAMPAIGNS}
        good = running.run(chosen, given.state, minutes=given.minutes, processes=given.processes)
        return 0 if good else 1
    if given.verb == "batch":
        made = CAMPAIGNS[given.campaign].kinds[given.kind]
        few = given.cases is not None
        cases = range(given.first, given.first + given.cases) if few else count(given.first)
        running.batch(given.campaign, made, given.kind, cases, given.seconds)
        return 0
    from soak.report import written

    return written(CAMPAIGNS, given.state)


if __name__ == "__main__":
    sys.exit(main())
