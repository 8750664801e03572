#!/usr/bin/env bash
# Makes a Debian 12 machine ready: finds out what is missing, names it and installs only that. It touches no network when
# nothing is missing, and does not need root then. CUDA is never installed: without a toolkit the host backend alone is built.
#   cmake/setup.sh build    what building the library and the demo needs
#   cmake/setup.sh test     that, and what the tests need (the default)
#   cmake/setup.sh ci       that, and the tools of the checks: clang-format 14, abidw, abidiff, doxygen
set -euo pipefail
what=${1:-test}
case $what in build | test | ci) ;; *) echo "usage: cmake/setup.sh [build|test|ci]" >&2; exit 2 ;; esac

missing=()
need() { missing+=("$1"); echo "setup: missing: $2 (package $1)"; }
have() { command -v "$1" >/dev/null 2>&1; }
# $1 >= $2, as versions.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }
has_header() { echo "#include <$1>" | ${CXX:-g++} -std=c++17 -E -x c++ - >/dev/null 2>&1; }

[ -n "${CXX:-}" ] || have g++ || need g++ "the C++ compiler g++, 12 or newer"
have gcc || need gcc "the C compiler gcc"
if ! have cmake || ! at_least "$(cmake --version | sed -n 's/^cmake version //p')" 3.25; then need cmake "cmake, 3.25 or newer"; fi
have ninja || need ninja-build "ninja"
if [ "$what" != build ]; then
  have python3 || need python3 "python3"
  # Debian's numpy serves Debian's python3 alone, which then runs the tests of bindings/python where another one on PATH has none.
  has_numpy() { "$1" -c 'import numpy' >/dev/null 2>&1; }
  has_numpy python3 || has_numpy /usr/bin/python3 || need python3-numpy "numpy, for the tests of bindings/python"
  have pkg-config || need pkg-config "pkg-config"
  if ! have ${CXX:-g++} || ! { has_header catch2/catch.hpp || has_header catch2/catch_test_macros.hpp || [ -n "${Catch2_DIR:-}" ]; }; then
    need catch2 "the test framework Catch2, 2.13 or 3"
  fi
fi
if [ "$what" = ci ]; then
  have clang-format-14 || { have clang-format && clang-format --version | grep -q 'version 14\.'; } || need clang-format-14 "clang-format 14"
  have abidiff && have abidw || need abigail-tools "abidw and abidiff"
  have doxygen || need doxygen "Doxygen, for the test that the reference is made without a warning"
fi

if [ ${#missing[@]} -gt 0 ]; then
  line="apt-get install -y --no-install-recommends ${missing[*]}"
  if ! have apt-get; then
    echo "setup: this machine has no apt-get; install the tools named above by its own package manager" >&2
    exit 1
  fi
  if [ "$(id -u)" != 0 ]; then
    echo "setup: not running as root. Run this line, then start again:" >&2
    echo "    sudo sh -c 'apt-get update && $line'" >&2
    exit 1
  fi
  echo "setup: installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  # The package lists of a fresh image are empty; where they are not, they usually suffice.
  $line >/dev/null 2>&1 || { apt-get update -qq && $line >/dev/null; } || {
    echo "setup: could not install ${missing[*]}; see what  $line  says" >&2
    exit 1
  }
fi

if [ -z "${CXX:-}" ] && ! at_least "$(g++ -dumpfullversion)" 12; then
  echo "setup: g++ is $(g++ -dumpfullversion); 12 or newer is needed (set CXX for another compiler)" >&2
  exit 1
fi
case $(echo "${GGM_CUDA:-AUTO}" | tr a-z A-Z) in OFF | FALSE | NO | N | 0) without_cuda=yes ;; *) without_cuda= ;; esac
if [ -n "$without_cuda" ]; then
  echo "setup: ready; GGM_CUDA=OFF, so the host backend alone"
elif have nvcc || [ -x /usr/local/cuda/bin/nvcc ]; then
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  echo "setup: ready; CUDA $("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')"
else
  echo "setup: ready; there is no CUDA toolkit here, so the host backend alone"
fi
