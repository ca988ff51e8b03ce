"""The command line. Each verb imports what it needs when it runs, so that --help answers at once.

One verb a file: demo, fit, redact, design, compare, reproduce, answer, key; app lists them, running
runs them. What they share, by question:

parameters  options, in groups         files     which files are read and written
chains      problems without a table   printing  results, notes and progress bars
"""

from offrecord.cli.running import main, run

__all__ = ["main", "run"]
