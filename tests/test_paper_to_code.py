"""docs/paper-to-code.md: every object of the paper is there, every name it gives exists."""

import re
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "paper-to-code.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (?!paper|---)(.+?) \| (.+) \|$", PAGE.replace(r"\|", "¦"), re.M)

#: The paper's numbered objects, in the order of its source.
OBJECTS = [
    "Definition 1",  # LDP
    "Definition 2",  # utility
    "Definition 3",  # pointwise- and max-influence
    "Fig. 1",
    "Theorem 1",
    "Theorem 2",
    "Corollary 1",
    "Fig. 2",
    "Example 1",
    "Table I",
    *(f"Eq. ({number})" for number in range(1, 5)),
    "Fig. 3",
    *(f"Eq. ({number})" for number in range(5, 8)),
    "Definition 4",  # Markov quilt
    "Algorithm 1",
    "Eq. (8)",
    "Definition 5",  # redaction radius
    "Remark 1",
    "Corollary 2",
    *(f"Eq. ({number})" for number in (9, 10)),
    "Lemma 1",
    "Corollary 3",
    *(f"Eq. ({number})" for number in (11, 12)),
    "Proposition 1",
    *(f"Eq. ({number})" for number in range(13, 20)),
]

#: Objects without a number, by words of their row.
SYMBOLS = [
    "X_1, …, X_n", "p, the private record", "footnote 1", "supp(X)", "x̄", "mechanism 𝓜", "P(t)",
    "α, β", "stationary distribution", "backward transition", "𝒬^(ℓ)", "p ≤ n/2", "privacy budget",
    "regions 𝓡_L, 𝓡_M, 𝓡_S", "Δ*, R_1, R_2", "𝓢, 𝓜, 𝓛", "ε_ℓ, ε_r", "q_t", "δ_t, 𝓜_t",
    "Sec. IV-B", "Sec. IV-C", "grid search", "future work", "convex program", "ν_3R ≥ ν_MQ",
    "ν_MQ, its lower bound", "𝓡_rel", "(Δ_ℓ, Δ_r)", "ε_0, ε_1", "ĩ", "t_p(ε)", "α_Δ, β_Δ",
    "convexity", "App. A", "App. B", "App. C", "App. D", "App. E", "App. F",
]  # fmt: skip

#: What the code names at the line that implements it or relies on it.
NAMED_IN_CODE = [
    *(label for label in OBJECTS if label.split()[0] in ("Theorem", "Lemma")),
    *("Corollary 1", "Corollary 2", "Corollary 3", "Proposition 1", "Algorithm 1"),
    *("Definition 1", "Definition 2", "Definition 3", "Example 1", "Table I"),
    *("Fig. 1", "Fig. 2", "Fig. 3"),
]


def place(label):
    """Where a label's own row begins: the first row whose left cell has it."""
    return next((i for i, (paper, _) in enumerate(ROWS) if label in paper), None)


@pytest.mark.parametrize("label", OBJECTS)
def test_every_numbered_object_has_its_row(label):
    assert place(label) is not None


def test_they_come_in_the_paper_s_order():
    places = [place(label) for label in OBJECTS]
    assert places == sorted(places)


@pytest.mark.parametrize("words", SYMBOLS)
def test_every_other_object_has_its_row_or_section(words):
    assert place(words) is not None or f"## {words}" in PAGE


def test_every_row_names_code_or_says_why_not():
    for paper, code in ROWS:
        named = re.findall(r"`offrecord[\w.]*:[\w.]+`", code)
        assert named or code.startswith("not in the code: ") or "every ordered pair" in code, paper


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(offrecord[\w.]*:[\w.]+)`", PAGE))))
def test_every_name_can_be_imported(name):
    module, _, path = name.partition(":")
    found = import_module(module)
    for part in path.split("."):
        found = getattr(found, part)


@pytest.mark.parametrize(
    ("name", "field"),
    re.findall(r"`offrecord:(\w+)` \(`(\w+)(?:=[^`]*)?`", PAGE),
)
def test_fields_given_in_parentheses_exist(name, field):
    kind = getattr(import_module("offrecord"), name)
    assert is_dataclass(kind)
    assert field in {known.name for known in fields(kind)}


@pytest.mark.parametrize("label", NAMED_IN_CODE)
def test_the_code_names_what_it_relies_on(label):
    pattern = re.compile(rf"{re.escape(label)}(?![\w.])|{re.escape(label)}\.(?!\d)")
    sources = (ROOT / "src").rglob("*.py")
    assert any(pattern.search(source.read_text(encoding="utf-8")) for source in sources)
