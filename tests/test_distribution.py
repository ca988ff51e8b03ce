"""What `make dist` refuses: too much, too little, and what is said wrongly."""

import io
import tarfile
import tomllib
import zipfile

import pytest
from distribution.check import (
    ABOUT,
    BESIDE,
    MADE,
    NEEDED,
    ROOT,
    DistributionError,
    check_sdist,
    check_wheel,
    packaged,
    sdist_files,
    wheel_files,
)

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAMED = f"offrecord-{PROJECT['version']}"
METADATA = "".join(
    [
        f"Metadata-Version: 2.4\nName: offrecord\nVersion: {PROJECT['version']}\n",
        f"Summary: {PROJECT['description']}\nLicense-Expression: Apache-2.0\n",
        f"Requires-Python: {PROJECT['requires-python']}\nDescription-Content-Type: text/markdown\n",
        *(f"Provides-Extra: {extra}\n" for extra in PROJECT["optional-dependencies"]),
    ]
).encode()
PACKAGE = {*NEEDED, "explorer/page.html", "explorer/page.js"}


def wheel():
    """A wheel as it should be."""
    files = {f"offrecord/{name}": b"" for name in PACKAGE}
    files |= {f"{NAMED}.dist-info/{name}": b"" for name in ABOUT}
    files[f"{NAMED}.dist-info/METADATA"] = METADATA
    script = b"[console_scripts]\noffrecord = offrecord.cli:run\n"
    files[f"{NAMED}.dist-info/entry_points.txt"] = script
    return files


def sdist():
    """An sdist as it should be."""
    files = {f"{NAMED}/src/offrecord/{name}": b"" for name in PACKAGE}
    files |= {f"{NAMED}/{name}": b"" for name in (*BESIDE, *MADE)}
    return files | {f"{NAMED}/PKG-INFO": METADATA}


def test_the_files_of_the_package_are_found():
    found = packaged()
    assert set(NEEDED) <= found
    assert not [name for name in found if name.endswith(".pyc")]


def test_as_they_should_be():
    check_wheel(wheel(), PACKAGE, PROJECT)
    check_sdist(sdist(), PACKAGE, PROJECT)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tests/test_text.py", "the wheel holds tests/test_text.py"),
        ("offrecord/out/key.json", "the wheel holds offrecord/out/key.json"),
        (".venv/bin/python", "the wheel holds .venv/bin/python"),
    ],
)
def test_a_wheel_with_more(name, said):
    with pytest.raises(DistributionError, match=said):
        check_wheel({**wheel(), name: b""}, PACKAGE, PROJECT)


@pytest.mark.parametrize("name", [*NEEDED, "explorer/page.js"])
def test_a_wheel_with_less(name):
    files = wheel()
    del files[f"offrecord/{name}"]
    with pytest.raises(DistributionError, match=f"the wheel lacks offrecord/{name}"):
        check_wheel(files, PACKAGE, PROJECT)
    if name in NEEDED:  # nor may the checkout lack it
        with pytest.raises(DistributionError, match=f"the wheel lacks {name}"):
            check_wheel(files, PACKAGE - {name}, PROJECT)


def test_a_wheel_without_its_licence():
    files = wheel()
    del files[f"{NAMED}.dist-info/licenses/LICENSE"]
    with pytest.raises(DistributionError, match=r"lacks .*licenses/LICENSE"):
        check_wheel(files, PACKAGE, PROJECT)


def test_a_file_of_a_kind_that_is_not_released():
    stray = "demo/key.pem"
    with pytest.raises(DistributionError, match=r"holds demo/key\.pem, of an unknown kind"):
        check_wheel({**wheel(), f"offrecord/{stray}": b""}, PACKAGE | {stray}, PROJECT)


@pytest.mark.parametrize("place", ["src/offrecord/text.py", ".venv/bin/python"])
def test_a_path_of_the_machine(place):
    content = f"here: {ROOT}/{place}".encode()
    with pytest.raises(DistributionError, match=r"py\.typed names a path of this machine"):
        check_wheel({**wheel(), "offrecord/py.typed": content}, PACKAGE, PROJECT)
    with pytest.raises(DistributionError, match=r"README\.md names a path of this machine"):
        check_sdist({**sdist(), f"{NAMED}/README.md": content}, PACKAGE, PROJECT)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (b"Version: 0", b"Version: 9", "^Version must be "),
        (b"Apache-2.0", b"MIT", "License-Expression must be 'Apache-2.0', got 'MIT'"),
        (b"text/markdown", b"text/plain", "Description-Content-Type must be "),
        (b"Provides-Extra: spark\n", b"", "extras must be "),
    ],
)
def test_other_metadata(before, after, said):
    assert METADATA.count(before) >= 1
    wrong = METADATA.replace(b"Metadata-Version: 2.4\n", b"").replace(before, after)
    with pytest.raises(DistributionError, match=said):
        check_wheel({**wheel(), f"{NAMED}.dist-info/METADATA": wrong}, PACKAGE, PROJECT)


def test_a_wheel_without_the_command():
    with pytest.raises(DistributionError, match=r"no command offrecord = offrecord\.cli:run"):
        check_wheel({**wheel(), f"{NAMED}.dist-info/entry_points.txt": b""}, PACKAGE, PROJECT)


@pytest.mark.parametrize("name", ["tests/test_text.py", "out/demo/released.csv"])
def test_an_sdist_with_more(name):
    with pytest.raises(DistributionError, match=f"the sdist holds {NAMED}/{name}"):
        check_sdist({**sdist(), f"{NAMED}/{name}": b""}, PACKAGE, PROJECT)


def test_files_are_read_as_they_are_packed(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as packed:
        for name, content in wheel().items():
            packed.writestr(name, content)
    assert wheel_files(tmp_path / "a.whl") == wheel()
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as packed:
        for name, content in sdist().items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    assert sdist_files(tmp_path / "a.tar.gz") == sdist()


def test_a_link_in_an_sdist(tmp_path):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as packed:
        link = tarfile.TarInfo(f"{NAMED}/src/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        packed.addfile(link)
    with pytest.raises(DistributionError, match="link, which is not a file"):
        sdist_files(tmp_path / "a.tar.gz")
