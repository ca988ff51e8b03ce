"""Builds sdist and wheel into dist/, looks into both, and does the demo from the wheel alone.

    python distribution/check.py

The wheel is built from the sdist, and once more from the checkout: both must be the same bytes. It
is then installed into a fresh environment in a temporary folder, far from the checkout.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import venv
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.parser import BytesParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "offrecord"
#: What may be in the package: code, its data and notes, and pages with what they need.
ENDINGS = {".py", ".typed", ".csv", ".md", ".json", ".html", ".css", ".js", ".svg"}
#: What must be, whatever else there is.
NEEDED = ("__init__.py", "py.typed", "cli/__init__.py", "demo/jfk_rain_2013.csv", "demo/README.md")
#: Besides the package, in the wheel's own folder, and in the sdist.
ABOUT = ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
BESIDE = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "SECURITY.md")
MADE = ("PKG-INFO", ".gitignore")
#: How a path into this machine's checkout begins.
PATHS = (f"{ROOT}/src/", f"{ROOT}/.venv/")


class DistributionError(Exception):
    """What is wrong with a distribution, in one line."""


# ---- what is in them


def packaged(source: Path = SOURCE) -> set[str]:
    """The files of the package in the checkout."""
    found = (file.relative_to(source) for file in source.rglob("*") if file.is_file())
    return {file.as_posix() for file in found if "__pycache__" not in file.parts}


def wheel_files(wheel: Path) -> dict[str, bytes]:
    """What is in a wheel, by name."""
    with zipfile.ZipFile(wheel) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def sdist_files(sdist: Path) -> dict[str, bytes]:
    """What is in an sdist, by name; DistributionError for anything but plain files."""
    found = {}
    with tarfile.open(sdist) as packed:
        for member in packed:
            content = packed.extractfile(member) if member.isfile() else None
            if content is None:
                raise DistributionError(f"the sdist holds {member.name}, which is not a file")
            found[member.name] = content.read()
    return found


def check_wheel(files: Mapping[str, bytes], package: set[str], project: Mapping) -> None:
    """DistributionError unless a wheel holds the package, what is said of it, and no more."""
    named = f"{project['name']}-{project['version']}"
    about = f"{named}.dist-info"
    wanted = {f"offrecord/{name}" for name in package} | {f"{about}/{name}" for name in ABOUT}
    check_names("the wheel", files, wanted)
    check_needed("the wheel", [name.removeprefix("offrecord/") for name in files])
    check_paths("the wheel", files)
    check_metadata(files[f"{about}/METADATA"], project)
    script = f"offrecord = {project['scripts']['offrecord']}"
    if script not in files[f"{about}/entry_points.txt"].decode():
        raise DistributionError(f"the wheel has no command {script}")


def check_sdist(files: Mapping[str, bytes], package: set[str], project: Mapping) -> None:
    """DistributionError unless an sdist holds what makes the wheel, and nothing else."""
    named = f"{project['name']}-{project['version']}"
    wanted = {f"{named}/src/offrecord/{name}" for name in package}
    check_names("the sdist", files, wanted | {f"{named}/{name}" for name in (*BESIDE, *MADE)})
    check_paths("the sdist", files)
    check_metadata(files[f"{named}/PKG-INFO"], project)


def check_names(what: str, files: Mapping[str, bytes], wanted: set[str]) -> None:
    """DistributionError unless exactly these files are in it."""
    for said, names in (("lacks", wanted - set(files)), ("holds", set(files) - wanted)):
        if names:
            raise DistributionError(f"{what} {said} {', '.join(sorted(names)[:5])}")


def check_needed(what: str, names: list[str]) -> None:
    """DistributionError for a file that the checkout itself lacks, or one of an unknown kind."""
    lacking = [name for name in NEEDED if name not in names]
    strange = [
        name for name in names if ".dist-info/" not in name and Path(name).suffix not in ENDINGS
    ]
    if lacking or strange:
        said = f"lacks {lacking[0]}" if lacking else f"holds {strange[0]}, of an unknown kind"
        raise DistributionError(f"{what} {said}")


def check_paths(what: str, files: Mapping[str, bytes]) -> None:
    """DistributionError if a file names a folder of this machine's checkout."""
    for name, content in files.items():
        for path in PATHS:
            if path.encode() in content:
                raise DistributionError(f"{what}: {name} names a path of this machine")


