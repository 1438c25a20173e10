# README: begin
import json, sqlite3, sys, time

# Open: not taken back (that is a second row), and no receipt but refusals, which a restart tries again.
OPEN = """
  SELECT application_id, external_id, idempotency_key, arguments FROM threadlog_requests AS request
  WHERE provider = 'payouts'
    AND NOT EXISTS (SELECT 1 FROM threadlog_requests WHERE external_id = request.external_id AND cancelled = 1)
    AND NOT EXISTS (SELECT 1 FROM threadlog_receipts
                    WHERE external_id = request.external_id AND verdict NOT IN ('unknown', 'invalid'))"""
RECEIPTS = "SELECT offset, result_id, verdict FROM threadlog_receipts WHERE provider = 'payouts' AND offset > ? ORDER BY offset"

db = sqlite3.connect(f"file:{sys.argv[1]}?mode=rw", uri=True, isolation_level=None, timeout=10)
sent, seen = set(), 0
while True:
    for application_id, external_id, key, arguments in db.execute(OPEN).fetchall():
        if external_id in sent:
            continue
        sent.add(external_id)
        print("pay", json.loads(arguments), flush=True)  # the bank pays once for each key
        result = {"application_id": application_id, "provider": "payouts", "external_id": external_id}
        result |= {"result_id": f"payout-{key}", "result": {"reference": f"PO-{key[:8]}"}}
        db.execute("INSERT INTO threadlog_results(value) VALUES (?)", (json.dumps(result),))
    for seen, result_id, verdict in db.execute(RECEIPTS, (seen,)).fetchall():
        print("receipt", result_id, verdict, flush=True)
    time.sleep(0.1)
# README: end
