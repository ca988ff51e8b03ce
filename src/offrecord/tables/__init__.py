"""Tables: frames and files in, released tables and certificates out.

A row's way:

options    what may be asked, written once          survey    positions, gaps and runs
given      the same, checked                        plan      which rules act, and why
decision   which records go, after all checks       writing   safe bytes, safe files
summary    a release in a few lines                 engines/  memory, stream, Spark

From cells to chains:

formats    CSV, Parquet, Arrow IPC, NDJSON          encoding  tables as bytes of a format
frames     any frame narwhals knows                 lines     whether CSV is whole
cells      types and names, never guessed           values    values and their labels
chains     rows arranged in chains                  sorting   by chain and order
steps      how far one record is from the next      grid      where records lie on it
private    which records are private                optouts   lists of them
reference  what `fit` learns from                   growing   what waits for later opt-outs

Checks, before anything leaves:

model_check  does the table follow its model?       choice    were opt-outs chosen by their values?
telling      does a kept column tell the value?     guessing  how well a value is guessed
seen         which records did the model see?       standing  what does the ledger know?
"""
