"""Survey of an unknown table: what its columns seem to be, and the commands to run next.

Roles are guessed from names and cells, and a person may name any of them instead. Counts of values
are for the publisher, whose own table this is; errors show headers and order values only.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from offrecord.errors import InputError, as_called
from offrecord.models.base import Floats, Integers
from offrecord.tables.cells import parsed_times
from offrecord.tables.chains import ROW, Arranged, Columns, arrange
from offrecord.tables.column_names import SEPARATORS, check_columns, listed, step_columns
from offrecord.tables.frames import Native, from_native
from offrecord.tables.io.csv import is_tabbed
from offrecord.tables.io.format import ReadOptions
from offrecord.tables.io.formats import read_list, table_file, table_format
from offrecord.tables.problems import Check, LocatedError
from offrecord.tables.steps import Step
from offrecord.tables.values import MAX_VALUES, typed_text, value_cells
from offrecord.text import aligned, many, plain

#: Words in the names of columns that suggest their role.
_WORDS = {
    "by": "id pid uid hhid person patient subject participant user customer client case household"
    " company chain series sensor station room device machine vehicle animal site city region",
    "order": "t time date datetime timestamp step order index position pos day week month year"
    " syear hour minute second wave round visit age trial period quarter frame",
    "value": "value state status label activity class level answer outcome symptom stage genotype"
    " event page letter y",
    "private": "private optout opt opted hidden secret sensitive withheld",
}
_CASE, _EVENT, _TIMESTAMP = "case:concept:name", "concept:name", "time:timestamp"  # of pm4py
#: Dates as people write them; of several forms that fit, the first is taken.
_DAYS = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%d %b %Y")
_DATES = [f"{day}{hour}" for day in _DAYS for hour in ("", " %H:%M", " %H:%M:%S")]
#: What stands for a missing value in surveys, beside negative numbers.
_MISSING_NUMBERS = (98, 99, 998, 999, 9998, 9999)
_MISSING_TEXTS = ("na", "n/a", "nan", "null", "missing", "unknown", "refused", "-", "?")

_FEW_CHAINS, _LONG_CHAIN = 20, 100  # a sensor: fewer chains than that, at least as long
_COMMON_STEPS = 400  # a panel: no more steps than that, shared by its chains
_MANY_VALUES = 8  # with more values, `fit` and `redact` take minutes and release little
_SHOWN = 12  # values that are printed
# 17 kinds of pages and 70 stations lie 0.35 to 1 times as far apart as records at random; weather,
# light and gases 0.02 to 0.2 times
_NEAR = 0.3
_MOST_CODES = 100
_LOOKED_AT = 1000  # values among which codes and variants are looked for

#: Texts, or lists of them, as Python: with the double quotes that shells leave as they are.
_text = partial(json.dumps, ensure_ascii=False)


class Column(NamedTuple):
    """A column. kind: what all of its cells are. form: of dates that are not in ISO form."""

    name: str
    kind: str
    distinct: int
    empty: int
    form: str | None = None
    role: str | None = None

    def sounds(self, role: str) -> bool:
        """Whether its name suggests a role, as "seq_id" and "seqId" do."""
        words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", self.name)
        return not {word.lower() for word in words}.isdisjoint(_WORDS[role].split())

    @property
    def words(self) -> str:
        """Its role, and what it holds."""
        empty = f", {self.empty:,} empty" if self.empty else ""
        return f"{self.role or 'not used'}: {self.kind}, {self.distinct:,} different{empty}"

    @property
    def is_mark(self) -> bool:
        """Whether all of its cells are true or false."""
        return self.kind == "true and false"

    @property
    def may_order(self) -> bool:
        """Times may order records, and so may whole numbers that are called so."""
        named = self.sounds("order") and not self.sounds("by")
        dated = self.kind in ("days", "times", "dates")
        return dated or (self.kind == "whole numbers" and named)


class Roles(NamedTuple):
    """Which column says what. order "row": as rows stand. time: by which they do, in a log."""

    value: str | None = None
    order: str | None = None
    by: tuple[str, ...] = ()
    private: str | None = None
    time: str | None = None

    def shown(self, columns: Mapping[str, Column]) -> list[Column]:
        """Columns with their roles."""
        roles = {name: role for role, name in self._asdict().items() if isinstance(name, str)}
        roles |= dict.fromkeys(self.by, "by")
        return [column._replace(role=roles.get(name)) for name, column in columns.items()]


@dataclass(frozen=True)
class Look:
    """What a table seems to hold, and what to run next.

    kind: "panel", "sensor", "one sequence", "many sequences" or "event log". lengths: of the
    shortest, the median and the longest chain. step: what `--step` takes, None without one. gaps:
    how many steps between rows have none. values: how often each occurs. notes: what may need a
    hand. fit, redact: the commands.
    """

    table: str
    rows: int
    kind: str
    columns: list[Column]
    chains: int
    lengths: list[int]
    step: str | None
    gaps: int
    values: dict[str, int]
    notes: list[str]
    fit: str
    redact: str

    def to_dict(self) -> dict[str, Any]:
        """All of it, as `--json` prints it."""
        return asdict(self) | {"columns": [column._asdict() for column in self.columns]}

    def __str__(self) -> str:
        notes = [f"note: {note}" for note in self.notes]
        below = ["", *notes, "", self.fit, "", self.redact]
        return "\n".join([aligned([*self._lines()]), *map(plain, below)])

    def _lines(self) -> Iterator[tuple[str, str]]:
        yield "table", f"{self.table}: {many(self.rows, 'row')}, {self.kind}"
        yield from ((column.name, column.words) for column in self.columns)
        shortest, median, longest = self.lengths
        yield "chains", f"{self.chains:,} of {shortest:,} to {longest:,} rows, median {median:,}"
        gaps = many(self.gaps, "step") + " without a row"
        yield "step", "none" if self.step is None else f"{self.step}, {gaps}"
        shown = [f"{value}: {count:,}" for value, count in self.values.items()]
        yield "values", ", ".join(shown[:_SHOWN]) + ", …" * (len(shown) > _SHOWN)


def look(
    table: Native | str | Path,
    *,
    value: str | None = None,
    order: str | None = None,
    by: str | Sequence[str] | None = None,
    private: str | None = None,
    private_list: str | Path | None = None,
    epsilon: float | None = None,
    dataset: str | None = None,
    **reading: Any,
) -> Look:
    """Look at a table: what its columns seem to be, and the commands to run next.

    Args:
        table: a table file, or any frame narwhals knows.
        value, order, by, private: columns whose role you know; the others are guessed.
        private_list, epsilon, dataset: what the commands say instead of words in capitals.
        reading: format, separator or encoding of a file, as in `redact_file`.

    Returns:
        What the table seems to be; it prints as text.

    Raises:
        InputError: for a table that cannot be used as it is, with a line that mends it.
    """
    is_file = isinstance(table, (str, Path))
    options = ReadOptions(**reading)
    held = _Table.read(Path(table), options) if is_file else _Table(from_native(table))
    if not held.frame.height:
        raise InputError("the table has no rows")
    blank = next((name for name in held.columns if name != name.strip()), None)
    if blank is not None:
        raise held.error(f"has a column {blank!r}, with blanks around", ".rename(str.strip)")
    known = Roles(value, order, (by,) if isinstance(by, str) else tuple(by or ()), private)
    named = [value, None if order == ROW else order, private, *known.by]
    check_columns([one for one in named if one], held.frame.columns, held.name)
    if private_list is not None:
        known = _named_by(read_list(private_list, options).columns, held, known)
    given = {"private_list": private_list, "epsilon": epsilon, "dataset": dataset}
    return _looked(held, _roles(held, known), given)


# ---- a table, and what makes another one of it


@dataclass(frozen=True)
class _Table:
    """A table that is looked at. kind: the format of its file, "frame" for one in memory."""

    frame: pl.DataFrame
    name: str = "the table"
    kind: str = "frame"
    said: ReadOptions = field(default_factory=ReadOptions)

    @classmethod
    def read(cls, path: Path, said: ReadOptions) -> _Table:
        """A table file."""
        if path.suffix.lower() == ".json":
            table = cls(pl.DataFrame(), str(path), "json", said)
            raise table.error("is one JSON value, not one row a line", "")
        table = cls(table_file(path, said).read(), str(path), table_format(path, said.format), said)
        header = table.frame.columns[0] if table.frame.width == 1 and table.kind == "csv" else ""
        others = (one for one in SEPARATORS if one in header and one != (said.separator or ","))
        if separator := next(others, None):
            instead = f"give --separator {SEPARATORS[separator]}"
            raise InputError(f"{path} has a single column, {header[:60]!r}; {instead}")
        return table

    @cached_property
    def columns(self) -> dict[str, Column]:
        """What each column is."""
        return {name: _described(self.frame[name]) for name in self.frame.columns}

    @property
    def stem(self) -> str:
        """The file's name without endings."""
        return Path(self.name).name.partition(".")[0]

    def error(self, problem: str, change: str) -> InputError:
        """What is wrong with the table, and one line that mends it."""
        return InputError(f"{self.name} {problem}: {self.mended(change)}")

    def mended(self, change: str) -> str:
        """A line that makes a changed table: in Python, or in a shell for a file."""
        if self.kind == "frame":
            return f"table = pl.DataFrame(table){change}"
        reading = ""
        if self.kind == "csv":  # cells stay the text that they are
            is_tab = self.said.separator == "tab" or is_tabbed(Path(self.name))
            separator = "\t" if is_tab else self.said.separator or ","
            reading = f", infer_schema=False, separator={_text(separator)}"
        writer = "ndjson" if self.kind == "json" else self.kind
        made = f"{self.stem}-ready.{writer}"
        table = f"pl.read_{self.kind}({_text(self.name)}{reading}){change}"
        code = f"import polars as pl; {table}.write_{writer}({_text(made)})"
        return f"python -c {shlex.quote(code)} && offrecord look {shlex.quote(made)}"

    def command(self, verb: str, options: dict[str, Any]) -> str:
        """A call of `fit` or `redact`: in Python, or in a shell for a file."""
        given = _given(options)
        if self.kind == "frame":
            words = [f"{name}={one!r}" for name, one in given.items()]
            made, model = ("model", "") if verb == "fit" else ("release", ", model=model")
            return f"{made} = off.{verb}(table, {', '.join(words)}{model})"
        given |= _given(asdict(self.said))
        model = f"{self.stem}.model.json"
        released = {"model": model, "output": f"{self.stem}-released.{self.kind}"}
        words = ["offrecord", verb, self.name]
        for name, one in (given | ({"output": model} if verb == "fit" else released)).items():
            words += _flag(name, one)
        return shlex.join(words)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in options.items() if one is not None}


