#!/usr/bin/env bash
# Runs an example that needs a GPU, as a test: on_gpu.sh PROGRAM [argument...]. Its exit code 3, no GPU, becomes 77, which CTest shows
# as skipped; with GGM_REQUIRE_GPU=1 it is a failure.
status=0
"$@" || status=$?
if [ "$status" != 3 ]; then exit "$status"; fi
case ${GGM_REQUIRE_GPU:-0} in
  0) exit 77 ;;
  *) echo "no GPU, but GGM_REQUIRE_GPU is set" && exit 1 ;;
esac
