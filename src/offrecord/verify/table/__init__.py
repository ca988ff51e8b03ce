"""Checking a released table against its certificate: bytes, cells, places, designs and coins.

found    what a check came to           files     bytes and cells of files
cells    what cells say                 steps     distances of records
rows     a table as chains              listed    which records are private
secrets  runs of private records        serving   which design serves a secret
stamps   designs laid onto records      clusters  what may act around near secrets
local    cells by local designs         owner     stretches by owner's designs
channels what clusters hide            coins     draws anew from the key
openings first records of chains        growing   what waits for a later release
check    all of it
"""

from offrecord.verify.table.check import check_table
from offrecord.verify.table.found import Found

__all__ = ["Found", "check_table"]
