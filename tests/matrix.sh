#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# tests/matrix.sh [OPTIONS] [PLACE...]
#
# Every combination of options of perftest and ibv_{rc,uc,ud,srq}_pingpong that the programs accept, over every
# datapath, in every topology: hours. Prints each pair as it ends, and a table at the end. Options:
#   --only TEXT      pairs whose name contains it ("ib_read_bw -m 1024", "-q 16")
#   --programs LIST  pingpong, perftest or both
#   --uroce FILE     default: build/release/uroce
#   --duration S     of -D, 3 by default
#   --sample N       so many by chance of each place; --seed S: those of an earlier run
#   --jobs N         so many pairs at once, each in a place of its own
#   --subset         the pairwise subset that ctest runs
# Places: one-device-{shm,udp,af_packet,mixed} two-devices-{shm,udp} veth-{udp,af_packet} memif.
cd "$(dirname "$0")/.." || exit 2
[ "$1" != --help ] || { sed -n '3,14s/^# \{0,1\}//p' "$0"; exit 0; }
options=(--all --duration 3)
[ "$1" != --subset ] || { options=(); shift; }
exec python3 -B tests/apps/matrix.py "${options[@]}" "$@"
