"""Prints what became of each result.  read_receipts.py BROKERS PREFIX [GROUP]"""

import json
import sys

from confluent_kafka import Consumer, KafkaException

brokers, prefix, *group = sys.argv[1:]
settings = {"bootstrap.servers": brokers, "group.id": group[0] if group else f"{prefix}.receipts-reader"}
# Receipts are written in transactions: read committed, librdkafka's default, hides those that were given up.
settings |= {"isolation.level": "read_committed", "auto.offset.reset": "earliest", "enable.auto.commit": False}
consumer = Consumer(settings)
consumer.subscribe([f"{prefix}.receipts"])
try:
    while True:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            raise KafkaException(message.error())
        headers = {name: value.decode() for name, value in message.headers() or []}
        receipt = json.loads(message.value())
        print(json.dumps({"event": "receipt", "id": headers["ce_id"], "headers": headers, "receipt": receipt}), flush=True)
        consumer.commit(message)
except KeyboardInterrupt:
    consumer.close()
