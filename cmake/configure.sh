# Read by demo.sh and test.sh, never run by itself. ggm_configure DIR [cmake options]: configures DIR, a new one by Ninja, with ccache where
# it is present. Environment: GGM_CUDA=AUTO|ON|OFF, GGM_CUDA_ARCHITECTURES (for instance native, or 90a-real).
ggm_configure() {
  local dir=$1
  shift
  local options=()
  if [ -n "${GGM_CUDA:-}" ]; then options+=("-DGGM_CUDA=$GGM_CUDA"); fi
  # A folder that somebody configured by hand, as the quick starts do, keeps its choices, and its generator: CMake refuses another.
  if [ ! -f "$dir/CMakeCache.txt" ]; then options+=(-G Ninja); fi
  if [ -n "${GGM_CUDA_ARCHITECTURES:-}" ]; then options+=("-DGGM_CUDA_ARCHITECTURES=$GGM_CUDA_ARCHITECTURES"); fi
  if command -v ccache >/dev/null 2>&1; then
    options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
  fi
  if [ -z "${GGM_CUDA:-}" ] && grep -qs '^GGM_CUDA:STRING=OFF$' "$dir/CMakeCache.txt"; then
    echo "configure: $dir was made without CUDA and stays so; GGM_CUDA=AUTO brings it back"
  fi
  cmake -S . -B "$dir" "${options[@]}" "$@"
}
# Jobs of a build: one a core, but no more than the memory holds at 2 GB a compiler.
ggm_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable/ {print int($2 / 2097152)}' /proc/meminfo)
  [ "$memory" -ge 1 ] || memory=1
  echo $((cores < memory ? cores : memory))
}
