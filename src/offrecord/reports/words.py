"""What a report says, in words for someone who never saw the paper."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence

from offrecord.charts import budgets_chart, rule_chart
from offrecord.models.audited import Audited
from offrecord.reports.around import Around, Cost, Step
from offrecord.reports.content import Content, Left
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
)
from offrecord.text import many, odds, odds_at_least, share_text

UNKNOWN = "not known from these files"
_MOST_RULES = 30  # rows of the table of a rule
_MOST_COSTS = 12  # rows of the table of costs
_KINDS = {
    "local": "Each record beside it draws a coin of its own. What its value is decides how the coin"
    " is weighted, and how far away it is.",
    "owner": "A walk leads away from it on each side, looks at the values it meets, and stops at a"
    " random place; what lies before the stop is redacted, all from it on is released.",
}
_MECHANISMS = {
    "owner": "the owner's mechanism: whoever redacts sees all values, and begins to release at a"
    " random distance from each private record",
    "best-local": "the best local mechanism: each record is redacted by a coin of its own, which"
    " its value and its distance from private records weight",
    "window": "windows: around each private record all is redacted, whatever it is",
    "quilt": "the Markov quilt: windows as an older method makes them",
    "3r-constant": "three regions, with one probability for the middle one",
    "3r-relaxed": "three regions, with the paper's closed form",
    "3r-convex": "three regions, with the paper's convex programme",
}


def page_of(content: Content) -> Page:
    """The page of a report, warnings first."""
    certificate = content.certificate
    sections = [
        *_warnings(content),
        _asked(content),
        _left(content),
        _promise(content),
        _belief(content),
        _rule(content),
        _curve(content),
        _costs(content),
        _further(content),
    ]
    made = ", ".join(f"{name} {one}" for name, one in sorted(certificate.versions.items()))
    digest = content.names.digest
    of_table = "" if digest is None else f" The released table has the SHA-256 {digest}."
    key = "" if certificate.key_id is None else f" Key {certificate.key_id}."
    foot = (
        f"Made of the certificate {content.names.certificate}: its release was made by {made}."
        f"{key}{of_table} This page holds no redacted value."
    )
    return Page(certificate.dataset, _lead(content), sections, foot)


def _lead(content: Content) -> str:
    """The release in two sentences."""
    if not content.checked.holds:
        return "The certificate of this release does not verify: what follows is what it claims."
    counts, left = content.certificate.counts, content.left
    protected = (
        f"{many(counts.private, 'private record')} of a table of {counts.rows:,} rows"
        f" {'was' if counts.private == 1 else 'were'} taken off the record, and with"
        f" {'it' if counts.private == 1 else 'them'} what would give"
        f" {'it' if counts.private == 1 else 'them'} away."
    )
    if counts.private == 0:
        protected = f"Of a table of {counts.rows:,} rows no record is private."
    if left.released is None:
        return protected
    return f"{protected} {share_text(left.released)} of the records left."


# ---- warnings


def _warnings(content: Content) -> Iterator[Section]:
    """What must not be missed, if there is something."""
    problems = content.checked.problems
    if problems:
        told = [Paragraph("Do not rely on what follows: the certificate does not hold.", True)]
        more = [f"… and {len(problems) - 10:,} more"] if len(problems) > 10 else []
        yield Section(
            "not-verified", "Not verified", [*told, Bullets([*problems[:10], *more])], True
        )
    if content.warnings:
        yield Section("warnings", "Warnings", [Bullets([_sentence(w) for w in content.warnings])])


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


# ---- what was asked


def _asked(content: Content) -> Section:
    certificate = content.certificate
    claim, columns, counts = certificate.claim, certificate.columns, certificate.counts
    chains = "one chain" if not columns.by else f"a chain for each {', '.join(columns.by)}"
    order = "the order of rows" if columns.order == "row" else columns.order
    step = "" if columns.step is None else f", one step is {columns.step}"
    protect = "neighbouring private records count as one secret"
    if claim.protect == "each":
        protect = "each private record is a secret of its own"
    rows = [
        ("Data set", certificate.dataset),
        ("Table", f"{many(counts.rows, 'row')} in {many(counts.chains, 'chain')}"),
        ("Value", f"{columns.value}, ordered by {order}: {chains}{step}"),
        (
            "Off the record",
            f"{many(counts.private, 'private record')}, {many(counts.secrets, 'secret')}:"
            f" {protect}",
        ),
        ("Budget", f"ε = {claim.epsilon:g}: odds may change by {odds(claim.epsilon)} to 1 at most"),
        ("Mechanism", _mechanism(content)),
    ]
    if columns.keep:
        how = "as they are" if columns.keep_all else "emptied where the value is redacted"
        rows.append(("Kept beside it", f"{', '.join(columns.keep)}, {how}"))
    if counts.missing:
        rows.append(("Without a value", f"{many(counts.missing, 'row')}, before anything was done"))
    growing = certificate.growing
    if growing is not None:
        rows.append(
            ("Growing", f"records leave {many(growing.lag, 'step')} after they came, or later")
        )
    joint = certificate.joint
    if joint is not None:
        with_ = many(len(joint.releases), "earlier release")
        told = "infinitely much" if math.isinf(joint.leakage) else f"odds of {odds(joint.leakage)}"
        rows.append(("Judged together", f"with {with_}: together they tell {told} to 1 at most"))
    return Section("asked", "What was asked", [Facts(rows)])


def _mechanism(content: Content) -> str:
    name = content.certificate.claim.mechanism
    said = f"{name}, {_MECHANISMS[name]}" if name in _MECHANISMS else name
    return said if content.unserved is None else f"{said} ({content.unserved})"


# ---- what left


def _left(content: Content) -> Section:
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
        yield f"{many(left.lost, 'chain')} lost everything{closed}. A larger ε may spare some."
    else:
        yield "No chain lost everything."


# ---- the promise


def _promise(content: Content) -> Section:
    certificate, claim = content.certificate, content.certificate.claim
    blocks: list[Block] = []
    if not content.checked.holds:
        blocks.append(Paragraph("What the certificate claims, and the verifier does not confirm:"))
    if certificate.counts.secrets == 0:
        blocks.append(Paragraph("No record is private, so nothing is promised.", True))
    elif content.meaning is not None:
        blocks.append(Paragraph(_sentence(str(content.meaning)), True))
    bound = "" if claim.leakage_is_exact else ", an upper bound"
    blocks.append(
        Paragraph(
            f"Whatever left, it is at most {odds(claim.leakage)} times as likely under one value of"
            f" a secret as under another{bound}. Allowed were e^{claim.epsilon:g} ="
            f" {odds(claim.epsilon)}."
        )
    )
    if content.meaning is None and certificate.counts.secrets:
        blocks.append(
            Paragraph(
                "How likely the values of private records are by the model depends on their places,"
                f" and these are {UNKNOWN}."
            )
        )
    blocks.append(Paragraph(f"This is promised for {content.models}."))
    blocks.append(Paragraph(_checked(content)))
    blocks.append(Paragraph("It rests on:"))
    blocks.append(Bullets(list(certificate.assumptions)))
    return Section("promise", "What is promised", blocks)


def _checked(content: Content) -> str:
    checked = content.checked
    if not checked.holds:
        return "The verifier does not confirm it: see the top of this page."
    if checked.what is None:
        return (
            "Before the table left, every design was proven once more, by a verifier that shares no"
            " code with what made it."
        )
    return (
        f"The verifier, which shares no code with what made them, confirms {checked.what}: designs"
        f" tell at most {checked.told:.6g}, where {content.certificate.claim.epsilon:g} is allowed."
    )


# ---- belief


def _belief(content: Content) -> Section:
    learned, check = content.certificate.learned, content.certificate.model_check
    blocks: list[Block] = []
    if learned is None:
        blocks.append(
            Paragraph("Nobody looked: the model does not say what it was learned from.", True)
        )
    elif learned.audit is None:
        blocks.append(Paragraph("Nobody checked the promise in data that were held back.", True))
    else:
        audit = Audited(**vars(learned.audit))
        blocks.append(Paragraph(f"The audit calls the model {audit.short}.", True))
        blocks.append(Paragraph(_audited(audit)))
    if learned is not None:
        blocks.append(Paragraph(f"The fit says of itself: {learned.verdict}"))
        if learned.calibration is not None:
            blocks.append(
                Paragraph(f"Calibrated until the audit passed: {learned.calibration} (empirical).")
            )
    compared = check.compared
    if compared is not None:
        blocks.append(
            Paragraph(
                f"{compared.transitions:,} released transitions were compared with the model: a"
                f" table that follows it differs as much in {_chance(compared.p_value)}."
            )
        )
    return Section("belief", "Can the model be believed?", blocks)


def _audited(audit: Audited) -> str:
    """What an audit did, in plain numbers."""
    counted = "infinitely many" if math.isinf(audit.odds) else f"{audit.odds:.3g}"
    return (
        f"Held back were {audit.held_back}. In these data odds of {counted} to 1 were counted where"
        f" they exceed the promise most; chance allowed for, at least {audit.at_least:.3g} to 1."
        f" Designs for ε = {audit.epsilon:g} promise {audit.promised:.3g} to 1. What tells:"
        f" {audit.where}."
    )


def _chance(p_value: float) -> str:
    if p_value >= 0.095:
        return f"{p_value:.0%} of cases"
    return "less than 1 of a million cases" if p_value < 1e-6 else f"{100 * p_value:.2g} % of cases"


# ---- the rule


def _rule(content: Content) -> Section:
    around = content.around
    title = "Around one private record"
    if around is None:
        return Section("rule", title, [Paragraph("No private record stands alone in this table.")])
    how = _KINDS.get(around.kind, "")
    counts = around.counts
    shown = (
        f"Of the records shown {counts['L']} are always redacted (L), {counts['M']} at times (M)"
        f" and {counts['S']} never (S)."
    )
    long = "" if around.length == 1 else f", here a run of {around.length} records"
    text = (
        f"The rule, as most private records have it{long}. {how} It shows what may happen to any of"
        " them, never what a value was."
    )
    rows = [
        {"distance": step.distance, "name": name, "redaction": chance, "region": step.region}
        for step in around.steps
        for name, chance in zip(around.names[: around.drawn], step.rule, strict=False)
    ]
    picture = Picture(
        "rule",
        "How likely the records around a private one are redacted",
        f"{shown} {_described(around)}",
        rule_chart(rows, around.names[: around.drawn]),
    )
    table = Listing(
        "The same in numbers: records before (−) and after the private one",
        ("Records", "Region", *around.names),
        _stretches(around),
        is_detail=True,
    )
    return Section("rule", title, [Paragraph(text), picture, table])


def _described(around: Around) -> str:
    """The lines of the picture, in words."""
    reach = [step.distance for step in around.steps if step.region in ("L", "M")]
    if not reach:
        return "Nothing but the private record itself is redacted."
    before, after = -min(*reach, 0), max(*reach, 0)
    return (
        f"Redaction reaches {many(before, 'record')} before and {many(after, 'record')} after the"
        " private one."
    )


def _stretches(around: Around) -> list[list[str]]:
    """The rule by stretches of equal records."""
    rows: list[list[str]] = []
    begun: Step | None = None
    last: Step | None = None

    def end() -> None:
        if begun is not None and last is not None:
            rows.append([_span(begun.distance, last.distance), begun.region, *map(_p, begun.rule)])

    for step in around.steps:
        same = begun is not None and (begun.region, begun.rule) == (step.region, step.rule)
        if not same:
            end()
            begun = step
        last = step
    end()
    if len(rows) > _MOST_RULES:
        half = _MOST_RULES // 2
        rows = [*rows[:half], ["…", "", *[""] * len(around.names)], *rows[-half:]]
    return rows


def _span(low: int, high: int) -> str:
    def signed(number: int) -> str:
        return f"{number:+d}".replace("-", "−") if number else "0"

    return signed(low) if low == high else f"{signed(low)} to {signed(high)}"


def _p(chance: float) -> str:
    return f"{chance:.4g}"


# ---- other budgets


def _curve(content: Content) -> Section:
    curve, claim, left = content.curve, content.certificate.claim, content.left
    title = "What another budget would release"
    if not curve.points:
        why = curve.why or "nothing is known of other budgets"
        return Section("budgets", title, [Paragraph(_sentence(f"not drawn: {why}"))])
    rows = [point._asdict() for point in curve.points]
    sample = ""
    if curve.every > 1:
        sample = f" It is estimated from 1 in {curve.every:,} chains of this table."
    text = (
        "Expected for this very table, by the rule and the model, without a second look at a value:"
        " a smaller ε protects more and releases less." + sample
    )
    picture = Picture(
        "budgets",
        "Share of records released over the privacy budget",
        _told(content),
        budgets_chart(rows, curve.mechanisms, claim.epsilon, left.released),
    )
    by_budget: dict[float, dict[str, float]] = {}
    for point in curve.points:
        by_budget.setdefault(point.epsilon, {})[point.mechanism] = point.released
    table = Listing(
        "The same in numbers: expected share of records released",
        ("ε", "Odds allowed", *curve.mechanisms),
        [
            [
                f"{epsilon:.3g}{' (chosen)' if epsilon == claim.epsilon else ''}",
                f"{odds(epsilon)} to 1",
                *(share_text(told[one]) if one in told else "–" for one in curve.mechanisms),
            ]
            for epsilon, told in sorted(by_budget.items())
        ],
        is_detail=True,
    )
    return Section("budgets", title, [Paragraph(text), picture, table])


def _told(content: Content) -> str:
    """The curve in words: from which share it rises to which."""
    curve, epsilon = content.curve, content.certificate.claim.epsilon
    said = []
    for name in curve.mechanisms:
        mine = sorted(point for point in curve.points if point.mechanism == name)
        low, high = mine[0], mine[-1]
        said.append(
            f"{name}: from {share_text(low.released)} at ε = {low.epsilon:.3g} to"
            f" {share_text(high.released)} at ε = {high.epsilon:.3g}"
        )
    released = content.left.released
    this = "" if released is None else f"; this release let {share_text(released)} go"
    return f"{'; '.join(said)}. Chosen was ε = {epsilon:g}{this}."


# ---- what opt-outs cost


def _costs(content: Content) -> Section:
    title = "What each opt-out cost"
    counts = content.certificate.counts
    if not content.costs:
        return Section("costs", title, [Paragraph("No record is private.")])
    known = sum(cost.secrets for cost in content.costs)
    mean = sum(cost.secrets * cost.expected for cost in content.costs) / known
    about = "" if known == counts.secrets else f" (of {known:,} of {counts.secrets:,} secrets)"
    blocks: list[Block] = [
        Paragraph(
            f"Beside itself, a secret takes {_few(mean)} expected to be redacted with it, on"
            f" average{about}.",
            True,
        ),
        Paragraph(
            "Counted is each secret as if no other were near; what near ones redact between them is"
            " counted for each. How much it is depends on how many records lie beside a secret, up"
            " to where more make no difference."
        ),
        Listing(
            "Expected redactions beside a secret, by its surroundings",
            ("Secret", "How many", "Records before, after", "Expected redactions", "Window"),
            _cost_rows(content.costs),
        ),
    ]
    if content.named:
        columns = content.certificate.private.positions
        assert columns is not None
        more = "" if len(content.named) >= counts.secrets else ", the most expensive first"
        blocks.append(
            Listing(
                f"By name, as the certificate publishes which records are private{more}",
                (*columns.columns, "Records", "Expected redactions"),
                [[*one.name, f"{one.records:,}", _number(one.expected)] for one in content.named],
                is_detail=True,
            )
        )
    return Section("costs", title, blocks)


def _cost_rows(costs: Sequence[Cost]) -> list[list[str]]:
    rows = [
        [
            _secret(cost),
            f"{cost.secrets:,}",
            f"{cost.rooms[0]:,}, {cost.rooms[1]:,}",
            _number(cost.expected),
            f"{cost.window:,}",
        ]
        for cost in costs[:_MOST_COSTS]
    ]
    rest = costs[_MOST_COSTS:]
    if rest:
        count = sum(cost.secrets for cost in rest)
        mean = sum(cost.secrets * cost.expected for cost in rest) / count
        window = sum(cost.secrets * cost.window for cost in rest) / count
        about = f"{many(len(rest), 'other surrounding')}, on average"
        rows.append([about, f"{count:,}", "", _number(mean), _number(window)])
    return rows


def _secret(cost: Cost) -> str:
    if cost.is_cluster:
        return f"near ones within {cost.length} records, together"
    return "a single record" if cost.length == 1 else f"a run of {cost.length} records or more"


def _number(value: float) -> str:
    return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


def _few(mean: float) -> str:
    return f"{_number(mean)} record{'' if round(mean, 1) == 1 else 's'}"


# ---- what next


def _further(content: Content) -> Section:
    names = content.names
    released = names.released or "RELEASED"
    files = [names.certificate, released]
    table = shlex.quote(released)
    rows = [
        ("Check the certificate and the table, cell by cell", _command("verify", *files)),
        (
            "Infer what an attacker could; LIST names the private records",
            f"{_command('attack', released)} --private-list LIST",
        ),
        (
            "This report anew, with all that the private list adds",
            f"{_command('report', *files)} --private-list LIST",
        ),
    ]
    if names.certificate != f"{released}.certificate.json":
        attack = f"offrecord attack {table} --certificate {shlex.quote(names.certificate)}"
        rows[1] = (rows[1][0], f"{attack} --private-list LIST")
    if content.certificate.private.positions is not None:
        rows = [(what, command.replace(" --private-list LIST", "")) for what, command in rows]
        rows[1] = ("Infer what an attacker could", rows[1][1])
        del rows[2]
    return Section("further", "Where to go on", [Commands(rows)])


def _command(verb: str, *files: str) -> str:
    return " ".join(["offrecord", verb, *map(shlex.quote, files)])
