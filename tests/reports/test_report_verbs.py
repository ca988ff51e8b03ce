"""redact and report on the command line: where pages go, what is refused, and that a release is
never lost for its page.
"""

import hashlib
import io
import json
import shutil
import sys

import polars as pl
import pytest

import offrecord as off
from offrecord.reports import report as report_module
from reports.desks import PRIVATE, drawn
from reports.pages import Reader


def one_line(result):
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.startswith("offrecord: ")
    assert err.count("\n") == 1
    return err


# ---- redact


def test_redact_writes_a_page_beside_the_table(run, desk):
    code, out, _ = run(*desk.command())
    assert code == 0
    assert out.rstrip().endswith("out.csv.certificate.json, out.csv.report.html")
    reader = Reader((desk.folder / "out.csv.report.html").read_text())
    assert "offrecord verify out.csv.certificate.json out.csv" in reader.text()
    assert str(desk.folder) not in reader.text()
    assert str(desk.key) not in reader.text()


@pytest.mark.parametrize("how", [["--in-memory"], ["--stream"]])
def test_engines_write_the_same_page_but_for_the_curve(run, desk, how):
    assert run(*desk.command("--in-memory", out="memory.csv"))[0] == 0
    page = desk.folder / "memory.csv.report.html"
    assert run(*desk.command(*how, out="memory.csv"), "--force")[0] == 0
    again = page.read_text()
    release = desk.redacted()
    sections = {one.name: one for one in off.report(release, "memory.csv").page.sections}
    for name, section in sections.items():
        if name != "budgets":
            assert section.title in again
    assert ("went through part by part" in again) == (how == ["--stream"])


def test_a_short_text_elsewhere(run, desk):
    text = desk.folder / "short.md"
    code, out, _ = run(*desk.command("--report", text))
    assert code == 0
    assert "short.md" in out
    assert text.read_text().startswith("# small\n")
    assert not (desk.folder / "out.csv.report.html").exists()


def test_no_report(run, desk):
    assert run(*desk.command("--no-report"))[0] == 0
    assert not list(desk.folder.glob("*.report.*"))


def test_json_names_it(run, desk):
    found = json.loads(run(*desk.command("--json"))[1])
    assert found["report"] == str(desk.folder / "out.csv.report.html")
    found = json.loads(run(*desk.command("--json", "--no-report", "--force"))[1])
    assert found["report"] is None
    assert not (desk.folder / "out.csv.report.html").exists()  # it was about the old table


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--report", "page.pdf"], "a report must end in .html or .md, got page.pdf"),
        (["--report", "page.html", "--no-report"], "give --report or --no-report, not both"),
        (["--report", "nowhere/page.html"], "nowhere is not a folder"),
        (["--report", "page.html", "--dry-run"], "leave --dry-run out"),
    ],
)
def test_what_is_refused(run, desk, more, said, monkeypatch):
    monkeypatch.chdir(desk.folder)
    assert said in one_line(run(*desk.command(*more)))
    assert not list(desk.folder.glob("out*"))


def test_a_page_is_not_overwritten(run, desk, monkeypatch):
    """That is found before anything is read: the table need not even be there."""
    page = desk.folder / "out.csv.report.html"
    page.write_text("mine")
    words = [
        one if one != desk.folder / "table.csv" else desk.folder / "gone.csv"
        for one in desk.command()
    ]
    assert "out.csv.report.html exists; add --force" in one_line(run(*words))
    assert page.read_text() == "mine"
    assert run(*desk.command("--force"))[0] == 0
    assert page.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("other", ["table.csv", "list.csv", "model.json", "out.csv"])
def test_a_page_is_no_other_file(run, desk, other):
    desk.command()
    named = desk.folder / "x.html"
    words = desk.command("--report", named)
    named.symlink_to(desk.folder / other)
    assert "must be another file than" in one_line(run(*words, "--force"))


def test_a_page_does_not_lie_beside_the_key(run, desk):
    assert "must not lie beside" in one_line(
        run(*desk.command("--report", desk.key.parent / "page.html"))
    )


def test_a_dry_run_has_no_page(run, desk):
    assert run(*desk.command("--dry-run", out=None))[0] == 0
    assert not list(desk.folder.glob("*.report.*"))
    with pytest.raises(off.InputError, match="a dry run is no release"):
        off.report(desk.redacted(dry_run=True))


def test_standard_output_has_a_page_if_one_is_named(run, desk, monkeypatch):
    proof = ["--certificate", desk.folder / "c.json"]

    class Out(io.StringIO):
        buffer = io.BytesIO()

    words = desk.command(*proof, out=None)
    for more in ([], ["--report", desk.folder / "page.html"]):
        monkeypatch.setattr(sys, "stdout", Out())
        assert run(*words, "-o", "-", *more, "--force")[0] == 0
        assert (desk.folder / "page.html").exists() == bool(more)
    page = Reader((desk.folder / "page.html").read_text()).text()
    assert "offrecord verify c.json RELEASED" in page


class PanicError(BaseException):
    """What the drawing engine raises is not an Exception."""


