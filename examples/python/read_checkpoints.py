"""Follows where each thread stands.  read_checkpoints.py BROKERS PREFIX [GROUP]"""

import json
import sys

from confluent_kafka import Consumer, KafkaException

brokers, prefix, *group = sys.argv[1:]
# Nothing is committed: what is known is in memory, so each start reads the compacted topic from its beginning.
settings = {"bootstrap.servers": brokers, "group.id": group[0] if group else f"{prefix}.checkpoints-reader"}
consumer = Consumer(settings | {"auto.offset.reset": "earliest", "enable.auto.commit": False})
consumer.subscribe([f"{prefix}.checkpoints"])
versions = {}
while True:
    message = consumer.poll(1)
    if message is None:
        continue
    if message.error():
        raise KafkaException(message.error())
    checkpoint = json.loads(message.value())
    stream, version = checkpoint["stream"], checkpoint["version"]
    if version <= versions.get(stream, 0):  # a checkpoint may come again, also behind a newer one
        print(json.dumps({"event": "dropped", "stream": stream, "version": version}), flush=True)
        continue
    versions[stream] = version
    told = {name: checkpoint[name] for name in ("thread_id", "stream", "version", "status", "waits")}
    headers = {name: value.decode() for name, value in message.headers() or []}
    print(json.dumps({"event": "checkpoint", "headers": headers, **told}), flush=True)
