// From a tile of accumulators in shared memory to memory: the one epilogue of all product kernels.
#pragma once

#include "cuda/device/epilogue/dot_rows.cuh"
#include "cuda/device/epilogue/ordered_rows.cuh"
#include "cuda/device/epilogue/store_rows.cuh"

namespace ggm::cuda {

// A barrier must lie between the writes of `staging` and this, and another before the staging is written again.
// Not inlined: its registers are its own then, and nothing of it is kept alive through the main loop, which needs them all.
template <typename Sum, int tile_m, int warps>
__device__ __noinline__ void run_epilogue(const GemmCall& call, const Tile& tile, const Sum* staging) {
  const TileView<Sum> view{call, tile, staging};
  if (call.epilogue.dots != nullptr) dot_rows<Sum, tile_m, warps>(view);
  switch (call.epilogue.kind) {
    case EpilogueKind::store: store_rows<Sum, tile_m, warps>(view); break;
    case EpilogueKind::ordered: ordered_rows<Sum, tile_m, warps>(view); break;
    case EpilogueKind::none: break;
  }
}

}  // namespace ggm::cuda
