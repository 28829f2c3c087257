#!/bin/bash
# Builds a Docker image with a Redis-compatible server from binaries on this
# machine, for places where no image can be pulled. It behaves like the
# official ones as far as tests care.
set -euo pipefail

usage() {
  cat <<'U'
usage: make-image.sh [TAG...]     (default: redis:7)

environment:
  SRC     where the server comes from: / for this machine's own (default), or
          the DIR that fetch-server.sh filled
  SERVER  redis (default) or valkey
U
}
case ${1:-} in -h | --help) usage; exit 0 ;; esac
src=${SRC:-/} src=${src%/}
server=${SERVER:-redis}
[ $# -gt 0 ] || set -- redis:7
[ -z "$src" ] || [ -d "$src/libexec" ] || { echo "make-image.sh: $src was not filled by fetch-server.sh" >&2; exit 2; }

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,usr/bin,usr/local/bin,tmp,data,etc,proc,sys,dev}
chmod 1777 "$root/tmp"

# put FILE: copies a file of this machine to the same place in the image.
put() {
  mkdir -p "$root$(dirname "$1")"
  [ -e "$root$1" ] || cp -L --preserve=mode "$1" "$root$1"
}
# put_program FILE: the same with the libraries it needs.
put_program() {
  put "$1"
  local lib
  for lib in $(ldd "$1" | awk '/=> \//{print $3} /^[ \t]*\//{print $1}'); do put "$lib"; done
}
# put_fetched ROLE: a program of a fetched server runs with its own libraries.
put_fetched() {
  local loader
  loader=$(basename "$(echo "$src"/lib/ld-linux-*.so.*)")
  mkdir -p "$root/opt/server"
  [ -e "$root/opt/server/lib" ] || cp -rL "$src/lib" "$root/opt/server/lib"
  mkdir -p "$root/opt/server/libexec"
  cp -L --preserve=mode "$src/libexec/$server-$1" "$root/opt/server/libexec/"
  cat >"$root/usr/bin/$server-$1" <<W
#!/bin/sh
exec /opt/server/lib/$loader --argv0 $server-$1 --library-path /opt/server/lib /opt/server/libexec/$server-$1 "\$@"
W
  chmod +x "$root/usr/bin/$server-$1"
}

# bash as /bin/sh: testcontainers looks for an open port through /dev/tcp.
put_program /bin/bash
ln -s bash "$root/bin/sh"
for b in server cli; do
  if [ -n "$src" ]; then put_fetched $b; else put_program "$(command -v $server-$b)"; fi
done
echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"

# Like the official entry point: options and configuration files go to the
# server, and protected mode is off, since clients come from outside.
cat >"$root/usr/local/bin/docker-entrypoint.sh" <<W
#!/bin/sh
set -e
case "\$1" in -* | *.conf | "") set -- $server-server "\$@" ;; esac
case "\$1" in $server-server) set -- "\$@" --protected-mode no ;; esac
exec "\$@"
W
chmod 755 "$root/usr/local/bin/docker-entrypoint.sh"

previous=$(docker images -q "$1")
tar -C "$root" -c . | docker import -c 'WORKDIR /data' -c 'EXPOSE 6379' \
  -c 'ENTRYPOINT ["/usr/local/bin/docker-entrypoint.sh"]' -c "CMD [\"$server-server\"]" - "$1"
for tag in "${@:2}"; do docker tag "$1" "$tag"; done
# What the tag named before would stay behind without a name.
[ -z "$previous" ] || docker rmi "$previous" >/dev/null 2>&1 || true
