"""The command line. Each verb imports what it needs when it runs, so that --help answers at once.

One verb a file: demo, fit, redact, design, compare, reproduce, answer, key; app lists them, running
runs them. What they share, by question:

parameters  what do people write?               paths     may this file be read or written?
tables      which rows are asked for?           chains    which problem is asked about?
printing    how is something said?
"""

from offrecord.cli.running import main, run

__all__ = ["main", "run"]
