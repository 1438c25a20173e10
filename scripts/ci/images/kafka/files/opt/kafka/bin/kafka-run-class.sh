#!/bin/bash
# kafka-run-class.sh CLASS ARGUMENTS...
name=${LOG4J2:-log4j2}.yaml log=/opt/kafka/config/$name
[ -r "$log" ] || log=/etc/kafka/docker/$name
exec java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC ${KAFKA_HEAP_OPTS:--Xms256m -Xmx512m} -Djava.awt.headless=true \
  -Dlog4j2.configurationFile="$log" -Dkafka.logs.dir=/tmp -cp '/opt/kafka/libs/*' "$@"
