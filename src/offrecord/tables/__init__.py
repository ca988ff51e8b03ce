"""Tables: frames and files in, released tables and certificates out.

formats    CSV, Parquet, Arrow IPC, NDJSON         frames    any frame narwhals knows
lines      whether CSV is whole                     cells     types, labels, names, never guessed
chains     rows sorted, coded and counted           steps     how far one record is from the next
secrets    which records are private                summary   a release in a few lines
parts      stretches of whole chains, surveyed      stamping  which records to redact
job        what is asked for, and the plan for it   deciding  the released rows of a part
reference  fit                                      writing   safe bytes, safe files

Before anything leaves, what the promise rests on is judged by what was decided:

model_check  does the table follow its model?       choice    were opt-outs chosen by their values?
telling      does a kept column tell the value?     erasure   what plain erasure would have leaked

Three engines, one release:

release    redact: at once, in memory
stream     redact_file: part by part from a file
spark      redact: over a cluster
"""
