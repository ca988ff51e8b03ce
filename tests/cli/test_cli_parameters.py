"""The parameters of verbs come from the options of redact."""

import re
from dataclasses import MISSING, fields

import pytest
import typer

from offrecord.cli.app import app
from offrecord.cli.parameters import GROUPS, names, number, whole
from offrecord.tables.options import FileOptions

#: What the command line does by other means.
NOT_OFFERED = {"output_format", "progress", "say"}


def parameters(verb):
    (command,) = [one for one in app.registered_commands if one.callback.__name__ == verb]
    return command.callback.__signature__.parameters


def test_redact_offers_every_option():
    offered = parameters("redact")
    for option in fields(FileOptions):
        if option.name in NOT_OFFERED:
            assert option.name not in offered
        else:
            assert offered[option.name].annotation.__metadata__[0].help == option.metadata["words"]
            required = offered[option.name].default is offered[option.name].empty
            assert required == (option.default is MISSING)
            assert required or offered[option.name].default == option.default
    assert set(offered) - {option.name for option in fields(FileOptions)} == {
        "table",
        "output",
        "report",
        "no_report",
        "stream",
        "as_json",
    }


@pytest.mark.parametrize("verb", ["fit", "design", "compare", "answer", "key", "demo", "reproduce"])
def test_verbs_share_the_words_of_options(verb):
    words = {option.name: option.metadata.get("words") for option in fields(FileOptions)}
    own = {
        "design": {"private", "model", "mechanism"},
        "compare": {"private", "model", "epsilon", "mechanism"},
        "answer": {"policy"},
    }.get(verb, set())
    shared = set(parameters(verb)) & set(words) - own
    assert shared
    for name in shared:
        assert parameters(verb)[name].annotation.__metadata__[0].help == words[name]


def test_help_lists_options_by_group(run):
    """At most 25 in the groups that most people need, 45 in all."""
    _, out, _ = run("redact", "--help")
    groups = re.split(r"(?m)^Options: (\w+):\n", out)[1:]
    listed = zip(groups[::2], groups[1::2], strict=True)
    counts = {name: len(re.findall(r"(?m)^  -", text)) for name, text in listed}
    assert list(counts) == list(GROUPS)
    assert sum(counts.values()) - counts["advanced"] <= 25
    assert sum(counts.values()) <= 45


def test_what_people_write():
    assert number("1e-3") == 0.001
    assert whole("12") == 12
    assert names("who, room") == ["who", "room"]
    with pytest.raises(typer.BadParameter, match="must be a number, got 'one'"):
        number("one")
    with pytest.raises(typer.BadParameter, match=r"must be a whole number, got '1\.5'"):
        whole("1.5")
