#!/usr/bin/env bash
# Compares the binary interface of the entry points with the recorded baseline tests/abi/libggm.abi (abidw and abidiff, package
# abigail-tools). Added functions and constants pass; a change of anything recorded fails. With --update it records a new baseline.
# The release library has no debug information, so the entry points of src/api are compiled once more with it. Exit 77: no abidiff here.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
baseline=$root/tests/abi/libggm.abi
if ! command -v abidw >/dev/null 2>&1 || ! command -v abidiff >/dev/null 2>&1; then
  echo "ABI baseline: skipped, there is no abidw or abidiff here (Debian: apt-get install abigail-tools)"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Only the signatures matter, so what src/api calls may stay unresolved. Paths relative to the root keep the record the same everywhere.
cd "$root"
"${CXX:-g++}" -std=c++20 -g -O0 -fPIC -shared -fvisibility=hidden -fdebug-prefix-map="$root"=. -Iinclude -Isrc src/api/*.cpp src/base/*.cpp \
  -Wl,--version-script=cmake/ggm.map -Wl,--unresolved-symbols=ignore-all -Wl,-soname,libggm.so.0 -o "$scratch/libggm.so"
abidw --headers-dir include/ggm --drop-private-types --exported-interfaces-only --drop-undefined-syms --no-elf-needed \
  --no-comp-dir-path --no-corpus-path --no-show-locs --out-file "$scratch/now.abi" "$scratch/libggm.so"
if [ "${1:-}" = --update ]; then
  cp "$scratch/now.abi" "$baseline"
  echo "ABI baseline: recorded $(grep -c '<function-decl' "$baseline") function declarations in tests/abi/libggm.abi"
  exit 0
fi
# abidiff: 0 the same, 4 changed, 8 changed incompatibly, 1 and 2 errors. Additions alone are not reported.
status=0
abidiff --no-added-syms --drop-private-types "$baseline" "$scratch/now.abi" || status=$?
if [ "$status" != 0 ]; then
  echo "ABI baseline: FAILED (abidiff status $status). A change on purpose needs a new SONAME (version.h) and check_abi.sh --update"
  exit 1
fi
echo "ABI baseline: no difference"
