"""docs/reliability.md, from what was run and found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from soak.campaign import Campaign
from soak.campaigns import CAMPAIGNS
from soak.history import HISTORY
from soak.running import Total, lines, replayed, totals

PAGE = Path(__file__).parent.parent / "docs" / "reliability.md"
_HEAD = """# Faults and hostile input, in figures

What was run against this package and what was found; nothing here is hoped for. `make soak` runs the campaigns for an hour (`make soak MINUTES=10` for ten), goes on where it was if it is stopped, and writes this page from what it recorded in `out/soak`. `make test` runs a small sample of each. The code is in [soak](../soak/__init__.py).

"""  # noqa: E501 - prose, as the other pages have it
_WORDS = {
    "designs": "Random problems: two to six values, slow and quick chains, sets of models, starts, order 2, phases, near secrets, ε from 0.02 to 6. Each is designed as `redact` does it, put into a certificate's form, and proven by the [verifier](verify.md), whose arithmetic rounds outwards. Where a chain is so short that all its outputs can be listed, the largest ratio is computed from the definition too, in fractions (for sets, under a random member of the set; for the owner's mechanism through every branch of its coins). A violation is a design that is not proven, or an output with a larger ratio.",  # noqa: E501
    "certificates": "Real certificates of every kind, changed: each field in its turn, whole parts, several fields at once as someone would who wants to promise more and says it everywhere alike, bytes, and JSON that parsers stumble over; one in seven is checked with its table, list and key. A violation is a traceback, a check without end (two minutes), or a certificate that is accepted although a field was changed that [no rule](../tests/verify/mutations.py) names as harmless. If claim, model or designs were changed, no table of fields is asked: of local designs the theory, which shares no code with the verifier, must find that what is accepted is within its ε; of the owner's, of models that designs are not made for and of very long chains there is no second opinion (“by the verifier alone” below).",  # noqa: E501
    "kills": "`redact` killed (SIGKILL) at random moments, in memory and streamed, most of them while it writes; two or three runs at once on one ledger, or with one output; over an older release; with a designs file; with a key that is made just then; of a table that grows, and after another release, which the next run then continues. A violation is an output that is not whole, has not the certificate with its SHA-256 or has no entry in the ledger; a lost entry or a damaged ledger; a certificate without an entry; anything but hidden partial files beside the output; or a run afterwards that fails, or does not continue what was there. A kill between the two renames leaves a certificate whose output is not there yet: that is counted, and is no violation.",  # noqa: E501
    "inputs": "Every verb but `demo` and `reproduce`, with one file that is not what it should be (bits flipped, cut, spliced, cells, types, encodings, archives, JSON) or with other options; of releases after others, and of tables that grow, also what is kept beside the key. What brings a new answer is kept and changed further. A case may take 6 GiB and two minutes. A violation is a traceback or internal error, another exit code than 0, 1 or 2, more than one line of error, partial files left behind, or a release that does not match its certificate.",  # noqa: E501
}
_NEEDLES = """**Needles.** The tables of the last two campaigns hold values in cells beside private records, and a value that only private records have. After every kill, and after every case in which the private records are still the same, all files are searched for them, partial and temporary ones too, as they are and unpacked, and both output streams. A value that is a label of the model may stand where the model does. A needle is a violation of its campaign.
"""  # noqa: E501


def written(state: Path) -> int:
    """Write the page; 1 if anything that was found is still so."""
    found = {name: totals(state, campaign) for name, campaign in CAMPAIGNS.items()}
    open_ones = {name: _still(state, CAMPAIGNS[name], found[name]) for name in CAMPAIGNS}
    parts = [_HEAD, *_overview(state, found, open_ones), *_found(open_ones)]
    for name, campaign in CAMPAIGNS.items():
        parts += [f"## {name.capitalize()}\n\n", _WORDS[name], "\n\n"]
        parts += [*([_NEEDLES, "\n"] if name == "inputs" else ()), *_by_kind(campaign, found[name])]
    parts.append(_FOOT)
    PAGE.write_text("".join(parts).rstrip() + "\n", encoding="utf-8")
    return 1 if any(open_ones.values()) else 0


_FOOT = """## Again

