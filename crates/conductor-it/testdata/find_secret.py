"""Looks for secrets in everything that a database keeps, but for the operator's own scenarios; exit 7 when one is found."""
import sqlite3
import sys

database, *secrets = sys.argv[1:]
connection = sqlite3.connect(database)
tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
for table in tables:
    where = " WHERE kind != 'scenario'" if table == "blobs" else ""
    for row in connection.execute(f"SELECT * FROM {table}{where}"):
        for value in row:
            data = value if isinstance(value, bytes) else str(value).encode()
            if any(secret.encode() in data for secret in secrets):
                print(f"a secret is kept in {table}: {data[:200]!r}")
                sys.exit(7)
