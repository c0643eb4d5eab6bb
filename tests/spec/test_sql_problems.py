"""SQL of a domain is checked when it is loaded, and each problem names its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from spec_files import spoil
from sql_files import write_sql_domain

from muarl.errors import SpecError
from muarl.spec import dump_spec, load_domain_spec, load_spec, load_task_files
from muarl.spec.domain import DomainSpec

ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r"


@pytest.fixture(autouse=True)
def _sound(tmp_path: Path) -> None:
    write_sql_domain(tmp_path)


def problems(folder: Path) -> list[str]:
    with pytest.raises(SpecError) as error:
        load_task_files(load_domain_spec(folder))
    return [f"{Path(p.path).name}:{p.line}:{p.column}: {p.message}" for p in error.value.problems]


def test_the_sound_domain_is_sound(tmp_path: Path) -> None:
    domain = load_domain_spec(tmp_path)
    assert len(load_task_files(domain)) == 1
    (tmp_path / "again.yaml").write_text(dump_spec(domain.spec))
    assert load_spec(tmp_path / "again.yaml", DomainSpec).spec == domain.spec


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "SELECT state FROM books WHERE id",
            "SELECT stat FROM books WHERE id",
            ["20:21: no such column: stat"],
        ),
        ("FROM books WHERE id = :book\n      result", "FORM books WHERE id = :book\n      result",
         ['20:32: near "books": syntax error']),
        ("VALUES (:book)", "VALUES (:bok)",
         ["33:19: unknown parameter 'bok'; did you mean 'book'?"]),
        ("VALUES (:book)", "VALUES (:book, 1)", ["32:11: 2 values for 1 columns"]),
        ("VALUES (:book)", "VALUES (?)", ["33:19: parameters are written :name, not ?"]),
        ("AND :days > 0", "",
         ["25:30: parameter 'days' is not used; use it as :days in SQL, or remove it"]),
        ("{book} is {state}", "{boo} is {state}",
         ["21:15: unknown column or parameter 'boo'; did you mean 'book'?"]),
        ("it is {state}", "it is {stat}",
         ["28:18: unknown column or parameter 'stat'; did you mean 'state'?"]),
        ("SELECT state = 'in', state", "SELECT random(), state",
         ["27:25: the function random() is not allowed"]),
        ("query: SELECT state FROM books WHERE", "query: DELETE FROM books WHERE",
         ["20:14: expected SELECT, WITH or VALUES"]),
        ("UPDATE books SET state = 'out'", "DROP TABLE books; UPDATE books SET state = 'out'",
         ["30:29: expected one statement, got 2"]),
        ("- UPDATE books SET", "- PRAGMA books SET",
         ["30:11: expected INSERT, UPDATE, DELETE, REPLACE or WITH"]),
        ("book TEXT REFERENCES books);", "book TEXT REFERENCES);",
         ['9:71: near ")": syntax error']),
        ("id TEXT PRIMARY KEY", "id BLOB PRIMARY KEY",
         ["8:27: column 'id' is a key; let it be TEXT or INTEGER, not 'BLOB'"]),
        ("B1: {state: in}", "B1: {stat: in}",
         ["13:20: table 'books' has no column 'stat'; did you mean 'state'?"]),
        ("B1: {state: in}", "B1: {state: [1]}",
         ["13:21: a column holds text, a number or nothing"]),
        ("unordered: [loans]", "unordered: [loan]",
         ["14:17: there is no table 'loan'; did you mean 'loans'?"]),
        ("unordered: [loans]", "unordered: [books]",
         [("14:17: table 'books' cannot be unordered: its key is the domain's own; "
           "only a table that SQLite numbers can be")]),
        ("more.sql", "notes.txt", ["10:13: 'notes.txt' is none of .sql, .csv, .yaml"]),
        ("more.sql", "mor.sql", ["10:13: no such file: 'mor.sql'; did you mean 'more.sql'?"]),
        ("type: integer", "type: int",
         [("25:43: 'type' must be 'string', 'integer', 'number' or 'boolean', got 'int'; "
           "did you mean 'integer'?")]),
        ("gold_world: true", "sql: {query: SELECT stat FROM books, equals: in}",
         ["37:31: no such column: stat"]),
        ("gold_world: true", "sql: {query: 'SELECT :id', equals: in}",
         ["37:32: unknown parameter 'id'; known: none"]),
        ("writes: [lend]", "writes: [lendd]",
         ["34:10: unknown tool 'lendd'; did you mean 'lend'?"]),
        ("gold_world: true", "any: [{called: {tool: lok}}]",
         ["37:33: unknown tool 'lok'; did you mean 'look'?"]),
        ("gold_world: true", "never_called: {tool: lend, arguments: {bok: B1}}",
         ["37:50: unknown parameter 'bok'; did you mean 'book'?"]),
        ("id TEXT PRIMARY KEY", "id TEXT",
         [("rows.yaml:2:7: 'B3' is no key of table 'books': it has no PRIMARY KEY, so its rows are "
           "named by their numbers; declare one, such as `id TEXT PRIMARY KEY`")]),
        ("default: 7", "default: seven",
         ["25:36: 'days': 'seven' must be a whole number of at most 64 bits"]),
    ],
)  # fmt: skip
def test_a_mistake_in_the_domain_is_found_where_it_is(
    tmp_path: Path, old: str, new: str, said: list[str]
) -> None:
    spoil(tmp_path / "domain.yaml", old, new)
    found = problems(tmp_path)
    assert found == [one if one[0].isalpha() else f"domain.yaml:{one}" for one in said]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("tool: lend", "tool: lendd", "10:19: unknown tool 'lendd'; did you mean 'lend'?"),
        ("{book: B1}", "{}", "10:12: 'lend' needs the argument 'book'"),
        ("{book: B1}", "{book: 1}", "10:43: 'book' must be text"),
        ("{book: B1}", "{book: B1, day: 3}",
         "10:47: unknown parameter 'day'; did you mean 'days'?"),
        ("    gold:", "    metrics: [{not: {called: {tool: lok}}}]\n    gold:",
         "10:37: unknown tool 'lok'; did you mean 'look'?"),
    ],
)  # fmt: skip
def test_gold_calls_that_the_tools_would_refuse_are_found_without_starting_them(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    spoil(tmp_path / "tasks.yaml", old, new)
    assert problems(tmp_path) == [f"tasks.yaml:{said}"]


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("more.sql", "CREATE TABLE a (b TEXT);\nCREATE TABEL c (d);\nATTACH 'x' AS y;",
         ['more.sql:2:8: near "TABEL": syntax error',
          "more.sql:3:1: a schema creates tables and inserts rows; ATTACH is not allowed"]),
        ("more.sql", f"CREATE TABLE log (what TEXT);\nINSERT INTO log {ENDLESS};",
         ["more.sql:2:1: it takes more than 5,000,000 steps"]),
        ("more.sql", f"CREATE TABLE log AS {ENDLESS};",
         ["more.sql:1:1: it takes more than 5,000,000 steps"]),
        ("books.csv", "id,stat\nB2,out\n",
         ["books.csv:1:1: table 'books' has no column 'stat'; did you mean 'state'?"]),
        ("books.csv", "id,state\nB2,out\nB5,\n",
         ["books.csv:3:1: NOT NULL constraint failed: books.state"]),
        ("books.csv", "id,state,id\nB2,out,B3\n", ["books.csv:1:1: column 'id' is given twice"]),
        ("books.csv", "id,state\nB2,out,more\n", ["books.csv:2:1: 3 cells under 2 columns"]),
        ("rows.yaml", "books:\n  B3: {state: in}\n  B4: {}\nloan: {}\n",
         ["rows.yaml:3:7: NOT NULL constraint failed: books.state",
          "rows.yaml:4:7: there is no table 'loan'; did you mean 'loans'?"]),
        ("rows.yaml", "- B3", ["rows.yaml:1:1: expected tables, each a mapping from keys to rows"]),
        ("tasks.yaml", None, ["tasks.yaml:9:13: NOT NULL constraint failed: books.state"]),
    ],
)  # fmt: skip
def test_a_mistake_in_another_file_is_found_where_it_is(
    tmp_path: Path, file: str, text: str | None, said: list[str]
) -> None:
    if text is None:
        spoil(tmp_path / file, "B4: {state: in}", "B4: {state: null}")
    else:
        (tmp_path / file).write_text(text)
    assert problems(tmp_path) == said


def test_tools_in_sql_need_tables(tmp_path: Path) -> None:
    text = (tmp_path / "domain.yaml").read_text()
    before, _, rest = text.partition("  sql:\n    tables")
    after = rest[rest.index("tools:") :]
    (tmp_path / "domain.yaml").write_text(f"{before}  data: {{}}\n{after}")
    (problem,) = problems(tmp_path)
    assert "tools in SQL need a world of tables; give one under world: sql:" in problem


TWICE = "two columns are named 'state'; give each a name of its own with AS"
CLOCK = "may not ask for the time: give it a date"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("query: SELECT state FROM", "query: SELECT state, state FROM", f"20:21: {TWICE}"),
        ("SELECT state = 'in', state", "SELECT state = 'in' AS state, state", f"27:25: {TWICE}"),
        ("gold_world: true", "sql: {query: 'SELECT a.*, b.state FROM books a, books b', equals: 1}",
         f"37:39: {TWICE}"),
        ("query: SELECT state FROM", "query: SELECT date('now'), state FROM",
         f"20:21: date() {CLOCK}"),
        ("state = 'out'", "state = strftime('%d')", f"30:36: strftime() {CLOCK}"),
        ("gold_world: true", "sql: {query: 'SELECT time(1, ''utc'')', equals: 1}",
         f"37:24: time() {CLOCK}"),
        ("state TEXT NOT NULL", "state TEXT CHECK (state < date('now'))",
         f"8:74: date() {CLOCK}"),
        ("state TEXT NOT NULL", "state TEXT AS (julianday())", f"8:63: julianday() {CLOCK}"),
        ("state TEXT NOT NULL", "state TEXT CHECK (state < random())",
         "8:74: the function random() is not allowed"),
        ("state TEXT NOT NULL", "state TEXT DEFAULT CURRENT_DATE",
         "8:48: the default of 'state' is CURRENT_DATE: a world has no clock"),
        ("id TEXT PRIMARY", "id TEXT COLLATE NOCASE PRIMARY", "8:27: the key 'id' has COLLATE NOCASE"),
        ("REFERENCES books)", "REFERENCES bools)",
         "9:20: table 'loans' refers to 'bools', which is no table"),
        ("      CREATE TABLE loans", "      CREATE VIEW v AS SELECT tate FROM books;\n      CREATE TABLE loans",
         "9:31: no such column: tate"),
        ("B1: {state: in}", "B1: {id: B2, state: in}", "13:18: 'B2' is another key than 'B1'"),
        ("files: [", "rows: {loans: {01: {}}}\n    files: [", "10:20: keys are text; put it in quotes"),
    ],
)  # fmt: skip
def test_what_would_fail_in_each_call_is_found_when_it_is_loaded(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    """Clocks and dice, columns of one name, keys of two spellings: no dialogue needs to begin."""
    spoil(tmp_path / "domain.yaml", old, new)
    found = problems(tmp_path)
    assert any(one.startswith(f"domain.yaml:{said}") for one in found), found


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("more.sql", "CREATE TABLE a (b TEXT\n  CHECK (b < date('now')));", f"2:14: date() {CLOCK}"),
        ("more.sql", "CREATE TABLE a (b INT PRIMARY KEY);\nINSERT INTO a\nVALUES (1.5);",
         "2:1: the key 'b' of 'a' is INTEGER: a whole number"),
        ("more.sql", "CREATE TABLE a (b TEXT PRIMARY KEY);\nINSERT INTO a VALUES (x'61');",
         "2:1: the key 'b' of 'a' is TEXT: no BLOB"),
        ("more.sql", "CREATE TABLE a (b REAL);\nINSERT INTO a VALUES (9e999);",
         "1:14: row '1' of 'a' is none of a world: b is inf, which JSON has no number for"),
        ("more.sql", "CREATE TABLE a (b TEXT REFERENCES books);\nINSERT INTO a VALUES ('B9');",
         "1:14: a row of 'a' refers to none of 'books'"),
        ("rows.yaml", "loans:\n  '01': {}\n", "2:9: write the key '01' as '1'"),
        ("rows.yaml", "loans:\n  '1.5': {}\n", "2:10: '1.5' is no key of table 'loans'"),
        ("rows.yaml", "books:\n  B3: {state: .inf}\n", "2:15: "),
    ],
)  # fmt: skip
def test_rows_and_tables_of_other_files_likewise(
    tmp_path: Path, file: str, text: str, said: str
) -> None:
    (tmp_path / file).write_text(text)
    found = problems(tmp_path)
    assert any(one.startswith(f"{file}:{said}") for one in found), found


def test_a_foreign_key_to_a_table_without_numbers_of_its_own_is_no_reference_to_a_number(
    tmp_path: Path,
) -> None:
    tables = (
        "CREATE TABLE codes (code TEXT UNIQUE);\nCREATE TABLE uses (code REFERENCES codes (code));"
    )
    (tmp_path / "more.sql").write_text(tables)
    load_domain_spec(tmp_path)


# --- a user's device beside tables ----------------------------------------------------------------

DEVICE = """\
device:
  tools: {python: phone.py:serve}
  world: {data: {screen: {on: true}}}
