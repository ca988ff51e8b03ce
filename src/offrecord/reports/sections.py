"""The sections of a report, in words for people who never saw the paper."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from offrecord.files import certificate_beside
from offrecord.mechanisms.rules import Pair, Setting
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.promise import Promise
from offrecord.reports import html
from offrecord.reports.html import bullets, facts, main_point, paragraph, picture, section
from offrecord.reports.pictures import (
    SIDES,
    belief_picture,
    curve_picture,
    drawn,
    influence_picture,
    leakage_picture,
    rule_picture,
    shown_setting,
)
from offrecord.tables.meaning import erased
from offrecord.tables.summary import Summary, left_out
from offrecord.text import many, odds, share_text, worst_odds

if TYPE_CHECKING:
    from offrecord.reports.report import Report

MECHANISMS = {
    "owner": "on each side of a private run everything is redacted up to a random distance, which"
    " the values there make longer or shorter",
    "best-local": "a coin for each record, weighted by its value and its distance from private"
    " records",
    "window": "windows: everything near a private record, whatever it is",
    "quilt": "the Markov quilt: windows as an older method makes them",
    "3r-constant": "three regions, with one probability for the middle one",
    "3r-relaxed": "three regions, in the paper's closed form",
    "3r-convex": "three regions, by the paper's convex program",
}
_KINDS = {
    "local": "Each record near a private one has a coin of its own. Its value and its distance"
    " decide how the coin is weighted. Records in L always go, in M at times, in S never.",
    "stopping": "On each side everything is redacted up to a random distance, and everything beyond"
    " it is released. The values near the private record decide which distances are likely. The"
    " line says how likely a record is redacted; a bar, how likely releasing starts there.",
    "other": "Rules of the mechanism's own kind decide how many records are redacted on each side."
    " The line says how likely a record is redacted; a bar, how likely releasing starts there.",
}
_MOST_PROBLEMS, _MOST_SETTINGS = 10, 12  # that are listed: a table may have thousands


def page_of(report: Report) -> str:
    """The page of a report: warnings first, then what a reader asks, in this order."""
    sections = [*_alarms(report), _left(report), _promise(report)]
    if report.acting is not None:
        sections += [_inferred(report, *report.acting), _rule(*report.acting)]
    sections += [*_budgets(report), _checked(report), _further(report)]
    return html.page(report.certificate.dataset, lead(report), sections, _foot(report))


def lead(report: Report) -> str:
    """The release in two sentences."""
    if not report.holds:
        verb = "cannot be judged" if report.is_unjudged else "does not verify"
        return f"The certificate of this release {verb}: what follows is what it claims."
    counts, summary = report.certificate.counts, report.summary
    little = "" if summary is None or not summary.advice else f"Little is left: {summary.advice}. "
    table = many(counts.rows, "row")
    left = f"{share_text(report.released)} of the records left."
    if not counts.private and not counts.dropped_chains:
        return f"{little}In this table of {table} no record is private."
    if not counts.private:
        return f"{little}{_sentence(_left_out(report))} This leaves a table of {table}. {left}"
    out = f" {_sentence(_left_out(report))}" if counts.dropped_chains else ""
    return (
        f"{little}{many(counts.private, 'private record')} of a table of {table} stay off the"
        f" record, and with them what would give them away.{out} {left}"
    )


def _left_out(report: Report) -> str:
    # A certificate counts chains alone.
    summary, chains = report.summary, report.certificate.counts.dropped_chains
    if summary is not None:
        return left_out(summary.dropped, summary.dropped_private)
    return f"{many(chains, 'chain')} with private records {'is' if chains == 1 else 'are'} left out"


def _foot(report: Report) -> str:
    certificate = report.certificate
    made = ", ".join(f"{name} {one}" for name, one in sorted(certificate.versions.items()))
    digest = (
        "" if report.digest is None else f" The released table has the SHA-256 {report.digest}."
    )
    key = "" if certificate.key_id is None else f" Key {certificate.key_id}."
    return (
        f"Made from the certificate {report.file}; the release was made by {made}.{key}{digest}"
        " This page holds no redacted value."
    )


def _alarms(report: Report) -> Iterator[str]:
    # first of all: a reader who stops early has read what matters
    if not report.holds:
        more = len(report.problems) - _MOST_PROBLEMS
        reasons = [*report.problems[:_MOST_PROBLEMS], *([f"… and {more:,} more"] * (more > 0))]
        why = "it cannot be judged" if report.is_unjudged else "the certificate does not hold"
        blocks = [main_point(f"Do not rely on what follows: {why}."), bullets(reasons)]
        yield section("not-verified", "Not verified", blocks, is_alarm=True)
    if report.warnings:
        yield section("warnings", "Warnings", [bullets(map(_sentence, report.warnings))])


def _sentence(text: str) -> str:
    # A text that begins and ends as one.
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


# ---- what left


def _left(report: Report) -> str:
    said = f"{share_text(report.released)} of {many(report.records, 'record')} left with their"
    listed = facts([*_table_facts(report), *_further_facts(report)])
    point = main_point(f"{said} true values.")
    return section("left", "What left", [point, listed, *_compared(report)])


def _table_facts(report: Report) -> Iterator[tuple[str, str]]:
    counts, columns = report.certificate.counts, report.certificate.columns
    yield "Table", f"{many(counts.rows, 'row')} in {many(counts.chains, 'chain')}"
    chains = "one chain" if not columns.by else f"a chain for each {', '.join(columns.by)}"
    step = "" if columns.step is None else f", one step is {columns.step}"
    order = "the order of rows" if columns.order == "row" else columns.order
    yield "Value", f"{columns.value}, ordered by {order}: {chains}{step}"
    is_run = report.certificate.claim.protect == "run"
    how = "neighbouring ones are protected together" if is_run else "each by itself"
    if counts.private or not counts.dropped_chains:
        private = f"{many(counts.private, 'private record')} in {many(counts.runs, 'run')}"
        yield "Off the record", f"{private}, {how}"
    yield "Mechanism", _mechanism(report)


def _further_facts(report: Report) -> Iterator[tuple[str, str]]:
    # What there is to say of some tables.
    certificate, columns = report.certificate, report.certificate.columns
    if columns.keep:
        how = "as they are" if columns.keep_all else "emptied where the value is redacted"
        yield "Kept beside it", f"{', '.join(columns.keep)}, {how}"
    counts = certificate.counts
    if counts.missing:
        yield "Without a value", f"{many(counts.missing, 'row')}, before anything was done"
    if counts.dropped_chains:
        yield "Left out", f"{_left_out(report)}: {many(counts.dropped_records, 'value')}"
    if certificate.growing is not None:
        lag = many(certificate.growing.lag, "step")
        yield "Growing", f"records leave {lag} after they came, or later"


def _mechanism(report: Report) -> str:
    if report.policy is None:
        whole = "every chain with a private record goes as a whole"
        return whole if report.certificate.kind == "whole chains" else "nothing else has to go"
    name = report.policy.mechanism
    said = f"{name}: {MECHANISMS[name]}" if name in MECHANISMS else name
    choice = report.certificate.choice
    if choice is None or choice.runner_up is None or choice.runner_up_expected is None:
        return said
    return (
        f"{said}. {share_text(choice.expected)} were expected to leave; next came"
        f" {choice.runner_up} with {share_text(choice.runner_up_expected)}"
    )


def _compared(report: Report) -> Iterator[str]:
    summary, acting = report.summary, report.acting
    if summary is None or acting is None:
        return
    # the leakage that was found is below ε, but only ε is promised
    promised = f"at most {odds_text(acting[0].epsilon)}"
    rows = [("This release", share_text(summary.released), promised)]
    if summary.window is not None:
        rows.append(("Windows (expected)", share_text(summary.window), promised))
    kept = report.records - report.certificate.counts.dropped_records - summary.private
    left, reached = share_text(kept / max(report.records, 1)), odds_text(erased(*acting))
    rows.append(("Erasing private records alone", left, f"up to {reached}"))
    head = ("", "Released", "Odds between two values of a private record")
    yield html.table("What leaves, and what the rest gives away", head, rows)
    yield from _touched(summary)


def _touched(summary: Summary) -> Iterator[str]:
    # What is left of chains with private records, unless all chains have one.
    if not 0 < summary.touched < summary.chains:
        return
    lost = f"; {many(summary.lost, 'chain')} lost everything" if summary.lost else ""
    yield paragraph(
        f"{summary.touched:,} of {many(summary.chains, 'chain')} hold private records: of"
        f" {many(summary.touched_records, 'record')} there"
        f" {share_text(summary.touched_released)} left{lost}."
    )


# ---- what is promised


def _promise(report: Report) -> str:
    acting, claim, blocks = report.acting, report.certificate.claim, []
    if not report.holds:
        blocks.append(paragraph("What the certificate claims, and the check does not confirm:"))
    blocks.append(main_point(_claimed(report)))
    if claim.coverage is not None:
        blocks += _draws(report)
        blocks += [] if acting is None else [picture("leakage", leakage_picture(*acting))]
    blocks += [paragraph("It rests on:"), bullets(report.certificate.assumptions)]
    return section("promise", "What is promised, and on what it rests", blocks)


def _draws(report: Report) -> Iterator[str]:
    validation = None if report.policy is None else report.policy.validation
    if validation is not None:
        yield paragraph(
            f"Before the table left, {validation.drawn:,} plausible chains were drawn:"
            f" {validation.above:,} of them exceed it, {worst_odds(validation.largest)}."
        )


def _claimed(report: Report) -> str:
    # What the certificate states, in odds, as all of the page.
    claim = report.certificate.claim
    if report.certificate.kind != "rules":
        return _sentence(claim.statement)
    chains = "Under every chain of the model"
    if claim.coverage is not None:
        share = f"{claim.coverage:.0%}".replace("%", " %")
        chains = f"In at least {share} of the chains that the model's counts leave plausible"
    return (
        f"{chains}, no output gives odds of more than {odds_text(claim.epsilon)} between two values"
        " of a private record (or run)."
    )


def _inferred(report: Report, policy: TablePolicy, promise: Promise) -> str:
    assert report.belief is not None
    setting, _ = shown_setting(policy)
    text = (
        "These are limits for an attacker who knows the model, the rules and everything that left."
        " What most records give away is less. Records near a private one are why it can be"
        " inferred at all:"
    )
    blocks = [
        picture("belief", belief_picture(report.belief)),
        paragraph(text),
        picture("influence", influence_picture(promise, setting.place, policy.epsilon)),
    ]
    return section("inferred", "What an attacker can infer", blocks)


# ---- the rule


def _rule(policy: TablePolicy, promise: Promise) -> str:
    kind = "local" if policy.is_local else "stopping" if "stopping" in policy.kinds else "other"
    setting, _ = shown_setting(policy)
    which = "a lone private record" if setting.kind == "record" else "a private run"
    place = "" if promise.places is None else f" (at place {setting.place})"
    # never a walk that was drawn: where one stopped says what the values were
    text = (
        f"The rules around {which}{place}, averaged over all values by the model. {_KINDS[kind]}"
        " They say what may happen to any private record, never what a value was."
    )
    listed = html.table(
        "Records that go besides the private ones, by setting",
        ("Setting", "Expected before", "Expected after", "At most before, after"),
        [_setting_row(*one, promise) for one in sorted(policy.rules.items())[:_MOST_SETTINGS]],
    )
    blocks = [paragraph(text), picture("rule", rule_picture(policy, promise)), listed]
    return section("rule", "The rule", blocks)


def _setting_row(setting: Setting, pair: Pair, promise: Promise) -> list[str]:
    sides = list(zip(pair, SIDES, strict=True))
    # at the end of a chain there is no such side
    reach = ["–" if rule is None else f"{rule.reach:,}" for rule, _ in sides]
    expected = [
        "–"
        if rule is None
        else f"{rule.expected_redactions(promise.mean, setting.place, side)[0]:,.1f}"
        for rule, side in sides
    ]
    name = setting.kind if promise.places is None else f"{setting.kind} at {setting.place}"
    return [name, *expected, ", ".join(reach)]


def _budgets(report: Report) -> Iterator[str]:
    if report.acting is None or not report.points:
        return
    chart = curve_picture(report.points, report.certificate.claim.epsilon, report.released)
    text = (
        "What windows are expected to release of this very table, by positions and model alone. A"
        " smaller ε protects more and releases less. The diamond is what left. Other budgets are"
        f" estimated from {many(drawn(report.acting[1]).count, 'plausible chain')}, where windows"
        " that act are designed with thousands: they may release somewhat less than is shown."
    )
    rows = [
        (f"{one.epsilon:.3g}", odds_text(one.epsilon), share_text(one.utility))
        for one in report.points
    ]
    listed = html.table("The same in numbers", ("ε", "Odds allowed", "Windows release"), rows)
    blocks = [paragraph(text), picture("budgets", chart), listed]
    yield section("budgets", "What another budget would leave", blocks)


# ---- what was checked


def _checked(report: Report) -> str:
    blocks = [*_verdict(report), *(_tests(report) if report.certificate.kind == "rules" else ())]
    return section("checked", "What was checked, and what was not", blocks)


def _verdict(report: Report) -> Iterator[str]:
    verdict = report.verdict
    if verdict is None:
        yield main_point("This page was made with the release, before anybody else checked it.")
        return
    yield main_point(_sentence(verdict.headline))
    yield bullets(verdict.checked)
    if verdict.not_checked:
        yield paragraph("Not checked:")
        yield bullets(verdict.not_checked)


def _tests(report: Report) -> Iterator[str]:
    certificate = report.certificate
    tested = [one for one in certificate.verdicts if one.epsilon == certificate.claim.epsilon]
    for one in tested:
        yield paragraph(f"The model's own test, at this ε. {_sentence(one.words())}")
    if not tested:
        yield paragraph("Nobody tested the model at this ε in held-back records.")
    if certificate.evidence.accepted:
        yield paragraph("Objections that the publisher accepted:")
        yield bullets(certificate.evidence.accepted)


def _further(report: Report) -> str:
    released, certificate = _file(report.table or "RELEASED"), _file(report.file)
    # without them a check cannot say which cells should be empty
    is_unlisted = report.certificate.private.positions is None
    listed = " --private-list LIST" if is_unlisted else ""
    why = "; LIST names the private records" if is_unlisted else ""
    is_beside = report.file == certificate_beside(Path(report.table or "RELEASED")).name
    elsewhere = "" if is_beside else f" --certificate {shlex.quote(certificate)}"
    files = f"{shlex.quote(certificate)} {shlex.quote(released)}"
    attack = f"offrecord attack {shlex.quote(released)}{elsewhere}{listed}"
    rows = [
        (f"Check the certificate and the table{why}", f"offrecord verify {files}{listed}"),
        ("Infer what an attacker could", attack),
    ]
    return section("verify", "How to verify it", [html.commands(rows)])


def _file(name: str) -> str:
    # A name that is not taken for an option.
    return f"./{name}" if name.startswith("-") else name


def odds_text(leakage: float) -> str:
    """A log-ratio as odds."""
    return f"{odds(leakage)} to 1"
