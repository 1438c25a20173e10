"""A producer without any part of threadlog: inserts the records it reads, one JSON line each, and says so."""

import base64
import json
import sqlite3
import sys

database = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
for line in sys.stdin:
    job = json.loads(line)
    value = base64.b64decode(job["value"])
    # Text for JSON, a BLOB for anything else: both are kept as they are.
    value = value.decode() if value[:1] == b"{" else value
    database.execute("INSERT INTO threadlog_results(key, value) VALUES (?, ?)", (job["key"], value))
    print(job["key"], flush=True)