def check_metadata(content: bytes, project: Mapping) -> None:
    """DistributionError unless it says what pyproject.toml does."""
    said = BytesParser().parsebytes(content)
    wanted = {
        "Name": project["name"],
        "Version": project["version"],
        "Summary": project["description"],
        "License-Expression": project["license"],
        "Requires-Python": project["requires-python"],
        "Description-Content-Type": "text/markdown",
    }
    for field, value in wanted.items():
        if said[field] != value:
            raise DistributionError(f"{field} must be {value!r}, got {said[field]!r}")
    if set(said.get_all("Provides-Extra", [])) != set(project["optional-dependencies"]):
        raise DistributionError(f"extras must be {', '.join(project['optional-dependencies'])}")


# ---- making and trying them


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Say what is done, and how long it took."""
    began = time.perf_counter()
    yield
    print(f"{time.perf_counter() - began:6.1f} s  {what}", flush=True)


def run(*command: object, cwd: Path, **environment: str) -> str:
    """The output of a command; DistributionError, with its last words, if it fails."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise DistributionError(
            f"{' '.join(map(str, command))}:\n{(done.stdout + done.stderr)[-3000:]}"
        )
    return done.stdout


def build(folder: Path, *kinds: str) -> list[Path]:
    """What `python -m build` makes of the checkout, in a folder."""
    run(sys.executable, "-m", "build", "--outdir", folder, *kinds, ROOT, cwd=folder)
    return sorted(folder.iterdir())


def make(project: Mapping) -> Path:
    """Build and look into both; the wheel."""
    named = f"{project['name']}-{project['version']}"
    with tempfile.TemporaryDirectory() as place:
        both, again = Path(place) / "both", Path(place) / "again"
        both.mkdir()
        again.mkdir()
        with timed("built the sdist, and the wheel from it"):
            found = {file.name: file for file in build(both)}
        wheel, sdist = found[f"{named}-py3-none-any.whl"], found[f"{named}.tar.gz"]
        with timed("built both again from the checkout: the same bytes"):
            for file in build(again, "--sdist", "--wheel"):
                if file.read_bytes() != found[file.name].read_bytes():
                    raise DistributionError(f"{file.name} is not the same when it is built again")
        with timed("looked into both"):
            check_wheel(wheel_files(wheel), packaged(), project)
            check_sdist(sdist_files(sdist), packaged(), project)
        out = ROOT / "dist"
        out.mkdir(exist_ok=True)
        for file in (sdist, wheel):
            (out / file.name).write_bytes(file.read_bytes())
    return out / wheel.name


def try_out(wheel: Path, project: Mapping) -> None:
    """The wheel in a fresh environment, far from the checkout."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        environment, work = folder / "environment", folder / "work"
        work.mkdir()
        own = {"XDG_DATA_HOME": str(folder / "data")}
        with timed("made a fresh environment"):
            venv.create(environment, with_pip=True)
        scripts = environment / ("Scripts" if os.name == "nt" else "bin")
        pip = scripts / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"
        with timed("installed the wheel"):
            run(*pip, "--no-compile", wheel, cwd=work)  # what is not used need not be compiled
        command = scripts / "offrecord"
        with timed("offrecord --version"):
            said = run(command, "--version", cwd=work, **own)
            if project["version"] not in said.split():
                raise DistributionError(
                    f"offrecord --version must say {project['version']}, got {said!r}"
                )
        with timed("offrecord demo"):
            demo = "-c", "import offrecord; print(offrecord.__file__)"
            at = Path(run(scripts / "python", *demo, cwd=work, **own).strip()).resolve()
            if not at.is_relative_to(environment):
                raise DistributionError(f"the package is not that of the environment but {at}")
            run(command, "demo", cwd=work, **own)
        with timed("offrecord verify of what the demo released"):
            released = "offrecord-demo/released.csv"
            run(command, "verify", f"{released}.certificate.json", released, cwd=work, **own)
        for extra in project["optional-dependencies"]:
            with timed(f"the extra {extra} resolves"):
                run(*pip, "--dry-run", f"{wheel}[{extra}]", cwd=work)


def main() -> None:
    """All of it; exit 1 with what is wrong."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    try:
        with timed("in all"):
            wheel = make(project)
            try_out(wheel, project)
    except DistributionError as wrong:
        sys.exit(f"dist: {wrong}")
    print(f"made: dist/{wheel.name} and its sdist")


if __name__ == "__main__":
    main()