def _flag(name: str, one: Any) -> list[str]:
    text = ",".join(map(str, one)) if isinstance(one, list) else str(one)
    return [f"--{name.replace('_', '-')}", *([] if one is True else [text])]


# ---- columns and their roles


def _described(series: pl.Series) -> Column:
    cells = series.drop_nulls()
    if isinstance(cells.dtype, (pl.Categorical, pl.Enum, pl.String)):
        cells = _typed(cells.cast(pl.String).unique(maintain_order=True))
    kind = _kind_of(cells.dtype)
    form = _date_form(cells) if kind == "text" else None
    distinct = 0 if kind == "other" else cells.n_unique()
    return Column(series.name, "dates" if form else kind, distinct, series.null_count(), form)


def _date_form(cells: pl.Series) -> str | None:
    """The form of text that is all dates, but not in ISO form."""
    if not len(cells) or not re.fullmatch(r"\d+[/. -]\w+[/. -]\d+.*", cells[0]):
        return None
    times = ((form, cells.str.to_datetime(form, strict=False)) for form in _DATES)
    return next((form for form, read in times if not read.null_count()), None)


def _kind_of(kind: pl.DataType) -> str:
    if kind.is_numeric():
        return "whole numbers" if kind.is_integer() else "numbers"
    known = {pl.Boolean: "true and false", pl.Date: "days", pl.String: "text", pl.Datetime: "times"}
    return known.get(type(kind), "other")


