#!/usr/bin/env bash
# A Docker engine of one's own, without an init system: its files, socket and images are in DIR and go with it.
#   engine.sh start DIR     listens at unix://DIR/docker.sock
#   engine.sh stop DIR      also ends its containers and removes DIR
set -euo pipefail
dir=${2:?DIR}; mkdir -p "$dir"; dir=$(cd "$dir" && pwd)
export DOCKER_HOST=unix://$dir/docker.sock

case $1 in
  start)
    iptables -S FORWARD 2>/dev/null | head -n 1 >"$dir/forward" || true
    setsid dockerd --data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/pid" -H "$DOCKER_HOST" >"$dir/log" 2>&1 </dev/null &
    engine=$!
    for _ in $(seq 600); do
      docker version >/dev/null 2>&1 && exit 0
      kill -0 $engine 2>/dev/null || break
      sleep 0.1
    done
    tail -n 20 "$dir/log" >&2; exit 1 ;;
  stop)
    if [ -f "$dir/pid" ]; then
      docker ps -aq 2>/dev/null | xargs -r docker rm -fv >/dev/null 2>&1 || true
      pid=$(cat "$dir/pid")
      kill "$pid" 2>/dev/null || true
      for _ in $(seq 300); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
      kill -KILL "$pid" 2>/dev/null || true
    fi
    # What it changed on this machine, unless another engine is there.
    if ! pgrep -x dockerd >/dev/null; then
      ip link del docker0 2>/dev/null || true
      [ "$(cat "$dir/forward" 2>/dev/null)" = '-P FORWARD ACCEPT' ] && iptables -P FORWARD ACCEPT || true
    fi
    umount "$dir"/exec/netns/* 2>/dev/null || true
    rm -rf "$dir" ;;
  *) echo "engine.sh: start or stop" >&2; exit 2 ;;
esac
