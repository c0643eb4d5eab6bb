"""A small domain in SQL, sound, to be spoiled."""

from __future__ import annotations

from pathlib import Path

SQL_DOMAIN = """\
version: 1
id: shelf
summary: A shelf.
rules: Be kind.
world:
  sql:
    tables: |
      CREATE TABLE books (id TEXT PRIMARY KEY, state TEXT NOT NULL);
      CREATE TABLE loans (id INTEGER PRIMARY KEY, book TEXT REFERENCES books);
    files: [more.sql, books.csv, rows.yaml]
    rows:
      books:
        B1: {state: in}
    unordered: [loans]
tools:
  sql:
    look:
      description: Look.
      parameters: {book: {}}
      query: SELECT state FROM books WHERE id = :book
      result: "{book} is {state}"
      empty: no such book
    lend:
      description: Lend.
      parameters: {book: {}, days: {type: integer, required: false, default: 7}}
      guards:
        - query: SELECT state = 'in', state FROM books WHERE id = :book
          error: "it is {state}"
      statements:
        - UPDATE books SET state = 'out' WHERE id = :book AND :days > 0
        - |
          INSERT INTO loans (book)
          VALUES (:book)
writes: [lend]
tasks: {files: [tasks.yaml]}
personas: {plain: {style: plain}}
reward: [{gold_world: true}]
"""

SQL_TASKS = """\
version: 1
domain: shelf
tasks:
  - id: lend-1
    goal: Lend B1.
    personas: [plain]
    world:
      books:
        B4: {state: in}
    gold: [{tool: lend, arguments: {book: B1}}]
"""


def write_sql_domain(folder: Path) -> None:
    (folder / "domain.yaml").write_text(SQL_DOMAIN)
    (folder / "tasks.yaml").write_text(SQL_TASKS)
    (folder / "more.sql").write_text("-- more\nCREATE TABLE log (what TEXT);\n")
    (folder / "notes.txt").write_text("for people\n")
    (folder / "books.csv").write_text("id,state\nB2,out\n")
    (folder / "rows.yaml").write_text("books:\n  B3: {state: in}\n")
