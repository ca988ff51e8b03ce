"""The parameters of verbs come from the options of redact."""

from dataclasses import MISSING, fields

import pytest
import typer

from offrecord.cli.app import app
from offrecord.cli.parameters import names, number, options_from, whole
from offrecord.tables.options import FileOptions

#: What the command line does by other means.
NOT_OFFERED = {"output_format", "progress", "say", "watch"}


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
        "in_memory",
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


def test_options_from_one_to_another():
    assert options_from("value", "dataset") == ["value", "order", "epsilon", "dataset"]
    assert options_from("dry_run", "dry_run") == ["dry_run"]


def test_what_people_write():
    assert number("1e-3") == 0.001
    assert whole("12") == 12
    assert names("who, room") == ["who", "room"]
    with pytest.raises(typer.BadParameter, match="must be a number, got 'one'"):
        number("one")
    with pytest.raises(typer.BadParameter, match=r"must be a whole number, got '1\.5'"):
        whole("1.5")
