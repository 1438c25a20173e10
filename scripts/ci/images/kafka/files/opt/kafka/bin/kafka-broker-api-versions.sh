#!/bin/bash
export LOG4J2=tools-log4j2 KAFKA_HEAP_OPTS=-Xmx128m
exec /opt/kafka/bin/kafka-run-class.sh org.apache.kafka.tools.BrokerApiVersionsCommand "$@"
