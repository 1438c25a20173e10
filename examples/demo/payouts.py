"""The payout process: takes requests from the SQL views and answers each one three times. Standard library only.

    python3 payouts.py <log file>
"""

import json
import os
import sqlite3
import sys
import time

# A request that was taken back has a second row, with cancelled = 1.
REQUESTS = """
  SELECT application_id, external_id, arguments FROM threadlog_requests AS request
  WHERE provider = 'payouts'
    AND NOT EXISTS (SELECT 1 FROM threadlog_requests WHERE external_id = request.external_id AND cancelled = 1)"""
RECEIPTS = "SELECT result_id, verdict FROM threadlog_receipts WHERE provider = 'payouts' AND final ORDER BY offset"
BANK_SECONDS = 0.4


def say(**line):
    print(json.dumps(line), flush=True)


def answer(db, request, result_id, reference):
    result = {"provider": "payouts", **request, "result_id": result_id, "result": {"reference": reference}}
    db.execute("INSERT INTO threadlog_results(value) VALUES (?)", (json.dumps(result),))


def main(file):
    db = sqlite3.connect(f"file:{file}?mode=rw", uri=True, isolation_level=None, timeout=10)
    parent = os.getppid()
    answered, told = set(), 0
    say(event="ready", language=f"Python {sys.version_info[0]}.{sys.version_info[1]}")
    while os.getppid() == parent:
        for application_id, external_id, arguments in db.execute(REQUESTS).fetchall():
            if external_id in answered:
                continue
            answered.add(external_id)
            request = {"application_id": application_id, "external_id": external_id}
            say(event="request", arguments=json.loads(arguments))
            time.sleep(BANK_SECONDS)
            answer(db, request, "bank-1", "PO-7301")  # the answer
            answer(db, request, "bank-1-again", "PO-7301")  # the same, under another id
            answer(db, request, "bank-2", "PO-9999")  # another one
            say(event="answered", results=3)
        receipts = db.execute(RECEIPTS).fetchall()
        for result_id, verdict in receipts[told:]:
            say(event="receipt", result_id=result_id, verdict=verdict)
        told = len(receipts)
        time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1])
