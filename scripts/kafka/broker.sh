#!/usr/bin/env bash
# A Kafka broker of one node (broker and controller in one process) from Maven jars. Needs Java 17 or newer; --install needs Maven.
#   broker.sh --install           put the jars into KAFKA_LIBS, unless they are there
#   broker.sh --archive           build the class archive there once: halves the time of each start
#   broker.sh DIR [options]       start a broker whose files are in DIR; returns when it answers
#   broker.sh --stop DIR          end it (TERM, after 10 s KILL)
#   broker.sh --kill DIR          end it with KILL
#   broker.sh --status DIR
# Options:
#   --port N                      default 9092
#   --controller-port N           default: the next one
#   --sasl-port N                 also listen there with SASL (PLAIN: app/app-secret, SCRAM-SHA-256: scram/scram-secret), without TLS
#   --prop KEY=VALUE              any broker setting; may be repeated, the last wins
#   --heap SIZE                   default 256m
#   --fresh                       remove DIR first
#   --with PID                    end the broker when that process has ended
# Environment: KAFKA_LIBS (default .tmp/kafka/<version>), JAVA (default java), KAFKA_JVM (more JVM flags), KAFKA_TIMEOUT (seconds, 90)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=$(sed -n 's:.*<kafka.version>\(.*\)</kafka.version>.*:\1:p' "$here/pom.xml")
libs=${KAFKA_LIBS:-$here/../../.tmp/kafka/$version} java=${JAVA:-java}
die() { echo "broker.sh: $*" >&2; exit 1; }

# A process that was killed but not yet reaped counts as gone: not every machine has an init that reaps.
alive() { [ -n "${1:-}" ] && kill -0 "$1" 2>/dev/null && ! grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }
pid_of() { cat "$1/broker.pid" 2>/dev/null || true; }

install() {
  [ -f "$libs/.complete" ] && return
  command -v mvn >/dev/null || die "no Maven (mvn) on the path, and no jars in $libs"
  # Several may install at once: each into a folder of its own, and the first rename wins.
  mkdir -p "$(dirname "$libs")"
  local new; new=$(mktemp -d "$libs.XXXXXX")
  mvn -q -B ${MVN_FLAGS:-} -f "$here/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$new" </dev/null ||
    { rm -rf "$new"; die "Maven did not bring the jars"; }
  touch "$new/.complete"; chmod 755 "$new"
  if [ ! -e "$libs" ]; then mv "$new" "$libs"; fi
  rm -rf "$new" "$libs/${new##*/}"
  [ -f "$libs/.complete" ] || die "$libs is in the way"
}

archive() {
  [ -f "$libs/kafka.jsa" ] && return
  local place; place=$(mktemp -d)
  KAFKA_JVM="-XX:ArchiveClassesAtExit=$place/kafka.jsa -Xlog:disable -Xlog:all=error:stderr" \
    "${BASH_SOURCE[0]}" "$place/broker" --port "${ARCHIVE_PORT:-19592}" >/dev/null
  # It writes the archive while it ends, which takes a while.
  local pid; pid=$(pid_of "$place/broker"); kill "$pid"
  while alive "$pid"; do sleep 0.1; done
  mv "$place/kafka.jsa" "$libs/kafka.jsa"; rm -rf "$place"
}

stop() { # DIR SIGNAL
  local pid; pid=$(pid_of "$1")
  if alive "$pid"; then
    kill "-$2" "$pid"
    for _ in $(seq 200); do alive "$pid" || break; sleep 0.05; done
    if alive "$pid"; then kill -KILL "$pid"; while alive "$pid"; do sleep 0.05; done; fi
  fi
  rm -f "$1/broker.pid"
}

# Asks for the metadata of no topic (Metadata v1) over bash's own sockets, and prints how many brokers are named.
brokers_at() { # PORT
  ( exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
    printf '\0\0\0\016\0\003\0\001\0\0\0\001\377\377\0\0\0\0' >&3
    timeout 2 head -c 12 <&3 | od -An -tu1 | awk '{ n = $12 } END { if (NR) print n }' ) 2>/dev/null || true
}

case "${1:-}" in
  --install) install; exit ;;
  --archive) archive; exit ;;
  --stop) stop "${2:?DIR}" TERM; exit ;;
  --kill) stop "${2:?DIR}" KILL; exit ;;
  --status) pid=$(pid_of "${2:?DIR}"); alive "$pid" && echo "running $pid" || { echo stopped; exit 1; }; exit ;;
  '' | -*) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit 2 ;;
esac

