"""Texts and bytes that are not what they should be: flipped, cut, spliced, and JSON as whoever
knows parsers would write it.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

_JUNK = (
    b"\x00", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\r", b"\n", b"\r\n", b",", b'"', b"'", b";",
    b"\t", b"-", b".", b"{", b"}", b"[", b"]", b":", b"NaN", b"Infinity", b"-0.0", b"1e400",
    b"null",
    b"true", b"9" * 400, b"9" * 5000, b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"=1+1", b"\xc2\xa0",
    b"\xe2\x80\xae", b"0x10", b"1_000", b"+1", b"1.", b" ", b"#", b"\x1a", b"\x1b[2J", b"%s%n",
)  # fmt: skip
_NUMBERS = (
    "-1", "0", "-0.0", "1e400", "-1e400", "1e-400", "NaN", "Infinity", "9007199254740993", "1e308",
    "5e-324", "1E+2", "0.1e1", "1.0000000000000002", "18446744073709551616", "9" * 5000, "01", "1.",
    ".5", "+1", "0x1", '"1"', "true", "null", "[]", "{}", "1_0", "１", "1e99999",
    "-9" * 1 + "9" * 30,
)  # fmt: skip


def noisy(rng: random.Random, content: bytes, *, most: int = 8) -> bytes:
    """A few changes of bytes."""
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3, most])):
        at = rng.randrange(len(changed) + 1)
        kind = rng.randrange(8)
        if kind == 0 and changed:
            at = rng.randrange(len(changed))
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        elif kind == 2:
            changed[at:at] = rng.choice(_JUNK)
        elif kind == 3:
            del changed[at : at + rng.choice([1, 1, 2, 4, 16, 256])]
        elif kind == 4:
            del changed[at:]
        elif kind == 5:  # a piece of it once more, elsewhere
            begin = rng.randrange(len(changed) + 1)
            piece = bytes(changed[begin : begin + rng.choice([1, 4, 16, 64, 1024])])
            changed[at:at] = piece * rng.choice([1, 1, 2, 50])
        elif kind == 6:
            changed = _other_number(rng, changed)
        else:  # a line, or what lies between commas, twice or not at all
            changed = _other_line(rng, changed)
        if not changed:
            break
    return bytes(changed)


def _other_number(rng: random.Random, content: bytearray) -> bytearray:
    """Another number, or none, where there is one."""
    found = [match.span() for match in re.finditer(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?", content)]
    if not found:
        return content
    begin, end = rng.choice(found)
    return bytearray(content[:begin] + rng.choice(_NUMBERS).encode() + content[end:])


def _other_line(rng: random.Random, content: bytearray) -> bytearray:
    by = rng.choice([b"\n", b",", b";", b"\t"])
    parts = bytes(content).split(by)
    at = rng.randrange(len(parts))
    kind = rng.randrange(4)
    if kind == 0:
        parts.insert(rng.randrange(len(parts) + 1), parts[at])
    elif kind == 1:
        del parts[at]
    elif kind == 2:
        other = rng.randrange(len(parts))
        parts[at], parts[other] = parts[other], parts[at]
    else:
        parts[at] = rng.choice(_JUNK)
    return bytearray(by.join(parts))


def hostile_json(rng: random.Random, content: Any) -> bytes:  # noqa: PLR0911 - a change each
    """JSON that says the same otherwise, or what parsers stumble over."""
    text = json.dumps(content)
    kind = rng.randrange(12)
    if kind == 0:  # a key twice
        keys = re.findall(r'"\w+": ', text)
        key = rng.choice(keys)
        return text.replace(key, f"{key}{rng.choice(_NUMBERS)}, {key}", 1).encode(
            "utf-8", "replace"
        )
    if kind == 1:
        return _with(text, rng.choice(["[" * 100_000, '{"a":' * 50_000, "[" * 900])).encode()
    if kind == 2:
        return text.encode(rng.choice(["utf-16", "utf-32", "utf-8-sig"]))
    if kind == 3:
        return json.dumps(content, indent=rng.choice([0, 1, 8, "\t"]), sort_keys=True).encode()
    if kind == 4:
        return bytes(_other_number(rng, bytearray(text.encode())))
    if kind == 5:
        return (text + rng.choice([" ", "\n\n", "\0", "{}", text, "//", ","])).encode()
    if kind == 6:
        return text.replace('"', "'", rng.choice([1, 2, -1])).encode()
    if kind == 7:
        begin = rng.randrange(len(text))
        return (
            text[:begin] + rng.choice(["\\ud800", "\\uDFFF", "\\x", "\\"]) + text[begin:]
        ).encode()
    if kind == 8:
        key = rng.choice(re.findall(r'"(\w+)": ', text))
        other = rng.choice(
            ["__class__", "", "format", key.upper(), key + "\\u0000", "\\u0065" + key]
        )
        return text.replace(f'"{key}": ', f'"{other}": ', 1).encode()
    if kind == 9:
        return json.dumps(
            rng.choice([content, [content], {"a": content}, str(content)[:99], 7])
        ).encode()
    if kind == 10:
        return text.replace(", ", rng.choice([",,", ", /* x */", ",\u2028"]), 1).encode()
    return re.sub(
        r"\d", lambda found: rng.choice("0123456789"), text, count=rng.choice([1, 3])
    ).encode()


def _with(text: str, piece: str) -> str:
    """A piece in place of the first value."""
    return re.sub(r": [^,}\]]+", lambda _: ": " + piece, text, count=1)


_CELLS = (
    "", " ", "nan", "NaN", "inf", "-inf", "null", "None", "NA", "⊥", "-0", "0.0", "1e5", "1e400",
    "9" * 30,
    "9" * 5000, '"', '""', '"a', 'a"b', '"a\nb"', "\r", "\x00", "=cmd()", "2026-02-30",
    "2026-03-29T02:30:00",
    "2026-03-29T02:30:00+01:00", "1677-01-01", "9999-12-31T23:59:60Z", "true", "False", "low ",
    "LOW", "ｌow",
    "a,b", "a;b", "é", "\u202e", "-1", "1.5", "18446744073709551616", "x" * 70_000, "\ufeff",
    "../x", "{}",
)  # fmt: skip


def hostile_table(rng: random.Random, content: bytes) -> bytes:
    """Lines of text with other cells, other lines, other separators, another encoding."""
    text = content.decode("utf-8", "surrogateescape")
    for _ in range(rng.choice([1, 1, 2, 3])):
        text = _table_change(rng, text)
    encoded = text.encode("utf-8", "surrogateescape")
    if rng.random() < 0.05:
        kind = rng.choice(["utf-16", "utf-8-sig", "latin-1", "utf-32", "cp037"])
        return text.encode(kind, "replace")
    return encoded


def _table_change(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    kind = rng.randrange(10)
    if kind <= 3:  # another cell
        cells = lines[at].split(",")
        cells[rng.randrange(len(cells))] = rng.choice(_CELLS)
        lines[at] = ",".join(cells)
    elif kind == 4:
        lines.insert(rng.randrange(len(lines) + 1), lines[at] * rng.choice([1, 1, 2]))
    elif kind == 5:
        del lines[at]
    elif kind == 6:
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 7:
        by = rng.choice([";", "\t", "|", " ", ", ", ",,"])
        return text.replace(",", by, rng.choice([1, 5, -1]))
    elif kind == 8:
        return text.replace("\n", rng.choice(["\r\n", "\r", "\n\n", " \n"]), rng.choice([1, -1]))
    else:
        cells = lines[at].split(",")
        rng.shuffle(cells)
        lines[at] = ",".join(cells)
    return "\n".join(lines)
