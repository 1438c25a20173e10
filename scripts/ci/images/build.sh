#!/usr/bin/env bash
# Builds stand-ins for the images that docker-compose.yml names, where no image can be fetched: build.sh kafka|registry...
# They hold what the published ones hold, Apache Kafka and Apicurio Registry from Maven, and keep their contract (settings by environment,
# ports, user, paths of scripts) as far as it is used here. Beneath is not their Linux but this machine's bash, busybox and libc.
# Environment: JAVA_21 (home of a Java 21 or newer)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
export DOCKER_BUILDKIT=0
place=$(mktemp -d); trap 'rm -rf "$place"' EXIT
image() { sed -n "s#^ *image: \(.*$1:.*\)#\1#p" "$root/docker-compose.yml"; }

# bash, busybox, a Java runtime, and the libraries they are linked with.
base() {
  local r=$place/rootfs java each
  mkdir -p "$r"/{bin,usr/bin,etc,tmp,proc,sys,dev,root,opt,home/appuser,var/lib/kafka/data,mnt/shared/config}
  if [ -x "$JAVA_21/bin/jlink" ]; then
    "$JAVA_21/bin/jlink" --add-modules java.se,jdk.unsupported,jdk.crypto.ec,jdk.security.auth,jdk.security.jgss,jdk.management,jdk.management.agent,jdk.naming.dns,jdk.zipfs,jdk.net \
      --no-header-files --no-man-pages --generate-cds-archive --output "$r/opt/java"
  else
    cp -a "$JAVA_21" "$r/opt/java"
  fi
  java=$r/opt/java
  cp /bin/bash "$(command -v busybox)" "$r/bin/"
  for each in $(busybox --list); do [ -e "$r/bin/$each" ] || ln -s busybox "$r/bin/$each"; done
  ln -s /bin/env "$r/usr/bin/env"
  {
    LD_LIBRARY_PATH=$java/lib:$java/lib/server ldd /bin/bash "$java/bin/java" "$java"/lib/*.so "$java"/lib/server/*.so 2>/dev/null |
      awk '/=> \//{ print $3 } /^\t\/lib/{ print $1 }' | grep -v "^$r"
    # For native code inside jars.
    ldconfig -p | awk '/lib(stdc\+\+|gcc_s)\.so\.[0-9]+ \(libc6,x86-64/ { print $NF }'
  } | sort -u | while read -r each; do mkdir -p "$r$(dirname "$each")"; cp -L "$each" "$r$each"; done
  printf 'root:x:0:0:root:/root:/bin/bash\nappuser:x:1000:1000::/home/appuser:/bin/bash\n' >"$r/etc/passwd"
  printf 'root:x:0:\nappuser:x:1000:\n' >"$r/etc/group"
  echo 'hosts: files dns' >"$r/etc/nsswitch.conf"
  chmod 1777 "$r/tmp"; chown -R 1000:1000 "$r/home/appuser" "$r/var/lib/kafka" "$r/mnt/shared"
  tar -C "$r" -c . | docker import --change 'ENV PATH=/opt/java/bin:/usr/bin:/bin JAVA_HOME=/opt/java LANG=C.UTF-8' - threadlog-ci/base >/dev/null
}

kafka() {
  mkdir -p "$place/kafka"; cp -r "$here"/kafka/. "$place/kafka"
  mvn -q -B ${MVN_FLAGS:-} -f "$root/scripts/kafka/pom.xml" -P tools dependency:copy-dependencies -DincludeScope=runtime \
    -DoutputDirectory="$place/kafka/libs" </dev/null
}

registry() {
  local version artifact file; version=$(image registry); version=${version##*:}
  artifact=io.apicurio:apicurio-registry-app:$version:tar.gz:all
  mkdir -p "$place/registry/app"; cp "$here/registry/Dockerfile" "$place/registry/"
  mvn -q -B ${MVN_FLAGS:-} dependency:get -Dtransitive=false -Dartifact="$artifact" </dev/null
  mvn -q -B ${MVN_FLAGS:-} dependency:copy -Dartifact="$artifact" -DoutputDirectory="$place" </dev/null
  file=$place/apicurio-registry-app-$version-all.tar.gz
  tar -xzf "$file" -C "$place/registry/app"; rm "$file"
}

base
for name in "$@"; do
  "$name"
  docker build -q -t "$(image "$name")" "$place/$name" 2>/dev/null || docker build -t "$(image "$name")" "$place/$name"
done
