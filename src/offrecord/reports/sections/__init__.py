"""The sections of a report, in words for someone who never saw the paper: one a file."""
