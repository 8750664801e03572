#!/usr/bin/env bash
# Tests of the Julia package, for CTest: bindings/julia/test.sh LIBRARY BUILD_FOLDER NAME... Julia is what GGM_JULIA names, else the one
# on PATH. Exit: 77 when there is none.
set -euo pipefail
export GGM_LIBRARY=$1 JULIA_DEPOT_PATH=$2/depot:
folder=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)

skip() { echo "julia: skipped, $*"; exit 77; }
julia=$(command -v "${GGM_JULIA:-julia}") || {
  [ -n "${GGM_JULIA:-}" ] && { echo "julia: GGM_JULIA=$GGM_JULIA is no program" >&2; exit 1; }
  skip "there is no julia on PATH, and GGM_JULIA names none"
}
version=$("$julia" --startup-file=no -e 'print(VERSION)') || { echo "julia: $julia does not start" >&2; exit 1; }
case $version in 0.* | 1.[0-4].*) skip "$julia is version $version; 1.5 or newer is needed" ;; esac

# A Julia whose libunwind is newer than the one it was built with dies while it records the backtrace of an exception (1.5 of Debian 11
# on Debian 12). Then backtraces are left out: this walk over the frames ends at the first.
throws() { ("$julia" --startup-file=no -e 'f(x) = x > 0 ? error() : x; try f(1) catch; exit(0) end'; exit $?) >/dev/null 2>&1; }
if ! throws; then
  mkdir -p "$folder"
  echo 'int _ULx86_64_step(void* cursor) { (void)cursor; return 0; }' >"$folder/$1.c"
  "${CC:-cc}" -shared -fPIC "$folder/$1.c" -o "$folder/$1.so"
  export LD_PRELOAD="$folder/$1.so"
  throws || skip "$julia ($version) dies when compiled code throws an exception"
  echo "julia: without backtraces, because the libunwind here is not the one of this Julia"
fi

# Most of the time goes into compiling what runs once.
JULIA_NUM_THREADS=4 exec "$julia" --startup-file=no -O0 --project="$here" "$here/test/runtests.jl" "$@"
