#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# check_driver_folder.sh CMAKE SOURCE: the .driver file goes where libibverbs looks, under /usr and
# under any other prefix, also when the installation is moved or staged.
set -euo pipefail
cmake=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/project"
cat > "$work/project/CMakeLists.txt" << PROJECT
cmake_minimum_required(VERSION 3.25)
project(folders LANGUAGES NONE)
set(CMAKE_INSTALL_LIBDIR lib)
include(GNUInstallDirs)
include($source/cmake/UroceInstall.cmake)
uroce_driver_folder(folder)
install(FILES CMakeLists.txt DESTINATION \${folder})
PROJECT

check() {  # PREFIX EXPECTED [OPTION OF cmake --install...]
  local prefix=$1 expected=$2
  shift 2
  rm -rf "$work/build" "$work/stage"
  "$cmake" -S "$work/project" -B "$work/build" -DCMAKE_INSTALL_PREFIX="$prefix" > /dev/null
  DESTDIR=$work/stage "$cmake" --install "$work/build" "$@" > /dev/null
  [ -e "$work/stage$expected/libibverbs.d/CMakeLists.txt" ] && return
  echo "prefix $prefix $*: expected $expected, got" >&2
  find "$work/stage" -type f >&2
  exit 1
}

check /usr /etc
check /usr/local /usr/local/etc
check /usr/local /elsewhere/etc --prefix /elsewhere
check /opt/uroce /etc/opt/uroce
