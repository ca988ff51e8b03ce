"""How large the code is: lines, files, function bodies, comments and docstrings, by package.

Columns: `tokens` and `90 %` are the median and the 90 % quantile of the tokens of a function's
body, without docstring and comments; `comments` and `docstrings` are lines in a hundred; `wide`
counts lines over 100 columns.
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
from pathlib import Path

LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def functions(tree: ast.AST) -> list[tuple[int, int]]:
    """First and last line of the body of every function, without its docstring."""
    spans = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            if body:
                spans.append((body[0].lineno, node.end_lineno or body[-1].lineno))
    return spans


def measured(files: list[Path]) -> tuple[int, int, int, int, list[int]]:
    """Lines, comments, lines of docstrings, lines over 100 columns, tokens of each function."""
    lines = comments = docstrings = wide = 0
    bodies: list[int] = []
    for file in files:
        text = file.read_text()
        lines += text.count("\n")
        wide += sum(len(line) > 100 for line in text.splitlines())
        tree = ast.parse(text)
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        comments += sum(token.type == tokenize.COMMENT for token in tokens)
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                docstring = ast.get_docstring(node, clean=False)
                docstrings += 0 if docstring is None else docstring.count("\n") + 1
        rows = [token.start[0] for token in tokens if token.type not in LAYOUT]
        bodies += [sum(first <= row <= last for row in rows) for first, last in functions(tree)]
    return lines, comments, docstrings, wide, bodies


def show(name: str, files: list[Path]) -> None:
    """Print the size of some files on one line."""
    lines, comments, docstrings, wide, bodies = measured(files)
    print(
        f"{name:<12} {len(files):>4} {lines:>7,} {statistics.median(bodies):>7.0f}"
        f" {statistics.quantiles(bodies, n=10)[-1]:>6.0f} {100 * comments / lines:>9.1f}"
        f" {100 * docstrings / lines:>11.0f} {wide:>5}"
    )


def main() -> None:
    """Print one line for each package of src, then src and tests as a whole."""
    print("package     files   lines  tokens   90 %  comments  docstrings  wide")
    root = Path(__file__).parent.parent
    source = root / "src" / "offrecord"
    packages = sorted(
        path for path in source.iterdir() if path.is_dir() and any(path.rglob("*.py"))
    )
    for package in packages:
        show(package.name, list(package.rglob("*.py")))
    for name in ("src", "tests"):
        show(name, list((root / name).rglob("*.py")))
    pages = list((root / "docs").glob("*.md"))
    print(f"docs         {len(pages):>4} pages besides proofs and API")


if __name__ == "__main__":
    sys.exit(main())
