#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# install-packages.sh [build|run|test|bench ...]: installs what is missing of these sections of
# packages.txt (all but bench when none is named). Asks for root only when something is missing.
# shellcheck disable=SC2086  # lists of words are meant to split
set -eu
list=$(dirname "$0")/packages.txt
sections=${*:-build run test}

wanted=$(awk -v sections=" $sections " '
  { sub(/#.*/, "") }
  /^\[/ { gsub(/[][ ]/, ""); wanted = index(sections, " " $0 " "); next }
  NF && wanted { print $1 }' "$list")
[ -n "$wanted" ] || { echo "install-packages: no such section: $sections" >&2; exit 2; }

if ! command -v dpkg-query > /dev/null; then
  echo "install-packages: this is no Debian system; these Debian packages (or their like) are" >&2
  echo "needed, and it is for you to install them:" $wanted >&2
  exit 0
fi

missing=
for package in $wanted; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null) || status=
  [ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
  as_root=
elif command -v sudo > /dev/null; then
  as_root=sudo
else
  echo "install-packages: not root and no sudo; have somebody run: apt-get install$missing" >&2
  exit 1
fi
echo "installing:$missing"
$as_root apt-get update -q
# tshark asks whether everybody may capture; nobody needs to here.
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
