#!/usr/bin/env bash
# The round trip and the conformance suite on a broker in a container that the tests start, and the round trip on what docker-compose.yml starts.
# Brings an engine of its own with images built here, and takes all of it away again.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd); cd "$here/../.."
. "$here/parts.sh"
place=$(mktemp -d)
export DOCKER_HOST=unix://$place/engine/docker.sock DOCKER_CONFIG=$place/config COMPOSE_PROJECT_NAME=threadlog-ci
leave() {
  docker compose down --volumes >/dev/null 2>&1 || true
  "$here/engine.sh" stop "$place/engine" || true
  rm -rf "$place"
}
trap leave EXIT

part 'engine and compose'
run "$here/packages.sh" java mvn dockerd iptables busybox
"$here/engine.sh" start "$place/engine"
"$here/compose-plugin.sh" "$DOCKER_CONFIG"

part 'images'
JAVA_21=$("$here/java.sh" "$place/java"); export JAVA_21
run "$here/images/build.sh" kafka registry

part 'testcontainers'
# Its own cleaning container is one more image that cannot be fetched; the engine goes with all containers. Where a file /.dockerenv stands,
# testcontainers takes the bridge for this host.
TESTCONTAINERS_RYUK_DISABLED=true TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1 KAFKA_BROKER=docker run npm test --silent -- \
  test/log/kafka/roundtrip test/log/kafka/conformance

part 'compose'
read -r KAFKA_PORT REGISTRY_PORT UI_PORT < <(node "$here/free-ports.ts" 3)
export KAFKA_PORT REGISTRY_PORT UI_PORT
docker compose --profile ui config --quiet
run docker compose up --wait --quiet-pull || { docker compose logs --tail 40; exit 1; }
KAFKA_BROKERS=127.0.0.1:$KAFKA_PORT run npm test --silent -- test/log/kafka/roundtrip
node "$here/registry-answers.ts" "http://127.0.0.1:$REGISTRY_PORT/apis/ccompat/v7"
docker compose down --volumes
part