def _typed(cells: pl.Series) -> pl.Series:
    """Texts as numbers, times or truth values, if all of them are; else without blanks around."""
    cells = cells.str.strip_chars()
    times = parsed_times(cells) if len(cells) else cells
    return typed_text(cells) if times is None else times


def _check_wide(table: _Table) -> None:
    """InputError for a table with a column for each step, and none that orders rows."""
    steps = step_columns(table.columns)
    others = [column for name, column in table.columns.items() if name not in steps]
    if not steps or any(column.may_order for column in others):
        return
    names, change = [column.name for column in others], ""
    if all(column.distinct < table.frame.height for column in others):  # nothing names the rows
        names, change = ["row_id", *names], '.with_row_index("row_id", offset=1)'
    change += f'.unpivot(index={_text(names)}, variable_name="step", value_name="value")'
    digits = _text(r"(\d[\d-]*)$")
    change += f'.with_columns(pl.col("step").str.extract({digits}))'
    said = f"has a column for each of {len(steps)} steps, such as {steps[0]!r}, not a row"
    raise table.error(said, change)


def _named_by(listed: Sequence[str], table: _Table, known: Roles) -> Roles:
    """The roles of the columns that a private list has, where a person has not said them."""
    shared = [one for one in table.columns.values() if one.name in listed]
    orders = [one.name for one in shared if one.may_order and one.name not in known.by]
    names = tuple(one.name for one in shared if not one.may_order)
    if not known.order and len(orders) == 1:
        known = known._replace(order=orders[0])
    return known._replace(by=known.by or names)


