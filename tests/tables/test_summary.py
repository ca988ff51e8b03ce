"""What a summary says: what was asked, what left, what it cost those concerned, and the promise."""

import json
from dataclasses import replace

import polars as pl
import pytest
from offrecord.models.learned import Learned

import offrecord as off
from offrecord.tables.engines import stream

CHAIN = off.MarkovChain.binary(0.02, 0.28)  # 1 holds in 1 of 15 records
SLOW = off.MarkovChain.binary(0.002, 0.028)


def table(lengths, private):
    """Chains of zeros; private: chains and places."""
    rows = [(c, t, 0, (c, t) in private) for c, n in enumerate(lengths) for t in range(n)]
    return pl.DataFrame(rows, schema=["c", "t", "v", "p"], orient="row")


@pytest.fixture
def redact(tmp_path):
    def run(frame, model=CHAIN, **more):
        asked = dict(value="v", order="t", by="c", private="p", epsilon=1.0, dataset="d")
        asked |= dict(
            accept_model=True, mechanism="best-local", key_file=tmp_path / "keys" / "k.json"
        )
        return off.redact(frame, model=model, **asked | more)

    return run


def lines(summary):
    return dict(line.split("  ", 1) for line in summary.figures().splitlines())


def test_the_lines(redact):
    summary = redact(table([200, 200], {(0, 100)})).summary
    said = {name: line.strip() for name, line in lines(summary).items()}
    names = "released,protected,in these,meaning,odds,for,plain erasure,regions,mechanism,audit"
    assert list(said) == [*names.split(","), "model", "time"]
    assert said["protected"] == "1 private record, 1 secret, in 1 of 2 chains"
    assert said["meaning"] == (
        "by the model a private record is 1 in about 1 of 15 cases; after the release in at most"
        " 1 of 6"
    )
    assert said["odds"] == "at most 2.718 to 1 between two values of a secret; allowed: e^1 = 2.718"
    gone = summary.redacted
    assert said["released"].startswith(f"{1 - gone / 400:.2%} of 400 records (window: ")
    assert said["in these"] == f"{1 - gone / 200:.2%} of 200 records released"


def test_a_chain_that_loses_everything(redact):
    """16 records of one chain go, of a million that stay: that must not look like nothing."""
    frame = table([16, 300_000], {(0, 8)})
    summary = redact(frame, SLOW).summary
    assert (summary.touched, summary.lost, summary.closed) == (1, 1, 1)
    assert (summary.touched_records, summary.touched_released) == (16, 0.0)
    assert lines(summary)["released"].strip().startswith("99.99% of 300,016 records")
    assert lines(summary)["in these"].strip() == (
        "nothing: best-local can release none of 16 records within ε = 1; a larger ε may"
    )
    assert redact(frame, SLOW, dry_run=True).summary.lost == 1


def test_chains_that_are_private_as_a_whole(redact):
    """No ε would release anything of them."""
    frame = table([16, 300], {(0, t) for t in range(16)})
    said = {name: line.strip() for name, line in lines(redact(frame).summary).items()}
    assert said["in these"] == "nothing: all 16 records are private"


def test_walks_that_fall_short_of_windows(redact):
    summary = redact(table([200, 200], {(0, 100)}), mechanism="owner").summary
    assert "best-local" not in lines(summary)["released"]
    short = replace(summary, released=0.9, window=0.91)
    assert lines(short)["released"].strip() == (
        "90.00% of 400 records (window: 91.00%; --mechanism best-local releases no less than"
        " windows, by expectation)"
    )


def test_some_chains_that_lose_everything(redact):
    frame = table([6, 400, 50], {(0, 3), (1, 200)})
    for dry_run in (False, True):
        summary = redact(frame, mechanism="window", dry_run=dry_run).summary
        assert (summary.touched, summary.lost, summary.closed) == (2, 1, 1)
        assert summary.touched_records == 406
        said = lines(summary)["in these"].strip()
        how = "1 chain loses everything for certain" if dry_run else "1 chain lost everything"
        assert said == f"{summary.touched_released:.2%} of 406 records released; {how}"


def test_one_chain_needs_no_line_of_its_own(redact):
    assert "in these" not in lines(redact(table([300], {(0, 150)})).summary)


