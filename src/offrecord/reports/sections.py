"""The sections of a report, in words for people who never saw the paper."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.promise import Promise
from offrecord.reports.content import Content
from offrecord.reports.page import (
    Block,
    Bullets,
    Commands,
    Facts,
    Listing,
    Page,
    Paragraph,
    Picture,
    Section,
    sentence,
)
from offrecord.reports.pictures import (
    SIDES,
    belief_picture,
    curve_picture,
    influence_picture,
    leakage_picture,
    odds_text,
    rule_picture,
    shown_setting,
)
from offrecord.tables.meaning import erased
from offrecord.text import many, share_text

MECHANISMS = {
    "owner": "walks that see all values and start to release at a random distance from each private"
    " run",
    "best-local": "a coin for each record, weighted by its value and its distance from private"
    " records",
    "window": "windows: everything near a private record, whatever it is",
    "quilt": "the Markov quilt: windows as an older method makes them",
    "3r-constant": "three regions, with one probability for the middle one",
    "3r-relaxed": "three regions, in the paper's closed form",
    "3r-convex": "three regions, by the paper's convex program",
}
_MOST_PROBLEMS = 10


def page_of(content: Content) -> Page:
    """The page of a report: warnings first, then what a reader asks, in this order."""
    sections = [*_alarms(content), _left(content), _promise(content)]
    if content.acting is not None:
        sections += [_inferred(content, *content.acting), _rule(*content.acting)]
    sections += [*_budgets(content), _checked(content), _further(content)]
    return Page(content.certificate.dataset, _lead(content), sections, _foot(content))


def _lead(content: Content) -> str:
    """The release in two sentences."""
    if not content.holds:
        verb = "cannot be judged" if content.is_unjudged else "does not verify"
        return f"The certificate of this release {verb}: what follows is what it claims."
    counts, summary = content.certificate.counts, content.summary
    little = "" if summary is None or not summary.advice else f"Little is left: {summary.advice}. "
    if not counts.private:
        out = many(counts.dropped_chains, "chain")
        gone = f"; {out} with private records went as a whole" if counts.dropped_chains else ""
        return f"{little}In this table of {many(counts.rows, 'row')} no record is private{gone}."
    return (
        f"{little}{many(counts.private, 'private record')} of a table of"
        f" {many(counts.rows, 'row')} stay off the record, and with them what would give them away."
        f" {share_text(content.released)} of the records left."
    )


def _foot(content: Content) -> str:
    certificate, names = content.certificate, content.names
    made = ", ".join(f"{name} {one}" for name, one in sorted(certificate.versions.items()))
    digest = "" if names.digest is None else f" The released table has the SHA-256 {names.digest}."
    key = "" if certificate.key_id is None else f" Key {certificate.key_id}."
    return (
        f"Made from the certificate {names.certificate}; the release was made by {made}.{key}"
        f"{digest} This page holds no redacted value."
    )


def _alarms(content: Content) -> Iterator[Section]:
    if not content.holds:
        more = len(content.problems) - _MOST_PROBLEMS
        reasons = [
            *content.problems[:_MOST_PROBLEMS],
            *([f"… and {more:,} more"] if more > 0 else []),
        ]
        why = "it cannot be judged" if content.is_unjudged else "the certificate does not hold"
        first = Paragraph(f"Do not rely on what follows: {why}.", True)
        yield Section("not-verified", "Not verified", [first, Bullets(reasons)], True)
    if content.warnings:
        yield Section("warnings", "Warnings", [Bullets([*map(sentence, content.warnings)])])


# ---- what left


def _left(content: Content) -> Section:
    certificate, counts = content.certificate, content.certificate.counts
    blocks: list[Block] = [
        Paragraph(
            f"{share_text(content.released)} of {many(content.records, 'record')} left with their"
            " true values.",
            True,
        )
    ]
    columns = certificate.columns
    chains = "one chain" if not columns.by else f"a chain for each {', '.join(columns.by)}"
    step = "" if columns.step is None else f", one step is {columns.step}"
    order = "the order of rows" if columns.order == "row" else columns.order
    rows = [
        ("Table", f"{many(counts.rows, 'row')} in {many(counts.chains, 'chain')}"),
        ("Value", f"{columns.value}, ordered by {order}: {chains}{step}"),
        ("Off the record", _private(content)),
        ("Mechanism", _mechanism(content)),
    ]
    if columns.keep:
        how = "as they are" if columns.keep_all else "emptied where the value is redacted"
        rows.append(("Kept beside it", f"{', '.join(columns.keep)}, {how}"))
    if counts.missing:
        rows.append(("Without a value", f"{many(counts.missing, 'row')}, before anything was done"))
    if counts.dropped_chains:
        values = many(counts.dropped_records, "value")
        rows.append(("Left out", f"{many(counts.dropped_chains, 'chain')} as a whole, {values}"))
    if certificate.growing is not None:
        lag = many(certificate.growing.lag, "step")
        rows.append(("Growing", f"records leave {lag} after they came, or later"))
    blocks.append(Facts(rows))
    if content.summary is not None and certificate.kind == "rules":
        blocks += _compared(content)
    return Section("left", "What left", blocks)


def _private(content: Content) -> str:
    counts, claim = content.certificate.counts, content.certificate.claim
    how = "neighbouring ones are protected together" if claim.protect == "run" else "each by itself"
    return f"{many(counts.private, 'private record')} in {many(counts.runs, 'run')}, {how}"


def _mechanism(content: Content) -> str:
    if content.policy is None:
        whole = "every chain with a private record goes as a whole"
        return whole if content.certificate.kind == "whole chains" else "nothing else has to go"
    name = content.policy.mechanism
    said = f"{name}: {MECHANISMS[name]}" if name in MECHANISMS else name
    choice = content.certificate.choice
    if choice is None or choice.runner_up is None or choice.runner_up_expected is None:
        return said
    return (
        f"{said}. {share_text(choice.expected)} were expected to leave; next came"
        f" {choice.runner_up} with {share_text(choice.runner_up_expected)}"
    )


def _compared(content: Content) -> Iterator[Block]:
    """The release beside what else could have been done."""
    summary, acting, counts = content.summary, content.acting, content.certificate.counts
    if summary is None or acting is None:
        return
    promised = odds_text(acting[0].epsilon)
    rows = [("This release", share_text(summary.released), f"at most {promised}")]
    if summary.window is not None:
        rows.append(("Windows (expected)", share_text(summary.window), f"at most {promised}"))
    left = (content.records - counts.dropped_records - summary.private) / max(content.records, 1)
    reached = f"up to {odds_text(erased(*acting))}"
    rows.append(("Erasing private records alone", share_text(left), reached))
    head = ("", "Released", "Odds between two values of a private record")
    yield Listing("What leaves, and what the rest gives away", head, rows)
    if summary.touched and summary.touched < summary.chains:
        lost = f"; {many(summary.lost, 'chain')} lost everything" if summary.lost else ""
        yield Paragraph(
            f"{summary.touched:,} of {many(summary.chains, 'chain')} hold private records: of"
            f" {many(summary.touched_records, 'record')} there"
            f" {share_text(summary.touched_released)} left{lost}."
        )


# ---- what is promised


def _promise(content: Content) -> Section:
    claim = content.certificate.claim
    blocks: list[Block] = []
    if not content.holds:
        blocks.append(Paragraph("What the certificate claims, and the check does not confirm:"))
    blocks.append(Paragraph(sentence(claim.statement), True))
    validation = None if content.policy is None else content.policy.validation
    if validation is not None and claim.coverage is not None:
        blocks.append(
            Paragraph(
                f"Before the table left, {validation.drawn:,} plausible chains were drawn:"
                f" {validation.above:,} of them exceed it, the worst with odds of"
                f" {odds_text(validation.largest)}."
            )
        )
    if content.acting is not None and claim.coverage is not None:
        chart = leakage_picture(*content.acting)
        blocks.append(Picture("leakage", chart))
    blocks += [Paragraph("It rests on:"), Bullets(list(content.certificate.assumptions))]
    return Section("promise", "What is promised, and on what it rests", blocks)


# ---- what can be inferred


def _inferred(content: Content, policy: TablePolicy, promise: Promise) -> Section:
    assert content.belief is not None
    setting, _ = shown_setting(policy)
    blocks: list[Block] = [
        Picture("belief", belief_picture(content.belief)),
        Paragraph(
            "These are limits for an attacker who knows the model, the rules and everything that"
            " left. What most records give away is less. Records near a private one are why it can"
            " be inferred at all:"
        ),
        Picture("influence", influence_picture(promise, setting.place, policy.epsilon)),
    ]
    return Section("inferred", "What an attacker can infer", blocks)


# ---- the rule

_KINDS = {
    "local": "Each record near a private one has a coin of its own. Its value and its distance"
    " decide how the coin is weighted. Records in L always go, in M at times, in S never.",
    "stopping": "On each side a walk leads away from the private record. It looks at the values it"
    " meets and stops at a random place: what lies before the stop goes, everything from it on"
    " leaves. The line says how likely a record goes; a bar, how likely releasing starts there.",
    "other": "Rules of the mechanism's own kind decide how many records go on each side. The line"
    " says how likely a record goes; a bar, how likely releasing starts there.",
}


def _rule(policy: TablePolicy, promise: Promise) -> Section:
    kind = "local" if policy.is_local else "stopping" if "stopping" in policy.kinds else "other"
    setting, _ = shown_setting(policy)
    which = "a lone private record" if setting.kind == "record" else "a private run"
    place = "" if promise.places is None else f" (at place {setting.place})"
    text = (
        f"The rules around {which}{place}, averaged over all values by the model. {_KINDS[kind]}"
        " They say what may happen to any private record, never what a value was."
    )
    rows = []
    for one, pair in sorted(policy.rules.items())[:12]:
        sides = [
            (
                f"{rule.expected_redactions(promise.mean, one.place, side)[0]:,.1f}",
                f"{rule.reach:,}",
            )
            if rule is not None
            else ("–", "–")
            for rule, side in zip(pair, SIDES, strict=True)
        ]
        name = one.kind if promise.places is None else f"{one.kind} at {one.place}"
        rows.append([name, sides[0][0], sides[1][0], f"{sides[0][1]}, {sides[1][1]}"])
    table = Listing(
        "Records that go besides the private ones, by setting",
        ("Setting", "Expected before", "Expected after", "At most before, after"),
        rows,
    )
    return Section(
        "rule", "The rule", [Paragraph(text), Picture("rule", rule_picture(policy, promise)), table]
    )


def _budgets(content: Content) -> Iterator[Section]:
    """What another ε would leave."""
    if content.acting is None or not content.points:
        return
    claim = content.certificate.claim
    chart = curve_picture(content.points, claim.epsilon, content.released)
    rows = [
        (f"{one.epsilon:.3g}", odds_text(one.epsilon), share_text(one.utility))
        for one in content.points
    ]
    text = (
        "Expected of windows for this very table, from positions and model alone, estimated on a"
        " few hundred plausible chains. A smaller ε protects more and releases less. The diamond is"
        " what left."
    )
    listing = Listing("The same in numbers", ("ε", "Odds allowed", "Windows release"), rows)
    title = "What another budget would leave"
    yield Section("budgets", title, [Paragraph(text), Picture("budgets", chart), listing])


# ---- what was checked


def _checked(content: Content) -> Section:
    certificate = content.certificate
    blocks: list[Block] = []
    if content.verdict is not None:
        blocks.append(Paragraph(sentence(content.verdict.headline), True))
        blocks.append(Bullets(list(content.verdict.checked)))
        if content.verdict.not_checked:
            blocks += [Paragraph("Not checked:"), Bullets(list(content.verdict.not_checked))]
    else:
        blocks.append(
            Paragraph("This page was made with the release, before anybody else checked it.", True)
        )
    if certificate.kind != "rules":
        return Section("checked", "What was checked, and what was not", blocks)
    tested = [one for one in certificate.verdicts if one.epsilon == certificate.claim.epsilon]
    for one in tested:
        blocks.append(Paragraph(f"The model's own test, at this ε. {sentence(one.words())}"))
    if not tested:
        blocks.append(Paragraph("Nobody tested the model at this ε in held-back records."))
    accepted = certificate.evidence.accepted
    if accepted:
        blocks += [Paragraph("Objections that the publisher accepted:"), Bullets(list(accepted))]
    return Section("checked", "What was checked, and what was not", blocks)


def _further(content: Content) -> Section:
    """How to verify."""
    names = content.names
    released, certificate = _file(names.released or "RELEASED"), _file(names.certificate)
    listed = " --private-list LIST" if content.certificate.private.positions is None else ""
    beside = certificate == f"{released}.certificate.json"
    attack = f"offrecord attack {shlex.quote(released)}"
    attack += "" if beside else f" --certificate {shlex.quote(certificate)}"
    files = f"{shlex.quote(certificate)} {shlex.quote(released)}"
    why = "; LIST names the private records" if listed else ""
    rows = [
        (f"Check the certificate and the table{why}", f"offrecord verify {files}{listed}"),
        ("Infer what an attacker could", attack + listed),
    ]
    return Section("verify", "How to verify it", [Commands(rows)])


def _file(name: str) -> str:
    """A name that is not taken for an option."""
    return f"./{name}" if name.startswith("-") else name
