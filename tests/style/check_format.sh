#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_format.sh [--fix]: every C and C++ file is as clang-format 14 would have it.
set -eu
cd "$(dirname "$0")/../.."
formatter=$(command -v clang-format-14 || command -v clang-format) ||
  { echo "check_format: no clang-format; scripts/install-packages.sh test installs it" >&2; exit 2; }
mode='--dry-run -Werror'
[ "${1:-}" != --fix ] || mode=-i

# shellcheck disable=SC2086  # the mode is two words
find include src providers tests bench examples -name '*.h' -o -name '*.cc' -o -name '*.c' |
  sort | xargs -r -n 20 -P "$(nproc)" "$formatter" $mode || {
  echo "to put them right: tests/style/check_format.sh --fix"
  exit 1
}
