"""Table files. One file a format; `formats` lists them, opens tables and writes them.

format: what a format must say, and how a file is to be read.   source: a table that can be read.
csv, ndjson, parquet, ipc: the formats.   formats: their list; open, read and write a table.
text, compression, lines: text files, their encoding and compression, and whether they are whole.
parquet_counts: damage that would end the process.   folders: several files.   limits.
"""
