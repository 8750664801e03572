#!/usr/bin/env bash
# Uses libggm as another project does, with a small C program that is built and run.
#   consume.sh find_package BUILD   installs BUILD to a temporary prefix, moves that elsewhere, finds ggm there by find_package(ggm CONFIG)
#   consume.sh pkg-config BUILD     the same by pkg-config
#   consume.sh add_subdirectory     embeds the source tree in a C project (the host backend alone, so that it is quick)
set -euo pipefail
mode=$1
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

install_and_move() {
  cmake --install "$1" --prefix "$scratch/installed" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
  # Nothing may remember where it was installed, or built.
  mv "$scratch/installed" "$scratch/moved"
  if grep -rlI -e "$scratch/installed" -e "$root" "$scratch/moved"; then
    echo "these installed files name a folder of the build"
    exit 1
  fi
}

project() {  # the CMake lines that make ggm::ggm
  printf 'cmake_minimum_required(VERSION 3.25)\nproject(consumer LANGUAGES C)\n%s\nadd_executable(consumer "%s/consumer.c")\ntarget_link_libraries(consumer PRIVATE ggm::ggm)\n' \
    "$1" "$here" >"$scratch/CMakeLists.txt"
}

build_and_run() {
  { cmake -S "$scratch" -B "$scratch/build" -G Ninja "$@" && cmake --build "$scratch/build" -j 2 --target consumer; } >"$scratch/log" 2>&1 || {
    cat "$scratch/log"
    exit 1
  }
  "$scratch/build/consumer"
}

case $mode in
  find_package)
    install_and_move "$2"
    version=$(sed -n 's/^#define GGM_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' "$root/include/ggm/version.h" | paste -sd.)
    project "find_package(ggm $version CONFIG REQUIRED)"
    build_and_run -DCMAKE_PREFIX_PATH="$scratch/moved"
    ;;
  pkg-config)
    command -v pkg-config >/dev/null 2>&1 || { echo "skipped: there is no pkg-config here"; exit 77; }
    install_and_move "$2"
    folder=$(dirname "$(find "$scratch/moved" -name ggm.pc)")
    export PKG_CONFIG_PATH=$folder
    # shellcheck disable=SC2046
    gcc -std=c11 -Wall -Werror $(pkg-config --cflags ggm) "$here/consumer.c" -o "$scratch/consumer" $(pkg-config --libs ggm)
    LD_LIBRARY_PATH=$(pkg-config --variable=libdir ggm) "$scratch/consumer"
    ;;
  add_subdirectory)
    # A project in C alone: ggm brings its own languages, and neither its tests nor its install surprise it.
    launcher=()
    if command -v ccache >/dev/null 2>&1; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache); fi
    project "add_subdirectory(\"$root\" ggm EXCLUDE_FROM_ALL)"
    build_and_run -DGGM_CUDA=OFF -DCMAKE_BUILD_TYPE=Release "${launcher[@]}"
    if grep -q 'GGM_BUILD_TESTS:BOOL=ON' "$scratch/build/CMakeCache.txt"; then
      echo "the embedding project would build the tests of ggm"
      exit 1
    fi
    ;;
  *)
    echo "usage: consume.sh find_package|pkg-config|add_subdirectory [BUILD]" >&2
    exit 2
    ;;
esac
