"""Random cases for as long as one likes: what is claimed is tried, and what is found is counted.

`make soak` runs the campaigns and writes docs/reliability.md.

running   batches of cases, each in a process of its own; results in out/soak
rules     rules of tables and problems against every sequence and output
coverage  tables drawn from known chains: does the promise hold for the chain they came from?
fits      tables that obey the model: no verdict may say "broken"
hostile   tables, certificates and other files that are not what they should be
twins     tables that differ in private values alone must leave the same bytes
kills     runs that are killed at any moment
report    docs/reliability.md
"""