def _roles(table: _Table, known: Roles) -> Roles:
    columns = table.columns
    if known.order is None:
        _check_wide(table)
    if {_CASE, _EVENT} <= columns.keys() and known.by in ((), (_CASE,)) and not known.value:
        time = _TIMESTAMP if _TIMESTAMP in columns and not known.order else None
        return Roles(_EVENT, known.order or ROW, (_CASE,), known.private, time)
    marks = [one.name for one in columns.values() if one.distinct <= 2 and one.sounds("private")]
    known = known._replace(private=known.private or next(iter(marks), None))
    free = [one for one in columns.values() if one.name not in (known.value, *known.by, *marks)]
    # times before numbers: they show gaps, and which hour or month it is
    times = sorted((one for one in free if one.may_order), key=lambda one: "number" in one.kind)
    orders = [one.name for one in times] if known.order is None else [known.order]
    order, by = _key(table.frame, orders, _chain_columns(table, known, free), known.order or ROW)
    time = orders[0] if orders and order == ROW and known.order is None else None
    roles = known._replace(order=order, by=tuple(by), time=time)
    return roles._replace(value=known.value or _value_column(table.frame, free, roles))


def _key(
    frame: pl.DataFrame, orders: Sequence[str], sets: Sequence[Sequence[str]], otherwise: str
) -> tuple[str, Sequence[str]]:
    """What orders rows and names chains, the first by which no two rows are alike."""
    tried = [(order, by) for order in orders for by in sets if order != ROW]
    # an order value comes once in a chain, but for the hour that clocks show twice in autumn
    keys = (key for is_key in (_is_key, _is_local) for key in tried if is_key(frame, *key))
    return next(keys, (otherwise, sets[0]))