FAULTS = [KeyError("a cell"), off.InputError("the disk is full"), PanicError("a cell")]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_page_does_not_cost_the_release(run, desk, monkeypatch, fault):
    def broken(*_):
        raise fault

    monkeypatch.setattr(report_module, "report_of", broken)
    code, out, err = run(*desk.command())
    assert code == 2
    assert "written: " in out
    assert "report.html" not in out
    first, *others = err.splitlines()
    assert first.endswith("the release and its certificate are there")
    assert any("taken on trust" in one for one in others)  # what is said of any release
    assert "a cell" not in err
    assert "nothing was released" not in err
    certificate, table = desk.folder / "out.csv.certificate.json", desk.folder / "out.csv"
    assert off.report(certificate, table).is_verified
    assert sorted(one.name for one in desk.folder.glob("out*")) == [table.name, certificate.name]


def test_no_page_of_an_old_table_stays_beside_a_new_one(desk):
    release, out, _ = desk.released("out.csv")
    page = off.report(release, out).write(desk.folder / "out.csv.report.html")
    release.write(out, force=True)
    assert not page.exists()


def test_nor_beside_one_without_a_page(run, desk):
    """Nor where the old table has gone."""
    page, named = desk.folder / "out.csv.report.html", desk.folder / "named.html"
    assert run(*desk.command())[0] == 0
    for one in desk.folder.glob("out.csv*"):
        if one != page:
            one.unlink()
    assert run(*desk.command("--no-report"))[0] == 0
    assert not page.exists()
    assert run(*desk.command("--report", named, "--force"))[0] == 0
    assert named.exists()


def test_of_a_page_that_fails_no_older_one_stays(run, desk, monkeypatch):
    named = desk.folder / "named.html"
    assert run(*desk.command("--report", named))[0] == 0

    def broken(*_):
        raise KeyError

    monkeypatch.setattr(report_module, "report_of", broken)
    assert run(*desk.command("--report", named, "--force"))[0] == 2
    assert not named.exists()


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_is_no_page_stays_and_costs_no_release(run, desk, kind):
    """Whatever is called as one would be."""
    other, page = desk.folder / "other", desk.folder / "out.csv.report.html"
    other.write_text("mine")
    if kind == "file":
        page.write_text("mine")
    elif kind == "folder":
        page.mkdir()
    else:
        page.symlink_to(other)
    assert run(*desk.command("--no-report"))[0] == 0
    assert (desk.folder / "out.csv").exists()
    assert page.is_dir() if kind == "folder" else page.read_text() == "mine"
    assert other.read_text() == "mine"


def test_names_that_look_like_options(run, desk, monkeypatch):
    release, *_ = desk.released("out.csv")
    report = off.report(release, "--force a  b.csv")
    for text in (Reader(report.html).text(), report.markdown):
        assert "offrecord verify './--force a  b.csv.certificate.json'" in text


def test_tables_that_grow(run, desk):
    words = [one for one in desk.command("--growing", "--step", 1) if one != "--another-release"]
    code, _, err = run(*words)
    assert code == 0, err
    text = (desk.folder / "out.csv.report.html").read_text()
    assert "wait until no later opt-out can reach them" in text
    certificate, out = desk.folder / "out.csv.certificate.json", desk.folder / "out.csv"
    code, _, err = run("report", certificate, out, "--force")
    assert code == 0, err
    assert (
        "How many records left is not known from these files: the table grows"
        in (desk.folder / "out.csv.report.html").read_text()
    )


def test_after_another_release(run, desk):
    local = ["--mechanism", "best-local"]
    assert run(*desk.command(*local, out="first.csv"))[0] == 0
    more = ["--after", desk.folder / "first.csv.certificate.json"]
    words = desk.command(*local, out="second.csv")
    words.remove("--another-release")
    words[words.index("small")] = "second"
    code, _, err = run(*words, *more, "--joint-epsilon", 5)
    assert code == 0, err
    text = (desk.folder / "second.csv.report.html").read_text()
    assert "with 1 earlier release: together they tell odds of" in text


def test_dropped_chains_are_in_no_page(run, desk):
    pl.DataFrame({"who": [3]}).write_csv(desk.list)
    assert run(*desk.command("--drop", "--allow-none"))[0] == 0
    text = (desk.folder / "out.csv.report.html").read_text()
    assert "280 rows in 7 chains" in text
    assert "--drop" not in text


# ---- report


@pytest.fixture
def made(desk):
    return desk.released("out.csv")


def test_report_from_files(run, desk, made):
    _, out, certificate = made
    code, text, err = run("report", certificate, out, "--private-list", desk.list)
    assert (code, err) == (0, "")
    assert text.rstrip().endswith(f"written: {desk.folder / 'out.csv.report.html'}")
    page = Reader((desk.folder / "out.csv.report.html").read_text()).text()
    assert "confirms certificate and released table" in page
    assert "exists; add --force" in one_line(run("report", certificate, out))
    found = json.loads(run("report", certificate, "--json", "--force")[1])
    assert found["verified"] is True
    assert found["report"] == str(desk.folder / "out.csv.report.html")
    assert found["left"]["released"] is None
    assert run("report", certificate, out, "-o", desk.folder / "short.md")[0] == 0


