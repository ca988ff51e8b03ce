"""Table files. One file a format; `formats` lists them, opens tables and writes them.

format: what a format must say, how a file is to be read, and a table that can be read.
csv, ndjson, parquet, ipc: the formats.   text: packing and encoding of text.   limits.
parquet_counts: damage that would end the process.
"""
