#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_format.sh [--fix [FILE...]]: every C and C++ file is as clang-format 14 would have it.
set -eu
cd "$(dirname "$0")/../.."
formatter=$(command -v clang-format-14 || command -v clang-format) ||
  { echo "check_format: no clang-format; scripts/install-packages.sh test installs it" >&2; exit 2; }

files() {
  find include src providers tests bench examples -name '*.h' -o -name '*.cc' -o -name '*.c' | sort
}

if [ "${1:-}" = --fix ]; then
  shift
  if [ $# -gt 0 ]; then exec "$formatter" -i "$@"; fi
  files | xargs -r "$formatter" -i
  exit
fi

# One line for each place, without the text that clang-format shows with it.
wrong=$(files | xargs -r "$formatter" --dry-run 2>&1 |
  sed -n 's/^\([^: ]*:[0-9]*\):[0-9]*: warning: code should be.*/\1: not as clang-format has it/p' |
  sort -u -t : -k 1,1 -k 2,2n)
[ -z "$wrong" ] && exit
echo "$wrong"
echo "to put them right: tests/style/check_format.sh --fix"
exit 1