def test_another_table_is_refused(run, desk, made):
    _, out, certificate = made
    out.write_text(out.read_text().replace(",1\n", ",0\n", 1))
    assert "is not the table of this certificate" in one_line(run("report", certificate, out))
    assert not list(desk.folder.glob("*.report.*"))


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1", b"\xff\xfe", b'{"format": "offrecord-certificate"}']
)
def test_what_is_no_certificate(run, desk, made, content):
    certificate = made[2]
    certificate.write_bytes(content)
    assert str(certificate) in one_line(run("report", certificate))


def test_bad_words(run, desk, made):
    _, out, certificate = made
    gone = desk.folder / "gone"
    assert "gone" in one_line(run("report", gone))
    assert "gone does not exist" in one_line(run("report", certificate, gone))
    assert "must end in .html or .md" in one_line(run("report", certificate, "-o", "x.pdf"))
    assert "released table" in one_line(run("report", certificate, "--private-list", desk.list))
    assert "must be another file" in one_line(
        run("report", certificate, out, "-o", certificate, "--force")
    )
    pl.DataFrame({"who": [1], "t": [1]}).write_csv(desk.list)
    code, _, _ = run("report", certificate, out, "--private-list", desk.list, "--force")
    assert code in (1, 2)
    with pytest.raises(off.InputError, match="takes a release or the path of a certificate"):
        off.report(3)
    with pytest.raises(off.InputError, match="a release knows its private records"):
        off.report(made[0], private_list=desk.list)


def tampered(certificate, change):
    content = json.loads(certificate.read_text())
    change(content)
    certificate.write_text(json.dumps(content))


def test_a_certificate_that_does_not_hold_says_so_first(run, desk):
    """With less redaction than its leakage asks for."""
    _, out, certificate = desk.released("out.csv", mechanism="best-local")

    def less(content):
        for side in content["designs"]["sides"]:
            for stretch in side:
                stretch[1] = [0.5 * chance for chance in stretch[1]]

    tampered(certificate, less)
    code, text, err = run("report", certificate, out, "--private-list", desk.list)
    assert code == 1
    assert "NOT VERIFY" in err
    page = (desk.folder / "out.csv.report.html").read_text()
    reader = Reader(page)
    assert next(one["id"] for one in reader.all("section")) == "not-verified"
    assert "Do not rely on what follows" in reader.text()
    assert "does not verify: what follows is what it claims" in reader.text()
    assert "nothing was counted, as the certificate does not hold" in reader.text()
    assert "written: " in text
    found = json.loads(run("report", certificate, "--json", "--force")[1])
    assert found["verified"] is False
    assert found["problems"]


def test_a_claim_that_is_changed_is_not_believed(run, desk, made):
    certificate = made[2]
    tampered(certificate, lambda content: content["claim"].update(leakage=0.1))
    assert run("report", certificate)[0] == 1


# ---- what the page leaves out


def test_no_key_and_no_place_of_this_machine(desk):
    """Nor which records are private, unless that is published."""
    frame = drawn().with_columns(who=pl.concat_str(pl.lit("person-"), "who"))
    listed = pl.DataFrame(
        [(f"person-{who}", t) for who, t in PRIVATE], schema=["who", "t"], orient="row"
    )
    release, out, certificate = desk.released("out.parquet", frame, private_list=listed)
    listed.write_csv(desk.list)
    every = [
        off.report(release, out),
        off.report(certificate, out),
        off.report(certificate, out, private_list=desk.list),
    ]
    for report in every:
        for text in (report.html, report.markdown):
            assert "person-" not in text
            assert str(desk.folder) not in text
            assert json.loads(desk.key.read_text())["key"] not in text
    shutil.rmtree(desk.folder / "keys")


@pytest.mark.parametrize("same_table", [False, True])
def test_no_page_beside_the_table_of_another_run(run, desk, monkeypatch, same_table):
    """Another run with the same output was quicker to write than this one to report."""
    first = report_module.report_of
    tables = set()

    def slowly(*given):
        made, out = first(*given), desk.folder / "out.csv"
        tables.add(out.read_bytes())
        other = desk.redacted(drawn(seed=1 if same_table else 9), mechanism="window", epsilon=1.001)
        other.write(out, force=True)
        tables.add(out.read_bytes())
        return made

    monkeypatch.setattr(report_module, "report_of", slowly)
    code, _, err = run(*desk.command("--mechanism", "window"))
    assert len(tables) == (1 if same_table else 2)
    assert code == 2
    assert "another run has overwritten the release" in err
    assert not (desk.folder / "out.csv.report.html").exists()


def test_the_page_names_the_table_by_its_digest(run, desk):
    for how in ("--in-memory", "--stream"):
        assert run(*desk.command(how, "--force"))[0] == 0
        digest = hashlib.sha256((desk.folder / "out.csv").read_bytes()).hexdigest()
        assert digest in (desk.folder / "out.csv.report.html").read_text()
