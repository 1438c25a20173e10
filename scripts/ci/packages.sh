#!/usr/bin/env bash
# Installs the Debian packages that are missing for the commands named: packages.sh COMMAND...
# Known: java jlink mvn dockerd iptables busybox pip3 kcat
set -euo pipefail
declare -A package=([java]=openjdk-17-jdk-headless [jlink]=openjdk-17-jdk-headless [mvn]=maven [dockerd]=docker.io [iptables]=iptables
  [busybox]=busybox-static [pip3]=python3-pip [kcat]=kcat)
missing=()
for command in "$@"; do command -v "$command" >/dev/null || missing+=("${package[$command]:?}"); done
# The images take busybox into a system without libraries.
if [[ " $* " == *' busybox '* ]] && [[ " ${missing[*]-} " != *' busybox-static '* ]] && ldd "$(command -v busybox)" >/dev/null 2>&1; then
  missing+=(busybox-static)
fi
[ ${#missing[@]} -gt 0 ] || exit 0
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
# --no-install-recommends: an engine is started by hand here, not by the system.
{ apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null ||
  { cat "$log" >&2; rm -f "$log"; exit 1; }
rm -f "$log"; echo "installed: ${missing[*]}"
