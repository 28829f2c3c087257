#!/bin/bash
# Fetches a Redis-compatible server of another Debian release, together with
# that release's libraries, and installs nothing: a way to test against servers
# newer than the machine's own.
set -euo pipefail

usage() {
  cat <<'U'
usage: fetch-server.sh SUITE redis|valkey DIR

  SUITE  a Debian release that has the server: trixie (Redis 8, Valkey 8) or sid
  DIR    gets bin/NAME-server, -cli, -benchmark and -sentinel (wrappers that
         exec), lib/ and libexec/; made if missing

Needs Debian with apt-get, on amd64 or arm64. The mirror is the one of the
machine's own sources. The servers show up in ps as ld-linux; signals to the
started process reach them.
U
}
case ${1:-} in -h | --help) usage; exit 0 ;; esac
[ $# -eq 3 ] || { usage >&2; exit 2; }
suite=$1 name=$2
mkdir -p "$3"
dest=$(cd "$3" && pwd)
case $name in redis | valkey) ;; *) usage >&2; exit 2 ;; esac

# mirror prints where this machine gets Debian from, in whichever of the two
# formats its sources are written.
mirror() {
  {
    cat /etc/apt/sources.list.d/*.sources 2>/dev/null | awk '$1 == "URIs:" {print $2}'
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
      awk '$1 == "deb" {for (i = 2; i <= NF; i++) if ($i ~ /^https?:/) {print $i; break}}'
  } | grep -E '/debian/?$' | head -1 || true
}
url=$(mirror)
[ -n "$url" ] || { echo "fetch-server.sh: no Debian mirror in /etc/apt" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,archives/partial,debs,root}
: >"$work/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $url $suite main" >"$work/sources.list"
# An apt of its own: nothing here reads or changes the machine's package state.
apt=(-qq
  -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
  -o "Dir::State=$work" -o "Dir::State::lists=$work/lists" -o "Dir::State::status=$work/status"
  -o "Dir::Cache=$work" -o APT::Sandbox::User=root -o Acquire::Retries=3
  -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false)
apt-get "${apt[@]}" update
# What the tools depend on, less what only matters to a running Debian.
packages=$(apt-cache "${apt[@]}" depends --recurse --no-recommends --no-suggests --no-conflicts \
  --no-breaks --no-replaces --no-enhances "$name-tools" | grep -E "^(lib|zlib|$name-tools)" | sort -u)
# shellcheck disable=SC2086 # one word per package
(cd "$work/debs" && apt-get "${apt[@]}" download $packages)
for deb in "$work"/debs/*.deb; do dpkg -x "$deb" "$work/root"; done

mkdir -p "$dest"/{bin,lib,libexec}
find "$work/root" -path '*-linux-gnu*' -name '*.so*' -exec cp -Ln {} "$dest/lib/" \; 2>/dev/null || true
loader=$(basename "$(echo "$dest"/lib/ld-linux-*.so.*)")

# wrap ROLE BINARY: the binary picks its role by argv[0].
wrap() {
  cat >"$dest/bin/$name-$1" <<W
#!/bin/sh
d=\$(cd "\$(dirname "\$0")/.." && pwd)
exec "\$d/lib/$loader" --argv0 $name-$1 --library-path "\$d/lib" "\$d/libexec/$name-$2" "\$@"
W
  chmod +x "$dest/bin/$name-$1"
}
# The server is not in NAME-tools, but check-rdb is the same binary.
cp -L "$work/root/usr/bin/$name-check-rdb" "$dest/libexec/$name-server"
cp -L "$work/root/usr/bin/$name-cli" "$work/root/usr/bin/$name-benchmark" "$dest/libexec/"
for b in server cli benchmark; do wrap $b $b; done
wrap sentinel server

# Keep the libraries that the binaries need.
needed=$(for b in server cli benchmark; do
  "$dest/lib/$loader" --library-path "$dest/lib" --list "$dest/libexec/$name-$b"
done | awk '/=> \//{print $3}' | xargs -n1 basename | sort -u)
for f in "$dest"/lib/*; do
  b=$(basename "$f")
  [ "$b" = "$loader" ] || grep -qxF "$b" <<<"$needed" || rm -f "$f"
done
"$dest/bin/$name-server" --version