"""
PHONE = "def serve(world): ...\n"


@pytest.fixture
def phone(tmp_path: Path) -> Path:
    (tmp_path / "phone.py").write_text(PHONE)
    spoil(tmp_path / "domain.yaml", "tasks: {files", f"{DEVICE}tasks: {{files")
    return tmp_path


def test_a_task_may_change_the_device_beside_rows(phone: Path) -> None:
    """It was taken for a table that is not there."""
    spoil(phone / "tasks.yaml", "      books:", "      device: {screen: {on: false}}\n      books:")
    (file,) = load_task_files(load_domain_spec(phone))
    assert "device" in file.spec.tasks[0].world


def test_a_device_is_a_mapping(phone: Path) -> None:
    spoil(phone / "tasks.yaml", "      books:", "      device: null\n      books:")
    assert problems(phone) == [
        "tasks.yaml:8:15: the device's part of the world is a mapping; name what is to change in it"
    ]


def test_without_a_device_there_is_none_to_change(tmp_path: Path) -> None:
    spoil(tmp_path / "tasks.yaml", "      books:", "      device: {on: false}\n      books:")
    assert problems(tmp_path) == [
        "tasks.yaml:8:15: there is no table 'device'; tables: books, loans, log"
    ]


ACTION = """\
device:
  tools:
    sql:
      shelf:
        {description: Look., parameters: {book: {}}, query: SELECT state FROM books WHERE id = :book}