def _chain_columns(table: _Table, known: Roles, free: Sequence[Column]) -> list[Sequence[str]]:
    """What may name chains, the likeliest first; nothing names a single one."""
    if known.by:
        return [known.by]
    names = [
        one.name
        for one in free
        if not (one.sounds("value") or one.may_order) and one.distinct < table.frame.height
        if one.kind in ("text", "whole numbers", "true and false")
    ]
    # a name that says nothing may be that of the value, of which one column must be left
    is_left = known.value is not None or any(one.sounds("value") for one in free)
    others = names if len(names) > 1 or is_left else []
    likely = [name for name in names if table.columns[name].sounds("by")]
    return [*([one] for one in likely), [], *([one] for one in others)]


def _is_key(frame: pl.DataFrame, order: str, by: Sequence[str]) -> bool:
    return frame.select(order, *by).n_unique() == frame.height


def _is_local(frame: pl.DataFrame, order: str, by: Sequence[str]) -> bool:
    """Whether rows are alike in an hour a year at most, as where clocks are put back."""
    times = frame.filter(frame.select(order, *by).is_duplicated())[order]
    times = _typed(times) if times.dtype == pl.String else times
    if not isinstance(times.dtype, pl.Datetime) or times.null_count():
        return False
    return times.dt.truncate("1h").n_unique() == times.dt.year().n_unique()


def _value_column(frame: pl.DataFrame, free: Sequence[Column], roles: Roles) -> str:
    """The column that most likely holds values: named so, of few values, that change in chains."""
    kinds, used = ("text", "whole numbers", "numbers", "true and false"), (*roles.by, *roles[1:])
    some = [one for one in free if one.name not in used and one.kind in kinds and one.distinct > 1]
    if roles.by and len(some) > 1:
        some = _changing(frame, roles.by, some) or some
    some = [one for one in some if one.distinct <= MAX_VALUES or "number" in one.kind]
    if not some:
        names = listed(frame.columns)
        raise InputError(f"no column seems to hold values; name it with --value: {names}")
    return min(some, key=lambda one: (not one.sounds("value"), one.distinct > MAX_VALUES)).name


def _changing(frame: pl.DataFrame, by: Sequence[str], some: Sequence[Column]) -> list[Column]:
    """The columns that change within some chain."""
    counts = frame.group_by(by).agg(pl.col(one.name).n_unique() for one in some)
    return [one for one in some if counts.select(pl.col(one.name).max() > 1).item()]


def _arranged(table: _Table, roles: Roles) -> Arranged:
    """The table as chains; InputError with a line that mends it where that would be a guess."""
    order = roles.order or ROW
    _check_dates(table, roles.time or order)
    if roles.time is not None and roles.by:
        _check_in_order(table, roles.time, roles.by)
    try:
        asked = Columns.named(roles.value or "", order, roles.by, not roles.by)
        return arrange(table.frame, asked, alphabet=None)
    except LocatedError as error:
        keys = _text([*roles.by, *([] if order == ROW else [order])])
        changes = {
            Check.FILLED: f".drop_nulls({keys})",
            Check.TRIMMED: f".with_columns(pl.col({keys}).str.strip_chars())",
            Check.DISTINCT: f'.unique({keys}, keep="first", maintain_order=True)',
        }
        change = changes.get(error.wrong.check, "")
        raise InputError(f"{error}; to mend that: {table.mended(change)}") from None


def _check_dates(table: _Table, name: str) -> None:
    """InputError for dates that are not in ISO form."""
    form = table.columns[name].form if name in table.columns else None
    if form is not None:
        kind = "datetime" if "%H" in form else "date"
        read = f'pl.col({_text(name)}).str.strip_chars().str.to_{kind}("{form}")'
        first = table.frame[name].drop_nulls()[0]
        said = f"has {first!r} in column {name!r}, which is no ISO date; taken as {form}"
        raise table.error(said, f".with_columns({read})")


def _check_in_order(table: _Table, time: str, by: Sequence[str]) -> None:
    """InputError for rows of a log that go back in time."""
    times = table.frame[time]
    times = _typed(times) if times.dtype == pl.String else times
    back = (pl.col(time).diff() < 0).over(by)
    if table.frame.select(*by, times.to_physical()).select(back.any()).item():
        change = f".sort({_text([*by, time])}, maintain_order=True)"
        raise table.error(f"has rows that do not stand in the order of {time!r}", change)


