"""What is promised, and on what it rests."""

from __future__ import annotations

from offrecord.reports.content import Content
from offrecord.reports.page import UNKNOWN, Block, Bullets, Paragraph, Section, sentence
from offrecord.text import odds


def promise_section(content: Content) -> Section:
    """What is promised, and on what it rests."""
    certificate, claim = content.certificate, content.certificate.claim
    blocks: list[Block] = []
    if not content.checked.holds:
        blocks.append(Paragraph("What the certificate claims, and the verifier does not confirm:"))
    if certificate.counts.secrets == 0:
        blocks.append(Paragraph("No record is private, so nothing is promised.", True))
    elif content.meaning is not None:
        blocks.append(Paragraph(sentence(str(content.meaning)), True))
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
