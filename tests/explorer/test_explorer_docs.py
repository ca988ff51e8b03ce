"""docs/explorer.md: its example prints what stands below it."""

import json
import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "explorer.md").read_text(encoding="utf-8")


def test_the_example_of_the_api_prints_what_is_shown(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, re.S)
    exec(compile(block, "docs/explorer.md", "exec"), {})
    assert capsys.readouterr().out == shown


def test_the_refusal_is_the_apis(ask):
    (shown,) = re.findall(r"```json\n(.*?)```", PAGE, re.S)
    assert ask("POST", "/api/policy", {"epsilon": -1}).json == json.loads(shown)
