"""What is said of a verdict: what was counted, what is promised, what would have been seen."""

import math

import pytest

from offrecord.models.evidence import Verdict

PATTERN = "the nearest value after a record favours 'a' over 'b'"


def verdict(name, **more):
    return Verdict(epsilon=1.0, verdict=name, promised=math.e, pattern=PATTERN, **more)


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (
            verdict("holds", counted=1.4, cases=[57, 64], visible=3.42),
            f"holds: in held-back records {PATTERN} most, by odds of at least 1.4 to 1 (95 % limit"
            " of 57 and 64 cases); 2.72 to 1 is promised, and a violation from 3.42 to 1 on would"
            " probably have shown",
        ),
        (
            verdict("holds", counted=2.2, cases=[57, 64], visible=3.42),
            f"holds narrowly: in held-back records {PATTERN} most, by odds of at least 2.2 to 1"
            " (95 % limit of 57 and 64 cases); 2.72 to 1 is promised, and a violation from 3.42 to"
            " 1 on would probably have shown",
        ),
        (
            verdict("holds", counted=0.898, cases=[57, 64], visible=3.42),
            "holds: in held-back records no pattern favours a value beyond chance; 2.72 to 1 is"
            " promised, and a violation from 3.42 to 1 on would probably have shown",
        ),
        (
            verdict("not shown", counted=1.4, cases=[7, 6]),
            f"not shown: in held-back records {PATTERN} most, by odds of at least 1.4 to 1 (95 %"
            " limit of 7 and 6 cases); 2.72 to 1 is promised, and so few cases would have shown no"
            " violation",
        ),
        (
            verdict("not shown"),
            "not shown: no pattern of held-back records occurs often enough to be counted; 2.72 to"
            " 1 is promised",
        ),
        (
            verdict("broken", counted=4.1, cases=[57, 64], visible=3.42),
            f"broken: in held-back records {PATTERN} most, by odds of at least 4.1 to 1 (95 %"
            " limit of 57 and 64 cases), where only 2.72 to 1 is promised",
        ),
    ],
)
def test_a_verdict_in_words(one, words):
    assert one.words() == words
