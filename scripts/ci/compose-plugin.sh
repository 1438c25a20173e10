#!/usr/bin/env bash
# Puts the plugin `docker compose` (version 2) into DIR/cli-plugins, unless docker has it: compose-plugin.sh DIR
# Debian 12 does not have it. Debian 13's package is one program that only wants a libc of 2.34 or newer, so it is fetched and unpacked, not
# installed: apt's lists and cache for it are in a temporary folder, and the machine stays what it is.
set -euo pipefail
mkdir -p "${1:?DIR}/cli-plugins"; plugins=$(cd "$1/cli-plugins" && pwd)
docker compose version >/dev/null 2>&1 && exit 0
mirror=$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2>/dev/null || true; } |
  awk '$1 == "URIs:" && !n++ { print $2 } $1 == "deb" && !n++ { print $2 ~ /^\[/ ? $3 : $2 }')
place=$(mktemp -d); trap 'rm -rf "$place"' EXIT
mkdir -p "$place/lists/partial"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >"$place/sources.list"
options=(-o Dir::Etc::SourceList="$place/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$place/lists"
  -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Acquire::Languages=none -o APT::Sandbox::User=root)
cd "$place"
apt-get "${options[@]}" update -qq </dev/null
apt-get "${options[@]}" download -qq docker-compose >/dev/null </dev/null
dpkg-deb -x docker-compose_*.deb unpacked
cp unpacked/usr/libexec/docker/cli-plugins/docker-compose "$plugins/"
