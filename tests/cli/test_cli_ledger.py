"""ledger: what was released with a key, and what a person says was never published."""

import json

import polars as pl
import pytest

import offrecord as off

WORDS = "never published"
TABLE = pl.DataFrame(
    {"t": range(9), "v": [0, 1, 0, 0, 1, 1, 0, 1, 0], "p": [False, True] + [False] * 7}
)


@pytest.fixture
def released(tmp_path):
    """Releases a table with a key."""

    def release(epsilon, dataset="rooms", **options):
        return off.redact(
            TABLE,
            value="v",
            order="t",
            single_chain=True,
            private="p",
            model=off.MarkovChain.binary(0.2, 0.3),
            mechanism="window",
            epsilon=epsilon,
            dataset=dataset,
            key_file=tmp_path / "key.json",
            **options,
        )

    return release


@pytest.fixture
def ledger(run, tmp_path):
    """The verb with that key: its JSON."""

    def told(*arguments):
        code, out, err = run("ledger", *arguments, "--key-file", tmp_path / "key.json", "--json")
        assert (code, err) == (0, "")
        return json.loads(out)

    return told


@pytest.fixture
def refused(run, tmp_path):
    """What it says against something, which changes nothing."""

    def told(*arguments):
        file = tmp_path / "key.ledger.json"
        before = file.read_bytes()
        code, out, err = run("ledger", *arguments, "--key-file", tmp_path / "key.json")
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert file.read_bytes() == before
        return err

    return told


def test_list_and_show(released, ledger, run, tmp_path):
    released(1.0)
    released(2.0, accept="another-release")
    released(1.0, "halls")
    key = off.Key.load(tmp_path / "key.json")
    listed = ledger("list")
    assert (listed["key"], listed["complete"], listed["protocols"]) == (key.id, True, [])
    counts = [(one["dataset"], one["releases"], one["forgotten"]) for one in listed["datasets"]]
    assert counts == [("halls", 1, 0), ("rooms", 2, 0)]
    shown = ledger("show", "rooms")
    assert [one["epsilon"] for one in shown["releases"]] == ["1.0", "2.0"]
    assert shown["releases"][1]["entered"] == listed["datasets"][1]["last"]
    page = run("ledger", "show", "rooms", "--key-file", key.file)[1]
    lines = {line.split("  ")[0]: line.split()[-2:] for line in page.splitlines()}
    assert lines["release"] == ["1", "2"]
    assert lines["epsilon"] == ["1.0", "2.0"]
    assert lines["model"][0] == lines["model"][1]
    assert lines["set of rules"][0] != lines["set of rules"][1]
    assert "rooms     2" in run("ledger", "list", "--key-file", key.file)[1]


def test_answers_are_listed(run, ledger, tmp_path):
    problem = off.Problem(off.MarkovChain.binary(0.01, 0.8), 10, [1], 1.0)
    key = off.Key.new(tmp_path / "key.json")
    off.answer(off.design(problem, off.BestWindow()), 10, 1, key, protocol="survey")
    assert ledger("list")["protocols"] == [{"protocol": "survey", "records": 1}]
    out = run("ledger", "list", "--key-file", key.file)[1]
    assert out == "nothing was released with this key\nsurvey: answered for 1 record\n"


def test_what_was_never_published_is_forgotten_and_the_certificate_says_so(released, ledger):
    released(1.0)
    with pytest.raises(off.InputError, match="another epsilon"):
        released(2.0)
    done = ledger("forget", "rooms", "--because", WORDS)
    assert done == {"dataset": "rooms", "forgotten": 1, "releases": 0}
    other = released(2.0)
    standing = other.certificate["release"]
    assert standing["others"] is None
    assert "forgot 1 other release" in standing["why"]
    assert [warning for warning in other.summary.warnings if "forgot 1 other release" in warning]
    with pytest.raises(off.InputError, match="another epsilon"):
        released(1.0)
    shown = ledger("show", "rooms")
    assert [one["epsilon"] for one in shown["forgotten"]] == ["1.0"]


def test_the_same_release_again_is_forgotten_no_more(released, ledger):
    released(1.0)
    ledger("forget", "rooms", "--because", WORDS)
    assert released(1.0).certificate["release"]["others"] == 0
    assert ledger("show", "rooms")["forgotten"] == []


def test_one_of_several_is_forgotten_by_its_number(released, ledger, refused):
    for epsilon in (1.0, 2.0, 0.5):
        released(epsilon, accept="another-release")
    assert "3 releases" in refused("forget", "rooms", "--because", WORDS)
    for wrong in ("0", "4", "a", "1,4", ""):
        said = refused("forget", "rooms", "--release", wrong, "--because", WORDS)
        assert "--release must be numbers from 1 to 3, or all" in said
    assert ledger("forget", "rooms", "--release", "1,3", "--because", WORDS)["releases"] == 1
    assert [one["epsilon"] for one in ledger("show", "rooms")["releases"]] == ["2.0"]
    standing = released(2.0).certificate["release"]
    assert standing["others"] is None
    assert "forgot 2 other releases" in standing["why"]
    ledger("forget", "rooms", "--release", "all", "--because", WORDS)
    assert "no release of 'rooms' that is not forgotten" in refused(
        "forget", "rooms", "--because", WORDS
    )


@pytest.mark.parametrize("words", [(), ("--because", "Never published"), ("--because", "oops")])
def test_without_the_words_nothing_is_forgotten(released, refused, words):
    released(1.0)
    said = refused("forget", "rooms", *words)
    assert f'--because "{WORDS}"' in said
    assert "leak more" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["burn"], "list, show or forget, got 'burn'"),
        (["list", "rooms"], "takes no data set"),
        (["show"], "takes the name of a data set"),
        (["forget"], "takes the name of a data set"),
        (["show", "halls"], "has no data set 'halls'; it has rooms"),
        (["forget", "halls", "--because", WORDS], "has no data set 'halls'; it has rooms"),
        (["show", "rooms", "--because", WORDS], "for ledger forget, not for show"),
        (["list", "--release", "1"], "for ledger forget, not for list"),
    ],
    ids=str,
)
def test_wrong_words_are_one_line(released, refused, arguments, said):
    released(1.0)
    assert said in refused(*arguments)


def test_no_key_is_made_to_list_what_it_released(run, tmp_path):
    code, _, err = run("ledger", "list", "--key-file", tmp_path / "none" / "key.json")
    assert code == 2
    assert "key.json" in err
    assert not (tmp_path / "none").exists()
