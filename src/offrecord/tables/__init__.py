"""Tables: frames and files in, released tables and certificates out.

A row's way:

options    what may be asked, written once          survey    positions, gaps and runs
given      the same, checked                        choosing  which rules act
plan       all that is known before a decision      decision  which records go
checks/    questions to the data, one file each     outcome   ledger, certificate, summary
writing    safe bytes, safe files                   engines/  memory, stream, Spark

From cells to chains:

io/        table files, one file a format           table     rows, chains and private runs
frames     any frame narwhals knows                 alphabet  which values there are
cells      types and names, never guessed           values    values and their labels
chains     rows arranged in chains                  sorting   by chain and order
steps      how far one record is from the next      grid      where records lie on it
private    which records are private                optouts   lists of them
reference  what `fit` learns from                   growing   what waits for later opt-outs
problems   how errors name rows                     remembered  rules of the release before
"""
