#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# examples/quickstart.sh [ib_write_bw OPTIONS...]
#
# From a clone to RDMA: installs what is missing (apt; asks for root only then), builds, and runs
# perftest's ib_write_bw, as the distribution built it, as two processes over uroce. As root or not.
set -euo pipefail
cd "$(dirname "$0")/.."

uroce=build/release/uroce
work=$(mktemp -d)
server=

clean_up() {
  [ -z "$server" ] || kill "$server" 2> /dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT

say() { printf '\n==> %s\n' "$*"; }

fail() {
  printf '\nquickstart: %s\n' "$1" >&2
  shift
  [ $# -eq 0 ] || cat "$@" >&2
  [ ! -x "$uroce" ] || "$uroce" doctor -- ib_write_bw >&2 || true
  exit 1
}

build() {
  cmake --preset release > "$work/configure" 2>&1 || fail 'cmake failed:' "$work/configure"
  cmake --build --preset release --parallel "$(nproc)" \
    --target uroce uroce_provider uroce_kernel > "$work/build" 2>&1 ||
    fail 'the build failed:' "$work/build"
}

# Whether somebody listens on TCP port $1, without a tool that may not be there.
listens() {
  local hex
  hex=$(printf '%04X' "$1")
  grep -qsE "^ *[0-9]+: [0-9A-F]+:$hex [0-9A-F:]+ 0A " /proc/net/tcp /proc/net/tcp6
}

free_port() {
  local port=18515
  while listens "$port"; do port=$((port + 1)); done
  echo "$port"
}

wait_for_server() {  # PORT
  local tries=0
  until listens "$1"; do
    kill -0 "$server" 2> /dev/null || fail 'the server ended early:' "$work/server"
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] || fail 'the server does not listen:' "$work/server"
    sleep 0.05
  done
}

say 'what is needed'
scripts/install-packages.sh build run
echo 'everything is there'

say 'build (the first time takes a few minutes)'
build

say 'the device'
"$uroce" devices

port=$(free_port)
options=("$@")
[ $# -gt 0 ] || options=(-s 65536 -n 20000)

say "server:  uroce run -- ib_write_bw -p $port ${options[*]}"
"$uroce" run -- ib_write_bw -p "$port" "${options[@]}" > "$work/server" 2>&1 &
server=$!
wait_for_server "$port"

say "client:  uroce run -- ib_write_bw -p $port ${options[*]} localhost"
"$uroce" run -- ib_write_bw -p "$port" "${options[@]}" localhost ||
  fail 'the client failed; the server said:' "$work/server"
wait "$server" || fail 'the server failed:' "$work/server"
server=

cat << 'NEXT'

That was RDMA without an RDMA NIC. What to try next:

  build/release/uroce run -- ibv_devinfo -v              what a program sees
  build/release/uroce run -- ib_send_lat                 in one terminal, and in another:
  build/release/uroce run -- ib_send_lat localhost
  build/release/uroce run --local off -- ib_write_bw     the same over UDP packets (both ends)
  build/release/uroce doctor                             what could be better here
  tests/run.sh                                           all tests
NEXT
