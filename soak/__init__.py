"""Faults and hostile input, in figures: random cases by the hundred thousand, for as long as one
likes. `make soak` runs it, and writes docs/reliability.md from what was run and found.

campaign      what a campaign is, and how a case of it is drawn again
watched       batches of cases in a process of their own, which may hang, crash or be bombed
running       which batch is next; what was run is kept in out/soak, line by line
designs       designs of random problems, proven and by brute force
certificates  certificates that were tampered with
kills         runs killed at any moment
inputs        files and options that are not what they should be
needles       values that must be nowhere in what is left
report        docs/reliability.md
"""
