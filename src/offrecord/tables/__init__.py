"""Tables: frames and files in, released tables and certificates out.

formats    CSV, Parquet, Arrow IPC, NDJSON         frames    any frame narwhals knows
cells      types, labels, names, never guessed      chains    rows sorted, coded and counted in steps
secrets    which records are private                summary   a release in a few lines
parts      stretches of whole chains, surveyed      stamping  which records to redact
job        what is asked for, and the plan for it   deciding  the released rows of a part
possible   whether data and model agree            erasure   what plain erasure would leak
reference  fit                                      writing   safe bytes, safe files

Three engines, one release:

release    redact: at once, in memory
stream     redact_file: part by part from a file
spark      redact: over a cluster
"""
