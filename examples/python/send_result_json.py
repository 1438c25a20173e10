"""Sends one result as JSON.  send_result_json.py BROKERS PREFIX PROVIDER EXTERNAL_ID RESULT_JSON [RESULT_ID]"""

import json
import sys

from confluent_kafka import Producer

brokers, prefix, provider, external_id, result, *result_id = sys.argv[1:]
record = {"provider": provider, "external_id": external_id, "result": json.loads(result)}
if result_id:
    record["result_id"] = result_id[0]  # sent again under the same id, it gets the same verdict


def told(error, message):
    if error:
        raise SystemExit(f"not written: {error.str()}")
    print(json.dumps({"event": "sent", "partition": message.partition(), "offset": message.offset()}), flush=True)


producer = Producer({"bootstrap.servers": brokers, "acks": "all", "enable.idempotence": True})
producer.produce(f"{prefix}.results", key=external_id, value=json.dumps(record), on_delivery=told)
producer.flush()
