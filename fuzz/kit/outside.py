"""Another program on the same file: executes statements told on standard input, one JSON a line."""

import base64
import json
import sqlite3
import sys

log = sqlite3.connect(sys.argv[1], timeout=5, isolation_level=None)


def given(value):
    kind, content = value
    if kind == "blob":
        return base64.b64decode(content)
    if kind == "int":
        return int(content)
    if kind == "real":
        return float(content)
    return content


def read(rows, raw):
    return [[base64.b64encode(cell).decode() if isinstance(cell, bytes) else cell for cell in row] for row in rows] if raw else len(rows)


for line in sys.stdin:
    order = json.loads(line)
    raw = order.get("raw", False)
    log.text_factory = bytes if raw else str
    try:
        rows = log.execute(order["sql"], [given(value) for value in order["values"]]).fetchall()
        answer = {"rows": read(rows, raw)}
    except UnicodeEncodeError:
        answer = {"unsayable": True}
    except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError) as error:
        answer = {"error": str(error)}
    print(json.dumps(answer), flush=True)
