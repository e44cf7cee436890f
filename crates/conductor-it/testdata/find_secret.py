"""Looks for secrets in everything that a database keeps, but for the operator's own scenarios; exit 7 when one is found."""
import re
import sqlite3
import sys

database, *secrets = sys.argv[1:]
connection = sqlite3.connect(database)


def found(where, data):
    print(f"a secret is kept in {where}: {data[:200]!r}")
    sys.exit(7)


tables = list(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
indexes = [name for name, sql in tables if "USING fts5" in (sql or "")]
for table, _ in tables:
    if table in indexes:
        continue
    where = " WHERE kind != 'scenario'" if table == "blobs" else ""
    for row in connection.execute(f"SELECT * FROM {table}{where}"):
        for value in row:
            data = value if isinstance(value, bytes) else str(value).encode()
            if any(secret.encode() in data for secret in secrets):
                found(table, data)

# An index keeps words, in small letters and without what parts them: no long piece of a secret may be one.
pieces = [piece for secret in secrets for piece in re.findall(r"[a-z0-9]{12,}", secret.lower())]
assert indexes and pieces, "nothing to look for"
for index in indexes:
    connection.execute(f"CREATE VIRTUAL TABLE temp.terms USING fts5vocab('main', '{index}', 'row')")
    terms = [term for (term,) in connection.execute("SELECT term FROM temp.terms")]
    assert terms, f"{index} is empty"
    for term in terms:
        if any(piece in term for piece in pieces):
            found(index, term)
    connection.execute("DROP TABLE temp.terms")
