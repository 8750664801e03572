#!/usr/bin/env bash
# Builds and runs the demo: cmake/demo.sh [text file]. Sets up what is missing (cmake/setup.sh). Build folder: build.
set -euo pipefail
file=${1:+$(realpath "$1")}
cd "$(dirname "$0")/.."
. cmake/configure.sh
cmake/setup.sh build
tests=OFF
if [ -f build/CMakeCache.txt ]; then tests=$(sed -n 's/^GGM_BUILD_TESTS:BOOL=//p' build/CMakeCache.txt); fi
ggm_configure build "-DGGM_BUILD_TESTS=${tests:-OFF}" -DGGM_BUILD_EXAMPLES=ON --log-level=WARNING
cmake --build build -j "$(ggm_jobs)" --target ggm_demo
exec "$(find build -name ggm_demo -type f -perm -u+x | head -n 1)" "${file:-README.md}"
