#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# check_documents.sh CMAKE BUILD: in the installed documents every link to another document leads to
# one, and uroce.pc gives flags that any program can be compiled with.
set -euo pipefail
cmake=$1
build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

DESTDIR=$work "$cmake" -P "$build/docs/cmake_install.cmake" > /dev/null
failed=0
while IFS= read -r page; do
  while IFS= read -r link; do
    case $link in
      *://* | *tests/* | *include/*) continue ;;  # of the source tree, and not installed there
    esac
    [ -e "$(dirname "$page")/${link%%#*}" ] && continue
    echo "${page#"$work"}: $link leads nowhere" >&2
    failed=1
  done < <(grep -o ']([^)#][^)]*)' "$page" | sed 's/^](//; s/)$//')
done < <(find "$work" -name '*.md')
[ -n "$(find "$work" -name README.md)" ] || { echo 'no README.md is installed' >&2; failed=1; }

package=$(find "$work" -name uroce.pc)
if grep '^Cflags:.*-std' "$package" >&2; then
  echo 'uroce.pc chooses a language standard for its user' >&2
  failed=1
fi
exit $failed
