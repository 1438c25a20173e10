# README: begin
import json, sqlite3, sys, time

OPEN = """
  SELECT external_id, idempotency_key, arguments FROM threadlog_requests AS request
  WHERE provider = 'payouts' AND cancelled IS NULL AND NOT EXISTS (
    SELECT 1 FROM threadlog_results AS result WHERE result.external_id = request.external_id)"""
RECEIPTS = "SELECT offset, external_id, verdict FROM threadlog_receipts WHERE provider = 'payouts' AND offset > ? ORDER BY offset"

db = sqlite3.connect(f"file:{sys.argv[1]}?mode=rw", uri=True, isolation_level=None, timeout=10)
seen = 0
while True:
    for external_id, key, arguments in db.execute(OPEN).fetchall():
        print("pay", json.loads(arguments))  # the bank refuses a second transfer with the same key
        result = {"provider": "payouts", "external_id": external_id, "result": {"reference": f"PO-{key[:8]}"}}
        db.execute("INSERT INTO threadlog_results(value) VALUES (?)", (json.dumps(result),))
    for seen, external_id, verdict in db.execute(RECEIPTS, (seen,)).fetchall():
        print("receipt", external_id, verdict, flush=True)
    time.sleep(0.1)
# README: end
