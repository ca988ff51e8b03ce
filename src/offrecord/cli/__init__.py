"""The command line. Each verb imports what it needs when it runs, so that --help answers at once.

app lists the verbs and runs them. Verbs, and what they share, by question:

learning    look, fit                    parameters  options, in groups
redact      redact                       files       which files are read and written
released    verify, attack, report       printing    results, notes and progress bars
problems    design, compare              keys        key, ledger, answer
showing     demo, explore, reproduce
"""

from offrecord.cli.app import main, run

__all__ = ["main", "run"]
