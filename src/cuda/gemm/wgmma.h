// Launching wgmma kernels: what the copy engine must know of the operands, whether it can read them, and the launch.
#pragma once

#include "cuda/device/gemm_call.h"
#include "cuda/device/hopper/relay.h"
#include "cuda/runtime/launch.h"
#include "plan/wgmma_table.h"

namespace ggm::cuda {

// An operand as a tensor of rows, the direction that is contiguous in memory inside.
struct MapSource {
  const void* base = nullptr;
  Type type = Type::none;
  std::int64_t inner = 0, rows = 0;  // elements of a row, and rows of a matrix
  std::int64_t ld_bytes = 0;
  std::int64_t groups = 1, group_bytes = 0;  // with by_group: a matrix for each
  bool by_group = false;
  bool divided = false;          // groups divide the rows
  bool ends_with_group = false;  // and K runs over them

  // Why the copy engine cannot read it: nullptr when it can.
  const char* obstacle() const;
};

// Whether this process can run the wgmma kernels on the current device: native code for it, and a driver that encodes maps.
// Called at create; the first call loads every kernel.
ggm_status_t load_wgmma_kernels(bool* usable);

// Puts kWgmmaKernels[kernel] on the stream, on at most `launch.multiprocessors` of them, which must be 2 or more. The table of
// `call` must count pairs of tiles (TileGrid). Neither a nor b has an obstacle; rows which come through a list are not mapped.
// Where d has one, or results need more than a rounding, threads store them. `relay`: what a relayed row of the table asks for.
ggm_status_t launch_wgmma(int kernel, const GemmCall& call, const MapSource& a, const MapSource& b, const MapSource& d,
                          const Relay& relay, const Launch& launch);

}  // namespace ggm::cuda
