"""What left, beside what other ways would have let go."""

from __future__ import annotations

from collections.abc import Iterator

from offrecord.reports.content import Content, Left
from offrecord.reports.page import UNKNOWN, Block, Listing, Paragraph, Section
from offrecord.text import many, odds, odds_at_least, share_text


def left_section(content: Content) -> Section:
    """What left, beside what other ways would have let go."""
    left, counts = content.left, content.certificate.counts
    blocks: list[Block] = []
    if left.released is None or left.records is None or left.kept_back is None:
        why = "give the released table too, to count them"
        if not content.checked.holds:
            why = "nothing was counted, as the certificate does not hold"
        elif content.certificate.growing is not None:
            why = "the table grows, and files do not tell what waits from what is redacted"
        blocks.append(Paragraph(f"How many records left is {UNKNOWN}: {why}.", True))
        return Section("left", "What left", blocks)
    blocks.append(
        Paragraph(
            f"{share_text(left.released)} of {many(left.records, 'record')} left with their true"
            f" values; {many(left.kept_back, 'record')} did not.",
            True,
        )
    )
    if left.waiting:
        blocks.append(
            Paragraph(
                f"{many(left.waiting, 'record')} more wait until no later opt-out can reach them;"
                " they count nowhere here."
            )
        )
    blocks.append(_compared(content, left))
    blocks += [Paragraph(text) for text in _touched(left, counts.chains)]
    if left.regions is not None:
        blocks.append(
            Listing(
                "Records by what the rule does with them",
                ("Region", "Records", "Means"),
                [
                    ("private", f"{left.regions['private']:,}", "off the record"),
                    ("L", f"{left.regions['L']:,}", "always redacted: so near that it would tell"),
                    ("M", f"{left.regions['M']:,}", "redacted at times, by a coin"),
                    ("S", f"{left.regions['S']:,}", "always released: far enough to protect"),
                ],
            )
        )
    return Section("left", "What left", blocks)


def _compared(content: Content, left: Left) -> Listing:
    """The release beside what else could have been done."""
    claim = content.certificate.claim
    assert left.released is not None
    at_most = f"{odds(claim.leakage)} to 1"
    rows = [("This release", share_text(left.released), f"at most {at_most}")]
    window = UNKNOWN if left.window is None else share_text(left.window)
    rows.append(("Windows, whatever the values are", window, f"at most {odds(claim.epsilon)} to 1"))
    erased = UNKNOWN if left.erased is None else share_text(left.erased)
    rows.append(("Erasing private records alone", erased, _erasure(left)))
    return Listing(
        "Share of records that leave, and what the rest tells about a private one",
        ("", "Released", "Odds between two values of a secret"),
        rows,
    )


def _erasure(left: Left) -> str:
    if left.erasure is None:
        return UNKNOWN if left.regions is None else "not computed for this model"
    if left.erasure_is_least:
        return f"at least {odds_at_least(left.erasure)} to 1"
    return f"{odds(left.erasure)} to 1"


def _touched(left: Left, chains: int) -> Iterator[str]:
    if left.touched is None or left.touched_records is None or left.touched_released is None:
        yield (
            "What it came to in the chains that hold private records is"
            f" {UNKNOWN}: which ones these are, they do not say."
        )
        return
    if left.touched == 0:
        return
    where = "The only chain holds" if chains == 1 else f"{left.touched:,} of {chains:,} chains hold"
    if left.touched == 1 < chains:
        where = f"1 of {chains:,} chains holds"
    yield (
        f"{where} private records: of {many(left.touched_records, 'record')} there"
        f" {share_text(left.touched_released)} left."
    )
    if left.lost:
        closed = ""
        if left.closed:
            closed = f", {left.closed:,} of them by the rule, whatever the values are"
        may = " A larger ε may spare some." if left.touched_records != left.private else ""
        yield f"{many(left.lost, 'chain')} lost everything{closed}.{may}"
    else:
        yield "No chain lost everything."
