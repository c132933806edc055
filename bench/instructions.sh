#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# instructions.sh [BENCHMARK...]: instructions a packet of the transport core, as valgrind counts
# them, which a busy machine does not change. The difference of a long and a short run, so that what
# happens once is not in it. CORE_BENCH: another build's core_bench. Where they go:
#   callgrind_annotate /tmp/uroce-instructions/write_8.3000
set -eu
core_bench=${CORE_BENCH:-$(dirname "$0")/../build/release/bench/core_bench}
out=/tmp/uroce-instructions
mkdir -p "$out"
[ $# -ne 0 ] || set -- write_8 write_4096 send_4096 write_8_alone

count() { # benchmark, iterations
  UROCE_BENCH_ITERATIONS=$2 valgrind --tool=callgrind --callgrind-out-file="$out/$1.$2" \
    "$core_bench" "--benchmark_filter=^$1/" >"$out/log" 2>&1
  sed -n 's/^summary: //p' "$out/$1.$2"
}

for benchmark; do
  case $benchmark in *_alone) packets=1 ;; *) packets=16 ;; esac
  short=$(count "$benchmark" 1000)
  long=$(count "$benchmark" 3000)
  echo "$benchmark $(((long - short) / 2000 / packets))"
done
