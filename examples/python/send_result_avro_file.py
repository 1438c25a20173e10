"""Sends one result as Avro without a registry.  send_result_avro_file.py BROKERS PREFIX SCHEMAS_FOLDER PROVIDER EXTERNAL_ID RESULT_JSON"""

import io
import json
import sys
from pathlib import Path

import fastavro
from confluent_kafka import Producer

brokers, prefix, schemas, provider, external_id, result = sys.argv[1:]
schema = fastavro.parse_schema(json.loads(Path(schemas, "result-1.avsc").read_text()))
ids = json.loads(Path(schemas, "ids.json").read_text())["schemas"]
schema_id = max(each["id"] for each in ids if each["type"] == "result/1")
body = io.BytesIO()
fastavro.schemaless_writer(body, schema, {"provider": provider, "external_id": external_id, "result": result.encode()})


def told(error, message):
    if error:
        raise SystemExit(f"not written: {error.str()}")
    print(json.dumps({"event": "sent", "partition": message.partition(), "offset": message.offset()}), flush=True)


producer = Producer({"bootstrap.servers": brokers, "acks": "all", "enable.idempotence": True})
# Confluent's framing: a zero byte, the schema id, the body.
producer.produce(f"{prefix}.results", key=external_id, value=b"\0" + schema_id.to_bytes(4, "big") + body.getvalue(), on_delivery=told)
producer.flush()
