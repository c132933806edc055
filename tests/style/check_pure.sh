#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_pure.sh ALLOW ARCHIVE...: the archives together may need no symbol from outside but those
# that ALLOW lists (regular expressions): no heap, no lock, no clock, no input or output.
set -eu
allow=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# have: symbols. need: symbol, tab, "archive:object:".
nm --defined-only "$@" | awk 'NF == 3 { print $3 }' | sort -u > "$work/have"
nm -A --undefined-only "$@" | awk 'NF == 3 { print $3 "\t" $1 }' | sort -u > "$work/need"
[ -s "$work/have" ] || { echo "check_pure: nothing is defined in $*" >&2; exit 2; }

grep -v '^#' "$allow" > "$work/allow"
cut -f 1 "$work/need" | sort -u | comm -23 - "$work/have" > "$work/outside"
status=0
grep -vxEf "$work/allow" "$work/outside" > "$work/bad" || status=$?
[ "$status" -ne 1 ] || exit 0  # nothing is left; 2 would be a mistake in the list
[ "$status" -eq 0 ] || { echo "check_pure: $allow is not a list of expressions" >&2; exit 2; }
echo "the sans-IO core needs these from outside (object file: symbol); do without them, or pass"
echo "in what they stand for:"
awk -F '\t' 'NR == FNR { bad[$1] = 1; next } $1 in bad { print $2 " " $1 }' \
  "$work/bad" "$work/need" | sed 's|^.*/||' | c++filt
exit 1
