#!/usr/bin/env bash
# Sets up what is missing (cmake/setup.sh), builds everything and passes the tests: cmake/test.sh [ctest options].
# Without a GPU the GPU tests are reported as skipped; GGM_REQUIRE_GPU=1 makes a skip a failure. The tests labelled large need
# over 2 GB and are left out: cmake/test.sh -L large runs them. Build folder: build.
set -euo pipefail
cd "$(dirname "$0")/.."
. cmake/configure.sh
cmake/setup.sh test
ggm_configure build -DGGM_BUILD_TESTS=ON -DGGM_BUILD_EXAMPLES=ON
cmake --build build -j "$(ggm_jobs)"
if [ $# -eq 0 ]; then set -- -LE large; fi
exec ctest --test-dir build --output-on-failure -j "$(nproc)" "$@"