# ---- what a table with known roles holds


def _looked(table: _Table, roles: Roles, given: dict[str, Any]) -> Look:
    """Chains, steps and values of a table, and the commands for it. given: for these."""
    arranged, series = _arranged(table, roles), table.frame[roles.value or ""]
    step, gaps = arranged.usual_step or (None, 0)
    counts = value_cells(series).drop_nulls().value_counts(sort=True, name=" count")
    fewer = _fewer_values(arranged, table.columns[series.name])
    notes = [
        *_step_notes(arranged, step),
        *_value_notes(series, counts[series.name].head(_LOOKED_AT), table),
        *(
            as_called(f"{len(counts):,} values are many: --{name} makes fewer; change it to fit")
            for name in fewer
        ),
    ]
    roles, private_list, note = _private(table, roles, given["private_list"])
    asked = _asked(roles, step, private_list)
    budget = {"epsilon": "EPSILON" if given["epsilon"] is None else given["epsilon"]}
    dataset = {"dataset": given["dataset"] or "DATASET"}
    lengths = np.diff(arranged.chains.starts)
    return Look(
        table=table.name,
        rows=len(series),
        kind=_kind(arranged, step, roles),
        columns=roles.shown(table.columns),
        chains=len(lengths),
        lengths=np.quantile(lengths, (0, 0.5, 1)).astype(int).tolist(),
        step=None if step is None else step.text,
        gaps=gaps,
        values={str(value): count for value, count in counts.head(MAX_VALUES).iter_rows()},
        notes=[*notes, *note],
        fit=table.command("fit", asked | fewer),
        redact=table.command("redact", asked | budget | dataset),
    )


def _private(table: _Table, roles: Roles, listed: Any) -> tuple[Roles, Any, list[str]]:
    """Roles and private list as far as they are known, else the likeliest of them with a note."""
    if listed is not None or roles.private is not None:
        return roles, listed, []
    used = (roles.value, *roles.by, roles.order)
    marks = [name for name, one in table.columns.items() if one.is_mark and name not in used]
    if len(marks) == 1 and not table.columns[marks[0]].empty:  # an empty mark would be refused
        instead = f"replace --private {marks[0]} by --private-list FILE"
        note = as_called(f"if {marks[0]} does not mark what is private, {instead}")
        return roles._replace(private=marks[0]), None, [note]
    keys = [", ".join([*roles.by, *end]) for end in ([str(roles.order)], ["from", "to"], [])]
    note = f"PRIVATE_LIST has columns {' or '.join(filter(None, keys))}: what is private"
    # look --private-list takes the order from the list; here nobody knows how it names events
    by_time = f"; for a list with {roles.time} take --order {roles.time}"
    return roles, "PRIVATE_LIST", [note + (as_called(by_time) if roles.time else "")]


def _step_notes(arranged: Arranged, step: Step | None) -> list[str]:
    has_none = step is None and arranged.grid.pairs[0] and arranged.columns.order is not None
    return ["no common step: neighbours count as one step apart"] if has_none else []


def _asked(roles: Roles, step: Step | None, private_list: Any) -> dict[str, Any]:
    by = list(roles.by)
    return {
        "value": roles.value,
        "order": roles.order,
        "by": by[0] if len(by) == 1 else by or None,
        "single_chain": None if by else True,
        "private": roles.private,
        "private_list": private_list and str(private_list),
        "step": None if step is None else step.text,
    }


def _kind(arranged: Arranged, step: Step | None, roles: Roles) -> str:
    """What kind of table it is; docs/tables.md says which options serve each."""
    chains = arranged.chains
    if roles.time is not None or (chains.timed and step is None):
        return "event log"
    if chains.count == 1 and not chains.timed:
        return "one sequence"
    if chains.count < _FEW_CHAINS and np.median(np.diff(chains.starts)) >= _LONG_CHAIN:
        return "sensor"
    is_common = roles.order != ROW and len(np.unique(chains.order)) <= _COMMON_STEPS
    return "panel" if is_common else "many sequences"


