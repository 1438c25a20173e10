"""Sends one result as Avro, its schema from a registry.  send_result_avro.py BROKERS PREFIX REGISTRY_URL PROVIDER EXTERNAL_ID RESULT_JSON"""

import json
import sys

from confluent_kafka import SerializingProducer
from confluent_kafka.schema_registry import SchemaRegistryClient, record_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroSerializer

brokers, prefix, registry, provider, external_id, result = sys.argv[1:]
topic = f"{prefix}.results"
client = SchemaRegistryClient({"url": registry})
# Where `threadlog schemas register` put it. Nothing is registered from here: the engine asked for the ids when it started.
schema = client.get_latest_version("threadlog.edges.Result").schema.schema_str
options = {"auto.register.schemas": False, "use.latest.version": True, "subject.name.strategy": record_subject_name_strategy}


def told(error, message):
    if error:
        raise SystemExit(f"not written: {error.str()}")
    print(json.dumps({"event": "sent", "partition": message.partition(), "offset": message.offset()}), flush=True)


serializer = AvroSerializer(client, schema, conf=options)
producer = SerializingProducer({"bootstrap.servers": brokers, "acks": "all", "value.serializer": serializer})
value = {"provider": provider, "external_id": external_id, "result": result.encode()}
producer.produce(topic, key=external_id, value=value, on_delivery=told)
producer.flush()
