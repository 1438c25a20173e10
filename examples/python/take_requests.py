"""Takes what is asked of one provider.  take_requests.py BROKERS PREFIX PROVIDER"""

import json
import sys

from confluent_kafka import Consumer, KafkaException

brokers, prefix, provider = sys.argv[1:]
settings = {"bootstrap.servers": brokers, "group.id": f"{prefix}.{provider}", "isolation.level": "read_committed"}
consumer = Consumer(settings | {"auto.offset.reset": "earliest", "enable.auto.commit": False})
consumer.subscribe([f"{prefix}.requests"])
while True:
    message = consumer.poll(1)
    if message is None:
        continue
    if message.error():
        raise KafkaException(message.error())
    request = json.loads(message.value())
    if request["provider"] == provider:
        # The request of a wait that ended is sent once more, with `cancelled`. The same request may come twice: hand on its
        # `idempotency_key`, so that the work is done once.
        event = "cancelled" if request.get("cancelled") else "request"
        print(json.dumps({"event": event, **request}), flush=True)
    consumer.commit(message, asynchronous=False)  # after the work, so that none is lost