def _value_notes(series: pl.Series, values: pl.Series, table: _Table) -> list[str]:
    """What may be wrong with values, most common first, and the line that mends it."""
    change = dict(_odd_values(values))
    if not change:
        return []
    said = [
        f"{value!r} may mean that a value is missing"
        if first is None
        else f"{value!r} and {first!r} differ by case or blanks only"
        for value, first in change.items()
    ]
    cells = f"pl.col({_text(series.name)})"
    cells += ".str.strip_chars()" if series.dtype == pl.String else ""
    news = _text([*change.values()]).replace("null", "None")
    mended = table.mended(f".with_columns({cells}.replace({_text([*change])}, {news}))")
    return [f"{'; '.join(said)}; if so: {mended}"]


def _odd_values(values: pl.Series) -> Iterator[tuple[Any, Any]]:
    """Values that are another one in other letters, or that may stand for none, with that."""
    numbers = values.cast(pl.Float64, strict=False).to_list()
    codes = _missing_codes([one for one in numbers if one is not None])
    common: dict[str, Any] = {}
    for value, number in zip(values.to_list(), numbers, strict=True):
        first = common.setdefault(" ".join(str(value).casefold().split()), value)
        if number in codes or str(value).lower() in codes:
            yield value, None
        elif first != value:
            yield value, first


def _missing_codes(numbers: Sequence[float]) -> set[Any]:
    """What may stand for a missing value beside these numbers."""
    negative = [one for one in numbers if one < 0]
    rest = [one for one in numbers if one >= 0 and one not in _MISSING_NUMBERS]
    codes: set[Any] = set(_MISSING_TEXTS)
    # -9 and 99 among answers from 0 to 5, but not among temperatures
    if rest and len(negative) <= 4:
        codes |= {one for one in negative if one.is_integer()}
        codes |= {one for one in _MISSING_NUMBERS if one > 2 * max(rest) + 1}
    return codes


def _fewer_values(arranged: Arranged, column: Column) -> dict[str, Any]:
    """How `fit` makes few values of many: numbers cut at quartiles, rare values merged."""
    if column.distinct <= _MANY_VALUES or arranged.unlabelled is None:
        return {}
    numbers = arranged.unlabelled.cast(pl.Float64, strict=False).drop_nulls().to_numpy()
    if "number" not in column.kind or _are_codes(numbers):
        # merging learns from chains without a private record, so there must be some
        return {"merge": "rare"} if arranged.chains.count >= _FEW_CHAINS else {}
    return {"bins": _cuts(numbers) or [0]}


def _cuts(numbers: Floats) -> list[float]:
    """The quartiles of numbers."""
    least, *parts = np.quantile(numbers, (0, 0.25, 0.5, 0.75))
    # three digits are enough, and say less about single records
    cuts = sorted({cut for part in parts if (cut := float(f"{part:.3g}")) > least})
    return [int(cut) if cut.is_integer() else cut for cut in cuts]


def _are_codes(numbers: Floats) -> bool:
    """Whether numbers name things, as codes of pages do: near ones are not alike."""
    values, ranks, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    if len(values) > _MOST_CODES or (values % 1).any():
        return False
    # the next record, where it differs, is about as far away as any other
    near, far = map(_mean_jump, (ranks, np.random.default_rng(0).permutation(ranks)))
    return _is_rough(counts) and bool(near > _NEAR * far)


def _is_rough(counts: Integers) -> bool:
    """Whether counts rise and fall from one number to the next, by more than chance."""
    rises = np.diff(counts)[np.abs(np.diff(counts)) > 3 * np.sqrt(counts[1:] + counts[:-1])]
    turns = np.count_nonzero(np.diff(np.sign(rises)))
    return bool(2 * turns >= max(len(rises), 4))


def _mean_jump(ranks: Integers) -> float:
    jumps = np.diff(ranks)
    return float(np.abs(jumps[jumps != 0]).mean())
