#!/usr/bin/env bash
# Compiles ggm.h alone as C99, C11, C++11 and C++20 with pedantic warnings as errors and runs the INIT checks of each. Where clang is
# present it does the same, and once with GGM_BINDGEN, as binding generators see the header.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
warnings=(-Wall -Wextra -Wpedantic -Wpadded -Wmissing-field-initializers -Wundef -Werror)

# The table of INIT macros in the program must be that of the header.
for macro in $(grep -oE '^#define GGM_[A-Z_]+_INIT' "$root/include/ggm/ggm.h" | cut -d' ' -f2); do
  grep -q "$macro)" "$root/tests/abi/header_alone.c" || { echo "tests/abi/header_alone.c does not check $macro"; exit 1; }
done

compile() {  # compiler language standard [flag...]
  local compiler=$1 language=$2 standard=$3
  shift 3
  "$compiler" -x "$language" "-std=$standard" "${warnings[@]}" "$@" -I"$root/include" "$root/tests/abi/header_alone.c" -o "$scratch/program"
  "$scratch/program" >"$scratch/out" || { cat "$scratch/out"; exit 1; }
  echo "header: $compiler $standard $*: no warning, INIT right"
}
compile "${CC:-gcc}" c c99
compile "${CC:-gcc}" c c11
compile "${CXX:-g++}" c++ c++11
compile "${CXX:-g++}" c++ c++20
if command -v clang >/dev/null 2>&1; then
  compile clang c c99
  compile clang c c99 -DGGM_BINDGEN
  compile clang c++ c++11 -lstdc++
fi
