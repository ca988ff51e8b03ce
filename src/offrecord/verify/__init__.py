"""Checking a certificate, by arithmetic that rounds outwards and by nothing that made it.

Nothing here imports how models are read from data, designs are made or tables are redacted: only
the certificate's own form. A test walks the imports.

balls    numbers in balls                  chain     the model as exact numbers
problem  what a local design redacts       alone     what it tells under the model alone
table    a released table, cell by cell
"""
