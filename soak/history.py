"""What campaigns have found in this package, in words, and by which test it stays mended."""

from typing import NamedTuple


class Finding(NamedTuple):
    """where: the campaign, and the kind of case. test: None while it is open."""

    where: str
    what: str
    test: str | None


HISTORY = (
    Finding(
        "certificates, with the table",
        "A label of text among numbers ended `verify` with a traceback.",
        "tests/verify/test_table.py",
    ),
    Finding(
        "certificates, owner in phases",
        "A model with phases that says it is stationary was judged by its one kernel, which it has"
        " not: `verify` ended with a traceback. Its form refuses it now.",
        "tests/verify/test_mutations.py",
    ),
    Finding(
        "designs, window with a start",
        "`redact` refused tables of independent records with a start of their own: the room after"
        " which their chains are cut was one record, too short for any design to end in.",
        "tests/designs/test_starts.py",
    ),
    Finding(
        "designs, owner for a set of two values",
        "`redact` refused sets of two values that are a single chain, such as α = 0.8179: what it"
        " leaves of 1 was taken as a double, and by their decimals no chain was in the set.",
        "tests/models/test_box.py",
    ),
    Finding(
        "inputs, redact of Parquet",
        "A value column of durations ended `redact` and `fit` with an internal error.",
        "tests/tables/bad_input/test_bad_tables.py",
    ),
    Finding(
        "inputs, answer with another ledger",
        "A ledger with answers of records that are no counts, or by chances that are none, ended"
        " `answer` with an internal error.",
        "tests/release/test_ledger.py",
    ),
    Finding(
        "inputs, options of key",
        "`--key-file .` and `--key-file /` ended with an internal error.",
        "tests/release/test_keys.py",
    ),
    Finding(
        "inputs, options of fit",
        "`fit --private` with the value column ended with an internal error.",
        "tests/tables/bad_input/test_bad_fit.py",
    ),
    Finding(
        "while writing inputs",
        "With `--force`, or as `--designs`, an output that is a device or a pipe was replaced by a"
        " file, where whoever runs it may do so (`-o /dev/null` as root).",
        "tests/tables/bad_input/test_bad_outputs.py",
    ),
    Finding(
        "while writing inputs",
        "`verify` and `attack` read certificates and tables without an end (a device), and waited"
        " for pipes; they take files, as the other verbs do.",
        "tests/cli/test_verify.py",
    ),
    Finding(
        "while writing kills, several on one output",
        "Two runs with the same `--output` at once could leave the table of one with the"
        " certificate of the other. They name their files one after the other now.",
        "tests/tables/safe_writing/test_one_output.py",
    ),
    Finding(
        "inputs, redact of Parquet",
        "One byte changed in the header of a page of a Parquet file, so that it counts a negative"
        " number of values, made the table engine (polars) ask for 2 EiB of memory, upon which it"
        " ends the process (SIGABRT) instead of raising an error. The counts of a file are looked"
        " at before the engine reads it.",
        "tests/tables/bad_input/test_damaged_parquet.py",
    ),
    Finding(
        "inputs, redact after others",
        "A file of what is kept beside the key, packed and damaged, ended `redact --after` with an"
        " internal error.",
        "tests/tables/several/test_after.py",
    ),
    Finding(
        "inputs, report",
        "Where a limit leaves less address space than the drawing engine reserves (`ulimit -v`), it"
        " ended the process (SIGTRAP). Pictures are refused in one line there, and a report has"
        " their numbers alone.",
        "tests/charts/test_engine.py",
    ),
    Finding(
        "while reading its code",
        "A certificate of the owner's mechanism whose pair has only closed second sides ended"
        " `verify --key-file` with a traceback.",
        "tests/verify/test_owner_coins.py",
    ),
)
