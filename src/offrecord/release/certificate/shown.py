"""A certificate in notebooks: what was promised, about what, and what it rests on.

Everything is escaped, and long lists are cut. Written here and not with what the rest of the
package shows, for who checks a certificate needs no more than this folder.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from offrecord.release.certificate.document import Certificate
    from offrecord.release.certificate.model import Learned

_LINES, _LENGTH = 40, 2000  # the most that is shown, in characters
_NAMES = 8  # of columns and values
_LEFT = "text-align:left"


def page_of(certificate: Certificate) -> str:
    """For who wants to know what a certificate says; `verify` says whether it is true."""
    lines = "".join(
        f'<tr><th scope="row" style="{_LEFT}">{_html(name)}</th>'
        f'<td style="{_LEFT}">{_html(said)}</td></tr>'
        for name, said in _facts(certificate)
    )
    said = f"certificate of {certificate.dataset!r}", certificate.claim.statement
    table = f'<table style="margin:0 0 1em 0"><tbody>{lines}</tbody></table>'
    return html_note(*said) + table + html_list("The promise rests on", certificate.assumptions)


def _facts(certificate: Certificate) -> Iterator[tuple[str, str]]:
    claim, counts, columns = certificate.claim, certificate.counts, certificate.columns
    bound = "exactly" if claim.leakage_is_exact else "at most"
    yield "designs tell", f"{bound} {claim.leakage:.6g} of ε = {claim.epsilon:g}"
    yield "mechanism", f"{claim.mechanism}, {len(certificate.designs.designs):,} designs"
    yield "table", f"{counts.rows:,} rows, {counts.chains:,} chains, {counts.missing:,} missing"
    yield "private", f"{counts.private:,} records, {counts.secrets:,} secrets"
    chains = f", by {_named(columns.by)}" if columns.by else ""
    yield "columns", f"{columns.value} in the order of {columns.order}{chains}"
    yield "model", _model(certificate)
    if certificate.learned is not None:
        yield "its fit", certificate.learned.verdict
        yield "audit", _audit(certificate.learned)
    for accepted in certificate.model_check.accepted[:_NAMES]:
        yield "accepted", accepted
    yield "other releases", _others(certificate)
    if certificate.output is not None:
        output = certificate.output
        digest = (
            f"SHA-256 {output.sha256}" if output.files is None else f"{len(output.files):,} files"
        )
        yield "written", f"{output.format}, {output.rows:,} rows, {digest}"
    yield (
        "made by",
        ", ".join(f"{name} {version}" for name, version in certificate.versions.items()),
    )


def _model(certificate: Certificate) -> str:
    model = certificate.model
    each = f", a kernel for each {model.phase}" if model.phase else ""
    told = "taken for exactly right"
    if model.set is not None:
        sure = model.set.confidence
        told = "and all near it, in " + (
            "given intervals" if sure is None else f"{100 * sure:.10g} % intervals"
        )
    values = f"{len(model.labels)} values ({_named(model.labels)})"
    return f"order {model.order}, {values}{each}, {told}"


def _audit(learned: Learned) -> str:
    audit = learned.audit
    if audit is None:
        return "nobody looked"
    chance = ", within chance" if audit.chance else ""
    odds = f"odds of at least {audit.at_least:.4g} to 1 where {audit.promised:.4g} were promised"
    return f"{audit.verdict}: {odds}{chance}"


def _others(certificate: Certificate) -> str:
    release = certificate.release
    if release.other_releases is None:
        return f"unknown: {release.why}" if release.why else "unknown"
    together = "" if release.composed else "; together they may tell more than is said here"
    return f"{release.other_releases:,} of the data set{together}"


def _named(names: Sequence[object]) -> str:
    more = ", …" if len(names) > _NAMES else ""
    return ", ".join(map(str, names[:_NAMES])) + more


# ---- markup


def html_note(headline: str, *lines: str) -> str:
    """A headline, and lines below it."""
    return f"<p><b>{_html(headline)}</b>{''.join(f'<br>{_html(line)}' for line in lines)}</p>"


def html_list(title: str, lines: Sequence[str]) -> str:
    """Lines under a title; nothing of none."""
    if not lines:
        return ""
    more = [f"… and {len(lines) - _LINES:,} more"] if len(lines) > _LINES else []
    items = "".join(f"<li>{_html(line)}</li>" for line in [*lines[:_LINES], *more])
    return f"<p>{_html(title)}</p><ul>{items}</ul>"


def _html(text: str) -> str:
    """A text as markup; what has no shape, such as a change of the direction of writing, by its
    number.
    """
    short = text if len(text) <= _LENGTH else text[: _LENGTH - 1] + "…"
    plain = (one if one.isprintable() else ascii(one)[1:-1] for one in short)
    return html.escape("".join(plain))
