"""Worlds whose tools speak SQL: one SQLite database computes for the documents of all dialogues.

A world of tables is a document, `books.B1.status`: forks, differences, patches, records and replays
are those of any world. When SQL is to run, the database is brought to the state of that one world
(only rows that differ are written), the statements run in one transaction, and the rows they
changed are written back into the document.
"""

from muarl.world.sql.database import Database as Database
from muarl.world.sql.rows import RowError as RowError
from muarl.world.sql.rules import Exhausted as Exhausted
from muarl.world.sql.rules import Refused as Refused
from muarl.world.sql.world import SqlWorld as SqlWorld
