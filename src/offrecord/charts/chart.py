"""A chart: a Vega-Lite specification with a title and the same in words, drawn without a browser.

The drawing engine is V8, which ends the process where it finds too little address space; whether it
can run is asked before.
"""

from __future__ import annotations

import base64
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from pathlib import Path

from offrecord.charts.look import CONFIG, Spec
from offrecord.errors import InputError
from offrecord.files import check_writable, write_bytes

FORMATS = ("svg", "png", "html")
#: Bytes of address space, which is not memory, that the engine (V8) is sure to find enough.
_ADDRESS_SPACE = 128 << 30
_POINTS_AN_INCH = 160.0  # of a PNG: sharp on paper at the width of a column
#: A tag, whose attributes stand in quotes that no value holds; text has no `<` of its own.
_TAG = re.compile(r'<[a-zA-Z][\w:-]*(?:\s+[\w:-]+="[^"]*")*\s*/?>')
_SPOKEN = re.compile(r' (?:aria-[a-z]+|role)="[^"]*"')


@dataclass(frozen=True, eq=False, repr=False)
class Chart:
    """A picture.

    spec: Vega-Lite. title: what it is. description: what it shows, for people who do not see it.
    """

    spec: Spec
    title: str
    description: str

    def __repr__(self) -> str:
        return f"<Chart: {self.title}>"

    def svg(self, name: str = "chart") -> str:
        """An SVG with title and description.

        name: unique on its page; its caption there has the id `name`-caption.
        """
        # the engine's own <svg> has neither a role nor words
        head = (
            f'<svg role="img" aria-labelledby="{name}-title" aria-describedby="{name}-caption" \\1>'
            f'<title id="{name}-title">{_replacement(self.title)}</title>'
            f"<desc>{_replacement(self.description)}</desc>"
        )
        return re.sub(r"<svg ([^>]*)>", head, _drawn(json.dumps(self.spec)), count=1)

    def png(self) -> bytes:
        """A PNG on white, for print."""
        import vl_convert

        # paper is white, whatever a browser would show
        config = CONFIG | {"background": "white"}
        drawn: bytes = vl_convert.vegalite_to_png(
            self.spec, config=config, ppi=_POINTS_AN_INCH, allowed_base_urls=[]
        )
        return drawn

    def html(self) -> str:
        """A page of its own that asks nobody for anything."""
        title = escape(self.title)
        return (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            f"</head><body><figure>{self.svg()}"
            f'<figcaption id="chart-caption">{escape(self.description)}</figcaption>'
            "</figure></body></html>\n"
        )

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """Write it as a file.

        path: ends in .svg, .png or .html. force: overwrite a file that is there. InputError if
        nothing can be written or drawn there.
        """
        check_picture(path, force=force)
        write_bytes(path, self._as(_kind(path)), force=force)

    def _as(self, kind: str) -> bytes:
        if kind == "png":
            return self.png()
        return (self.svg() if kind == "svg" else self.html()).encode()

    def _repr_html_(self) -> str:
        # For notebooks: an image on white, so that names inside cannot meet those of another.
        alt = escape(f"{self.title}. {self.description}")
        if undrawable() is not None:
            return f"<p>{alt}</p>"
        content = base64.b64encode(self.svg().encode()).decode()
        look = "max-width:100%;background:#fff;border-radius:4px"
        return f'<p><img alt="{alt}" style="{look}" src="data:image/svg+xml;base64,{content}"></p>'


def _replacement(text: str) -> str:
    # Escaped for XML, and for a replacement by a regular expression.
    return escape(text).replace("\\", "\\\\")


@lru_cache(maxsize=64)  # the explorer and the pages of one model draw the same charts again
def _drawn(spec: str) -> str:
    # A specification as SVG; screen readers read the whole picture, not its parts.
    import vl_convert

    drawn = vl_convert.vegalite_to_svg(spec, config=CONFIG, allowed_base_urls=[])
    return _TAG.sub(lambda tag: _SPOKEN.sub("", tag[0]), drawn)


def undrawable() -> str | None:
    """Why nothing can be drawn here; None where all is well."""
    try:
        import vl_convert  # noqa: F401
    except ImportError:
        return "pictures need vl-convert-python, which is not installed"
    return _confined()


def _confined() -> str | None:
    with suppress(ImportError):  # systems without this module have no such limit
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY and limit < _ADDRESS_SPACE:
            return (
                f"pictures take {_ADDRESS_SPACE >> 30} GiB of address space, and a limit leaves"
                f" {limit / 2**30:.3g} (ulimit -v)"
            )
    return None


def check_drawable() -> None:
    """InputError where nothing can be drawn."""
    why = undrawable()
    if why is not None:
        raise InputError(f"{why}: remove this cause, or ask for no picture")


def _kind(path: str | Path) -> str:
    return Path(path).suffix.removeprefix(".")


def check_picture(path: str | Path, *, force: bool) -> None:
    """InputError unless a chart could be written there."""
    if _kind(path) not in FORMATS:
        raise InputError(
            f"picture must end in {', '.join('.' + name for name in FORMATS)}, got {path}"
        )
    check_writable(path, force=force)
    check_drawable()
