"""Tables: frames and files in, released tables and certificates out.

formats    CSV, Parquet, Arrow IPC, NDJSON         frames    any frame narwhals knows
cells      types, labels, names, never guessed      chains    rows sorted, coded and counted in steps
secrets    which records are private                summary   a release in a few lines
stamping   which records to redact                  writing   safe bytes, safe files
possible   whether data and model agree            erasure   what plain erasure would leak
reference  fit                                      release   redact
"""