dir=$1; shift
port=9092 controller='' sasl='' heap=256m fresh='' with='' props=()
while [ $# -gt 0 ]; do
  case $1 in
    --port) port=$2; shift 2 ;; --controller-port) controller=$2; shift 2 ;; --sasl-port) sasl=$2; shift 2 ;;
    --prop) props+=("$2"); shift 2 ;; --heap) heap=$2; shift 2 ;; --with) with=$2; shift 2 ;; --fresh) fresh=1; shift ;;
    *) die "unknown option $1" ;;
  esac
done
controller=${controller:-$((port + 1))}
compgen -G "$libs/kafka_2.13-*.jar" >/dev/null || die "no jars in $libs; run broker.sh --install"
alive "$(pid_of "$dir")" && die "already running in $dir"
[ -n "$fresh" ] && rm -rf "$dir"
mkdir -p "$dir/log"; dir=$(cd "$dir" && pwd)

listeners="PLAINTEXT://127.0.0.1:$port" map="PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
if [ -n "$sasl" ]; then listeners+=",SASL_PLAINTEXT://127.0.0.1:$sasl" map+=",SASL_PLAINTEXT:SASL_PLAINTEXT"; fi
{
  cat <<P
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
controller.listener.names=CONTROLLER
listeners=$listeners,CONTROLLER://127.0.0.1:$controller
advertised.listeners=$listeners
listener.security.protocol.map=$map
inter.broker.listener.name=PLAINTEXT
log.dirs=$dir/log
auto.create.topics.enable=false
default.replication.factor=1
min.insync.replicas=1
group.initial.rebalance.delay.ms=0
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
log.cleaner.dedupe.buffer.size=4194304
num.network.threads=2
num.io.threads=2
num.recovery.threads.per.data.dir=1
background.threads=2
broker.heartbeat.interval.ms=200
broker.session.timeout.ms=2000
metadata.max.idle.interval.ms=5000
log.retention.check.interval.ms=600000
P
  if [ -n "$sasl" ]; then
    cat <<P
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_app="app-secret";
listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
P
  fi
  for each in ${props[@]+"${props[@]}"}; do echo "$each"; done
} >"$dir/server.properties"

cat >"$dir/log4j2.properties" <<P
status=error
appender.f.type=File
appender.f.name=F
appender.f.fileName=$dir/server.log
appender.f.immediateFlush=true
appender.f.layout.type=PatternLayout
appender.f.layout.pattern=%d{ABSOLUTE} %p [%t] %c{1}: %m%n
rootLogger.level=${KAFKA_LOG_LEVEL:-WARN}
rootLogger.appenderRef.f.ref=F
P

# The class archive holds for this very list of jars in this order.
classes=$(printf ':%s' "$libs"/*.jar)
jvm=(-cp "${classes#:}" "-Xms$heap" "-Xmx$heap" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k -XX:+ExitOnOutOfMemoryError
  -XX:-UsePerfData -Djava.awt.headless=true "-Dlog4j2.configurationFile=file:$dir/log4j2.properties" -Dlog4j2.disableJmx=true)
[ -f "$libs/kafka.jsa" ] && jvm+=("-XX:SharedArchiveFile=$libs/kafka.jsa" -Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off)
read -r -a more <<<"${KAFKA_JVM:-}"

if [ ! -f "$dir/log/meta.properties" ]; then
  # 22 base64url characters that never begin with '-'.
  id=threadlg$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n' | cut -c1-13)A
  scram=(); for each in 256 512; do scram+=(--add-scram "SCRAM-SHA-$each=[name=scram,password=scram-secret]"); done
  "$java" "${jvm[@]}" kafka.tools.StorageTool format -t "$id" -c "$dir/server.properties" ${scram[@]+"${scram[@]}"} >"$dir/format.out" 2>&1 ||
    { cat "$dir/format.out" >&2; die "the directory was not formatted"; }
fi

nohup "$java" "${jvm[@]}" ${more[@]+"${more[@]}"} kafka.Kafka "$dir/server.properties" >"$dir/broker.out" 2>&1 </dev/null &
pid=$!; echo "$pid" >"$dir/broker.pid"; disown "$pid"
if [ -n "$with" ]; then
  # Its parent may be killed without a chance to clean up.
  ( while alive "$with" && alive "$pid"; do sleep 1; done; alive "$pid" && kill -KILL "$pid" ) >/dev/null 2>&1 </dev/null &
  disown $!
fi
end=$((SECONDS + ${KAFKA_TIMEOUT:-90}))
until n=$(brokers_at "$port"); [ "${n:-0}" -ge 1 ]; do
  alive "$pid" || { tail -n 20 "$dir/broker.out" "$dir/server.log" >&2 || true; rm -f "$dir/broker.pid"; die "the broker ended while it started"; }
  [ $SECONDS -lt $end ] || { tail -n 20 "$dir/server.log" >&2 || true; stop "$dir" KILL; die "the broker did not answer in time"; }
  sleep 0.05
done
echo "$pid 127.0.0.1:$port"
