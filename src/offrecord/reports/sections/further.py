"""Where to go on."""

from __future__ import annotations

import shlex

from offrecord.reports.content import Content
from offrecord.reports.page import Commands, Section


def further_section(content: Content) -> Section:
    """Where to go on."""
    names = content.names
    released = _named(names.released or "RELEASED")
    certificate = _named(names.certificate)
    files = [certificate, released]
    table = shlex.quote(released)
    rows = [
        (
            "Check the certificate and the table, cell by cell; LIST names the private records",
            f"{_command('verify', *files)} --private-list LIST",
        ),
        (
            "Infer what an attacker could",
            f"{_command('attack', released)} --private-list LIST",
        ),
        (
            "This report anew, with all that the private list adds",
            f"{_command('report', *files)} --private-list LIST",
        ),
    ]
    if certificate != f"{released}.certificate.json":
        attack = f"offrecord attack {table} --certificate {shlex.quote(certificate)}"
        rows[1] = (rows[1][0], f"{attack} --private-list LIST")
    if content.certificate.private.positions is not None:
        rows = [(what, command.replace(" --private-list LIST", "")) for what, command in rows]
        rows[0] = ("Check the certificate and the table, cell by cell", rows[0][1])
        del rows[2]
    return Section("further", "Where to go on", [Commands(rows)])


def _named(file: str) -> str:
    """A name that is not taken for an option."""
    return f"./{file}" if file.startswith("-") else file


def _command(verb: str, *files: str) -> str:
    return " ".join(["offrecord", verb, *map(shlex.quote, files)])
