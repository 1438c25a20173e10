# Sourced. `part NAME` says what begins, and how long the part before took; `part` alone ends the last one.
part() { # [NAME]
  local now=$SECONDS
  [ -z "${part_name:-}" ] || echo "== $part_name: $((now - part_begun)) s"
  part_name=${1:-} part_begun=$now
  [ -z "$part_name" ] || echo "== $part_name"
}

# A command that a signal to this script ends too: bash handles a signal only once its foreground command is over.
run() { # COMMAND...
  local status=0
  "$@" & running=$!
  wait "$running" || status=$?
  running=''
  return $status
}
running=''
trap '[ -z "$running" ] || { kill -TERM "$running"; wait "$running" || true; }; exit 143' INT TERM