def test_no_secret_has_no_meaning(redact):
    summary = redact(table([30], set()), allow_none=True).summary
    assert (summary.touched, summary.lost, summary.meaning) == (0, 0, None)
    assert not {"in these", "meaning"} & set(lines(summary))


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("mechanism", ["best-local", "owner"])
def test_parts_add_up_to_the_whole(redact, tmp_path, monkeypatch, mechanism, dry_run):
    frame = table([5, 40, 3, 60, 20, 1], {(0, 2), (1, 4), (3, 30), (3, 34), (5, 0)})
    frame = frame.with_columns(v=pl.when(pl.col("t") % 7 != 6).then("v"))
    frame.write_csv(tmp_path / "t.csv")
    monkeypatch.setattr(stream, "_PART", 16)
    whole = redact(frame, mechanism=mechanism, dry_run=dry_run).summary
    parts = off.redact_file(
        tmp_path / "t.csv",
        None if dry_run else tmp_path / "o.csv",
        value="v",
        order="t",
        by="c",
        private="p",
        model=CHAIN,
        epsilon=1.0,
        dataset="d",
        accept_model=True,
        mechanism=mechanism,
        dry_run=dry_run,
        key_file=tmp_path / "keys" / "k.json",
    ).summary
    for name in ("lost", "closed", "touched", "touched_records", "regions", "missing", "meaning"):
        assert getattr(parts, name) == getattr(whole, name)
    for name in ("released", "touched_released", "window"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-12)
    assert sum(whole.regions.values()) == whole.rows - whole.missing


def test_plain_erasure_by_a_set_is_at_least(redact):
    frame = table([200], {(0, 100)})
    alone = redact(frame).summary
    assert lines(alone)["plain erasure"].strip() == "would have given 1296 to 1, by the model alone"
    box = off.Box.binary(alpha=(0.01, 0.03), beta=(0.2, 0.36))
    summary = redact(frame, CHAIN.with_box(box), dataset="set").summary
    assert summary.erasure_is_least
    # ((1 − 0.36) / 0.03)² = 455.1
    assert lines(summary)["plain erasure"].strip() == "would have given at least 455 to 1"
    box = off.Box.binary(alpha=(0.01, 0.5), beta=(0.2, 0.6))
    summary = redact(frame, CHAIN.with_box(box), dataset="wide").summary
    assert "plain erasure" not in lines(summary)


def test_the_verdict_of_a_fit_takes_one_line(redact):
    verdict = "BIC prefers order 1 among orders 0 to 8, the one fitted. " + "More of it. " * 40
    learned = Learned("v", "integer", None, None, 1.0, verdict)
    summary = redact(table([200], {(0, 100)}), CHAIN.with_learned(learned)).summary
    assert lines(summary)["model"].strip() == (
        "BIC prefers order 1 among orders 0 to 8, the one fitted;"
        ' more: "learned" in the certificate'
    )
    assert summary.verdict == verdict
    long = replace(summary, verdict="word " * 100)
    assert max(map(len, long.figures().splitlines())) < 170


def test_what_a_fit_says_against_an_assumption_is_in_that_line(redact):
    said = (
        "BIC prefers order 1 among orders 0 to 3, the one fitted. The guarantee assumes that the"
        " chain remembers no more than 1 record; this speaks for it. The kernel drifts between the"
        " halves of the chains (p = 0.01, largest change 0.095); the guarantee assumes that it does"
        " not. Not tested: first records."
    )
    summary = replace(redact(table([40], {(0, 12)})).summary, verdict=said)
    told = lines(summary)["model"]
    assert "; but: The kernel drifts between the halves of the chains; more" in told
    calm = replace(summary, verdict=said.replace("; the guarantee assumes that it does not", ""))
    assert "but:" not in lines(calm)["model"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "No clear drift between the halves of the chains (p = 0.76, largest change of a"
            " probability 0.047). First records differ from the stationary distribution (p ="
            " 0.00059, largest difference 0.26); the guarantee assumes that they do not.",
            ["First records differ from the stationary distribution"],
        ),
        (
            "The kernel drifts between the halves of the chains (p = 0.001); the guarantee assumes"
            " that it does not. First records differ from the stationary distribution (p below"
            " 0.000001); near the beginning of a chain a design that knows nothing of it may tell"
            " 2.2 times the odds it promises, and the set does not hold such chains: the promise"
            " does not cover that.",
            [
                "The kernel drifts between the halves of the chains",
                "First records differ from the stationary distribution, and the promise does not"
                " cover that",
            ],
        ),
        (
            "First records differ from the stationary distribution (p below 0.000001); near the"
            " beginning of a chain a design that knows nothing of it may tell 2.1 times the odds it"
            " promises. The set holds chains that begin like these, so the promise covers that.",
            [],
        ),
    ],
)
def test_what_speaks_for_the_model_is_not_taken_for_what_speaks_against_it(redact, said, told):
    summary = replace(redact(table([40], {(0, 12)})).summary, verdict=f"BIC prefers it. {said}")
    but = "".join(f"; but: {one}" for one in told)
    assert lines(summary)["model"].strip() == (
        f'BIC prefers it{but}; more: "learned" in the certificate'
    )


def test_all_of_it_is_json(redact):
    content = redact(table([200], {(0, 100)})).summary.to_dict()
    assert json.loads(json.dumps(content))["meaning"] == {
        "value": 1,
        "before": pytest.approx(1 / 15),
        "after": pytest.approx(0.1626, abs=1e-4),
        "varies": False,
        "settled": False,
        "first": None,
    }