user:
  understands: {"do:look": [look]}
  actions: {look: {tool: shelf, arguments: {book: B1}}}
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("tool: shelf", "tool: shelv", "42:26: unknown tool 'shelv'; did you mean 'shelf'?"),
        ("{book: B1", "{bok: B1", "42:45: unknown argument 'bok'; did you mean 'book'? (of tool"),
    ],
)
def test_an_action_without_a_tool_of_hers_is_a_problem_of_the_file(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    spoil(tmp_path / "domain.yaml", "tasks: {files", f"{ACTION}tasks: {{files")
    load_domain_spec(tmp_path)
    spoil(tmp_path / "domain.yaml", old, new)
    (problem,) = problems(tmp_path)
    assert said in problem


def test_a_table_named_as_the_device_is_refused_where_it_is_created(phone: Path) -> None:
    """The device silently took its place."""
    where = "'device' is where `device.world` lies in the world; name this table otherwise"
    (phone / "more.sql").write_text("CREATE TABLE log (x TEXT);\nCREATE TABLE device (x TEXT);")
    assert problems(phone) == [f"more.sql:2:14: {where}"]
    (phone / "more.sql").write_text("")
    spoil(
        phone / "domain.yaml",
        "      CREATE TABLE loans",
        "      CREATE TABLE device (a TEXT);\n      CREATE TABLE loans",
    )
    assert problems(phone) == [f"domain.yaml:9:20: {where}"]


def test_tools_in_sql_over_a_device_of_its_own_are_refused(phone: Path) -> None:
    """Each of her calls was a fault of the server's."""
    spoil(
        phone / "domain.yaml",
        "{python: phone.py:serve}",
        "{sql: {see: {description: See., query: SELECT 1 AS a}}}",
    )
    (problem,) = problems(phone)
    assert problem.startswith(
        "domain.yaml:36:11: tools in SQL ask the domain's tables, and with `device.world` hers see"
    )
    spoil(phone / "domain.yaml", "  world: {data: {screen: {on: true}}}\n", "")
    load_domain_spec(phone)


def test_a_device_has_no_tables_of_its_own(phone: Path) -> None:
    spoil(phone / "domain.yaml", "{data: {screen", "{sql: {screen")
    (problem,) = problems(phone)
    assert problem.startswith(
        "domain.yaml:37:10: 'world': a device has no tables of its own; keep her state in the "
        "domain's tables, and leave `device.world` out"
    )


def test_a_part_that_another_server_keeps_is_no_table(tmp_path: Path) -> None:
    before, _, after = (tmp_path / "domain.yaml").read_text().partition("tools:\n  sql:\n")
    sql, _, rest = after.partition("writes:")
    sql = sql.replace("\n", "\n  ").rstrip()
    other = "  - {command: [x], state: {notes: {call: a}, loans: {call: b}}}"
    text = f"{before}tools:\n{other}\n  - sql:\n  {sql}\nwrites:{rest}"
    (tmp_path / "domain.yaml").write_text(text)
    assert problems(tmp_path) == [
        "domain.yaml:16:46: 'loans' is a table of the domain's; name this part otherwise"
    ]
