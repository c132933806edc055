#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# tests/run.sh [all | release | asan | tsan | clang | fuzz | style ...]
#
# The whole test run: installs what is missing, then stage by stage (all of them when none is named)
#   release  builds and runs every test, the style checks among them
#   asan     the same, but for what measures time, under AddressSanitizer and
#            UndefinedBehaviorSanitizer
#   tsan     what has threads or is called by them (engine, verbs, shared memory, sockets) under
#            ThreadSanitizer
#   clang    builds everything with clang and -Werror
#   fuzz     builds the fuzzers with clang and runs each for FUZZ_SECONDS (30), beginning with the
#            stored corpus
#   style    only the style checks, in the release build
# A stage that fails does not stop the others; the exit status tells whether any did.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

jobs=$(nproc)
# What was compiled in one clone is found again in another.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
logs=build/logs
stages=()
launch=()  # a command that builds and tests are run by
declare -A outcome seconds

configure() {  # PRESET [CMAKE-ARGUMENT...]
  local launcher=()
  command -v ccache > /dev/null &&
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache)
  cmake --preset "$1" "${launcher[@]}" "${@:2}" > "$logs/$1-configure.log" 2>&1 ||
    { cat "$logs/$1-configure.log"; return 1; }
}

compile() {  # PRESET [TARGET...]
  "${launch[@]}" cmake --build --preset "$1" -j "$jobs" ${2:+--target "${@:2}"} -- --quiet
}

build() { configure "$1" && compile "$@"; }  # PRESET [TARGET...]

run_ctest() {  # PRESET [CTEST-ARGUMENT...]
  # One at a time: they share devices and ports, and many a test needs two cores by itself.
  "${launch[@]}" ctest --test-dir "build/$1" --output-on-failure --no-tests=error "${@:2}"
}

stage_release() { build release && run_ctest release; }

stage_asan() { build asan && run_ctest asan; }

stage_tsan() {
  # gcc 12's ThreadSanitizer does not start where the kernel randomises more than 28 bits.
  if [ "$(cat /proc/sys/vm/mmap_rnd_bits 2> /dev/null || echo 28)" -gt 28 ]; then
    if setarch -R true 2> /dev/null; then
      launch=(setarch -R)
    else
      echo "setarch -R is refused here: the tests run with addresses as random as the kernel makes them"
    fi
  fi
  build tsan engine_test verbs_unit_test verbs_test datapath_shm_test datapath_directory_test \
      udp_datapath_test &&
    run_ctest tsan --label-regex '^(verbs|unit-(engine|verbs|datapath-(shm|directory|udp)))$'
}

stage_clang() {
  # It warns of the same without optimising.
  configure clang -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O0 -DCMAKE_C_FLAGS_RELWITHDEBINFO=-O0 &&
    compile clang
}

# From the stored corpus; what is found lies in build/fuzz/found, what fails in build/fuzz/failed.
run_fuzzer() {  # TARGET
  local found=build/fuzz/found/$1 failed=build/fuzz/failed
  mkdir -p "$found" "$failed"
  if "build/fuzz/tests/fuzz/$1_fuzz" -max_total_time="${FUZZ_SECONDS:-30}" -max_len=1024 \
      -timeout=20 -artifact_prefix="$failed/$1-" "$found" "tests/fuzz/corpus/$1" \
      > "$logs/fuzz-$1.log" 2>&1; then
    echo "$1: $(tail -n 1 "$logs/fuzz-$1.log")"
  else
    tail -n 40 "$logs/fuzz-$1.log"
    return 1
  fi
}

stage_fuzz() {
  build fuzz || return 1
  export -f run_fuzzer
  export logs
  printf '%s\n' tests/fuzz/corpus/*/ | xargs -n 1 basename |
    xargs -P "$jobs" -I TARGET bash -c 'run_fuzzer TARGET'
}

stage_style() { build release && run_ctest release --label-regex style; }

run_stage() {  # NAME
  local name=$1 began=$SECONDS
  printf '\n==== %s\n' "$name"
  stage_"$name" 2>&1 | tee "$logs/$name.log"
  local status=${PIPESTATUS[0]}
  seconds[$name]=$((SECONDS - began))
  outcome[$name]=$([ "$status" -eq 0 ] && echo passed || echo FAILED)
  printf '==== %s: %s after %d s\n' "$name" "${outcome[$name]}" "${seconds[$name]}"
}

summary() {
  local name closing skipped
  printf '\n==== all stages\n'
  for name in "${stages[@]}"; do
    closing=$(grep -E '^[0-9]+% tests passed' "$logs/$name.log")
    skipped=$(grep -c '\*\*\*Skipped' "$logs/$name.log")
    printf '%-8s %-7s %4d s  %s%s\n' "$name" "${outcome[$name]}" "${seconds[$name]}" \
      "${closing:-(no tests)}" "$([ "$skipped" -eq 0 ] || echo ", $skipped of them skipped")"
    sed -n '/^The following tests FAILED:/,$s/^\t */         /p' "$logs/$name.log"
  done
  for name in "${stages[@]}"; do what_failed "$name"; done
}

# The closing lines of each test that failed, where whoever sees only the end of a log finds them.
what_failed() {  # NAME
  awk -v stage="$1" '
    / Test +#[0-9]+: / {
      if (failed) print_last()
      failed = /\*\*\*(Failed|Timeout|Exception|Not Run)/; count = 0
      if (failed) printf "\n---- %s: %s\n", stage, $0
      next
    }
    /^[ ]+Start +[0-9]+: / { next }
    /^[0-9]+% tests passed/ { if (failed) print_last(); exit }
    failed { line[count++] = $0 }
    function print_last(    i) {
      for (i = count > 25 ? count - 25 : 0; i < count; ++i) print line[i]
      failed = 0
    }' "$logs/$1.log"
}

case ${*:-all} in
  all) stages=(release asan tsan clang fuzz) ;;
  *) stages=("$@") ;;
esac
for name in "${stages[@]}"; do
  case $name in
    release | asan | tsan | clang | fuzz | style) ;;
    *) sed -n '3,15s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done

scripts/install-packages.sh || exit 2
mkdir -p "$logs"
for name in "${stages[@]}"; do run_stage "$name"; done
summary
[[ " ${outcome[*]} " != *FAILED* ]]
