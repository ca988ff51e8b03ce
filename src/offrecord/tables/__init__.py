"""Tables: frames and files in, released tables and certificates out.

What is asked, and what comes of it:

options    what may be asked, once for all          job       the same, checked
plan       designs for a survey, and the outcome    summary   a release in a few lines
certifying what the certificate says                tally     what was decided, in numbers

What is done to rows, whatever brings them:

batch      whole chains and their secrets, no key   survey    what is found out before deciding
rule       which records go, how likely, no key     worker    reads, surveys, decides: with the key

From cells to chains:

formats    CSV, Parquet, Arrow IPC, NDJSON          encoding  tables as bytes of a format
frames     any frame narwhals knows                 lines     whether CSV is whole
cells      types and names, never guessed           values    values and their labels
chains     rows arranged in chains                  sorting   by chain and order
steps      how far one record is from the next      grid      where records lie on it
secrets    which records are private                reference fit
writing    safe bytes, safe files

Before anything leaves, what the promise rests on is judged by what was decided:

model_check  does the table follow its model?       choice    were opt-outs chosen by their values?
telling      does a kept column tell the value?     erasure   what plain erasure would have leaked
kept         cells as comparable numbers            guessing  how well a value is guessed
seen         what was the model learned from?       windows   what a window would have released
contents     numbers for what records hold

Three engines, one release (engines/): memory (redact), stream (redact_file) and spark (redact).
"""
