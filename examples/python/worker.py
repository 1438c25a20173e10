"""Works for one provider: takes requests, does each job once, sends what came out.  worker.py BROKERS PREFIX PROVIDER LEDGER_FILE"""

import json
import sqlite3
import sys

from confluent_kafka import Consumer, KafkaException, Producer

brokers, prefix, provider, file = sys.argv[1:]
ledger = sqlite3.connect(file)
ledger.execute("CREATE TABLE IF NOT EXISTS done(key TEXT PRIMARY KEY, result TEXT NOT NULL)")
group = {"bootstrap.servers": brokers, "group.id": f"{prefix}.{provider}.worker", "isolation.level": "read_committed"}
# Started again under its own name, a worker that was killed goes on at once; every further worker needs another one.
group |= {"group.instance.id": "worker-1", "session.timeout.ms": 10000}
consumer = Consumer(group | {"auto.offset.reset": "earliest", "enable.auto.commit": False})
producer = Producer({"bootstrap.servers": brokers, "acks": "all", "enable.idempotence": True})


def do(request):
    """The job and the note that it was done are one transaction: for the same key there is the same result."""
    key = request["idempotency_key"]
    with ledger:
        row = ledger.execute("SELECT result FROM done WHERE key = ?", [key]).fetchone()
        if row is None:
            row = [json.dumps({"ok": request["arguments"]["n"] > 0})]
            ledger.execute("INSERT INTO done(key, result) VALUES (?, ?)", [key, row[0]])
    return json.loads(row[0])


consumer.subscribe([f"{prefix}.requests"])
print(json.dumps({"event": "ready"}), flush=True)
while True:
    message = consumer.poll(1)
    if message is None:
        continue
    if message.error():
        raise KafkaException(message.error())
    request = json.loads(message.value())
    if request["provider"] == provider and not request.get("cancelled"):
        # The same request may come twice: the same `result_id` then gets the same verdict.
        result = {"provider": provider, "external_id": request["external_id"], "result_id": request["idempotency_key"]}
        value = json.dumps(result | {"result": do(request)})
        producer.produce(f"{prefix}.results", key=request["external_id"], value=value)
        if producer.flush(30):
            raise SystemExit("not written")
        print(json.dumps({"event": "answered", "external_id": request["external_id"]}), flush=True)
    consumer.commit(message, asynchronous=False)  # after the answer is written, so that none is lost
