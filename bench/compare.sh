#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# compare.sh [--quick] [--rounds N] [--markdown FILE] [--json FILE] ...: uroce beside TCP, UCX and
# libfabric on this machine, all in one run; docs/PERFORMANCE.md says what is compared. Needs a
# build (cmake --preset release && cmake --build --preset release).
set -eu
here=$(dirname "$0")
"$here/../scripts/install-packages.sh" run bench ||
  echo "compare: what needs a missing package is left out" >&2
exec python3 -B "$here/compare" "$@"