`python -m soak run designs --minutes 5` runs one campaign, `python -m soak report` writes this page. A case is drawn from its campaign, kind, batch and number alone. What is found is printed with these, and `python -m soak replay CAMPAIGN KIND BATCH NUMBER` draws the case again, with the sources of the commit that is recorded beside it; inputs are kept whole in `out/soak/found` and run again as they were. The moment of a kill depends on the machine, so a kill is drawn again, not repeated.
"""  # noqa: E501


def _sum(kinds: dict[str, Total]) -> Total:
    whole = Total()
    for one in kinds.values():
        whole.cases += one.cases
        whole.seconds += one.seconds
        whole.cpu += one.cpu
        whole.notes.update(one.notes)
        whole.commits.update(one.commits)
        whole.found += one.found
    return whole


def _overview(
    state: Path, found: dict[str, dict[str, Total]], open_ones: dict[str, list[str]]
) -> Iterator[str]:
    yield "| campaign | cases | of these | violations open | found in this run, no longer so | process time | last batch |\n"  # noqa: E501
    yield "| --- | --- | --- | --- | --- | --- | --- |\n"
    for name, kinds in found.items():
        whole = _sum(kinds)
        said = list(lines(state, name))
        last = f"{said[-1]['at'][:10]}, version {version('offrecord')}" if said else "never"
        distinct = {_signature(str(one["what"])) for one in whole.found}
        mended = len(distinct) - len(open_ones[name])
        yield (
            f"| {name} | {whole.cases:,} | {_of_these(name, whole.notes)} |"
            f" {len(open_ones[name])} | {mended} | {whole.cpu / 60:.0f} min | {last} |\n"
        )
    yield (
        "\nViolations are counted by what happened and where, not by how often; each is drawn again"
        " by the present sources when this page is written, and has a test besides. Times are of"
        " processes, not of the clock.\n\n"
    )


def _of_these(name: str, notes: Counter[str]) -> str:
    if name == "designs":
        parts = [
            (notes["bounds"], "bounds proven"),
            (notes["by every output"], "secrets by every output"),
        ]
    elif name == "certificates":
        parts = [
            (notes["cannot be read"] + notes["refused"], "refused"),
            (
                notes["accepted, another"] - notes["another promise, by the verifier alone"],
                "accepted and harmless",
            ),
            (notes["another promise, by the verifier alone"], "accepted, by the verifier alone"),
            (notes["the same in other words"], "the same in other words"),
        ]
    elif name == "kills":
        parts = [
            (notes["kills"], "kills"),
            (notes["outputs whole"], "whole outputs"),
            (notes["files scanned for needles"], "files searched for needles"),
        ]
    else:
        parts = [(notes[f"exit {code}"], f"with exit code {code}") for code in (0, 1, 2)]
    return ", ".join(f"{count:,} {what}" for count, what in parts)


def _found(open_ones: dict[str, list[str]]) -> Iterator[str]:
    yield "## What was found\n\n"
    yield "| by | what | stays mended by |\n| --- | --- | --- |\n"
    for one in HISTORY:
        test = "**open**" if one.test is None else f"[{Path(one.test).name}](../{one.test})"
        yield f"| {one.where} | {one.what} | {test} |\n"
    still = [f"- {name}: {what}\n" for name, all_of in open_ones.items() for what in all_of]
    if still:
        yield "\nFound in this run and still so:\n\n"
        yield from still
    yield "\n"


def _by_kind(campaign: Campaign, kinds: dict[str, Total]) -> Iterator[str]:
    columns = _columns(kinds)
    yield f"| kind | cases | batches | {' | '.join(columns)} | ms a case |\n"
    yield f"|{' --- |' * (len(columns) + 4)}\n"
    for kind, one in kinds.items():
        cells = [f"{one.notes[what]:,}" for what in columns]
        each = 1000 * one.cpu / one.cases if one.cases else 0
        counts = f"{one.cases:,} | {one.batches}"
        yield f"| {kind} | {counts} | {' | '.join(cells)} | {each:.0f} |\n"
    yield "\n"


def _columns(kinds: dict[str, Total]) -> Sequence[str]:
    """What is counted of cases, the more frequent first."""
    counted = _sum(kinds).notes
    hidden = {"designs", "accepted, another", "kept to change further"}
    return [what for what, count in counted.most_common() if count and what not in hidden]


def _signature(what: str) -> str:
    """What was found, without its numbers."""
    return re.sub(r"\d[\d.,e+-]*|'[^']*'|\"[^\"]*\"", "#", what)[:80]


def _still(state: Path, campaign: Campaign, kinds: dict[str, Total]) -> list[str]:
    """Of each thing that was found, one case again: what still is."""
    firsts: dict[str, dict[str, object]] = {}
    for total in kinds.values():
        for one in total.found:
            firsts.setdefault(_signature(str(one["what"])), one)
    still = []
    for one in firsts.values():
        place = (str(one["kind"]), int(str(one["batch"])), int(str(one["number"])))
        again = replayed(campaign, state, *place).found
        if again or campaign.name == "kills":  # the moment of a kill does not come again
            kind, batch, number = place
            still.append(f"{kind}, {batch}, {number}: {again[0][1] if again else one['what']}")
    return still
