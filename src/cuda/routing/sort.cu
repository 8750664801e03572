// Radix sort by CUB (Adinets and Merrill, "Onesweep: a faster least significant digit radix sort for GPUs", 2022), in a
// namespace of our own: symbols of two CUB versions in one process would otherwise be merged.
#define THRUST_CUB_WRAPPED_NAMESPACE ggm_wrapped
#define CCCL_DISABLE_NVTX
#include <cub/device/device_radix_sort.cuh>

#include "cuda/routing/sort.h"
#include "cuda/runtime/status.h"
#include "plan/sort_bound.h"

namespace ggm::cuda {
namespace {

// CUB's two-phase call: with temp == nullptr it only stores the bytes it needs.
cudaError_t call_cub(void* temp, std::size_t* temp_bytes, SortBuffers* buffers, std::int64_t items, int bits,
                     cudaStream_t stream) {
  namespace cub = ::ggm_wrapped::cub;
  cub::DoubleBuffer<std::uint32_t> keys(buffers->keys, buffers->other_keys);
  cub::DoubleBuffer<std::int32_t> values(buffers->values, buffers->other_values);
  const cudaError_t error =
      cub::DeviceRadixSort::SortPairs(temp, *temp_bytes, keys, values, static_cast<std::uint32_t>(items), 0, bits, stream);
  if (temp != nullptr && error == cudaSuccess) {
    buffers->keys = keys.Current();
    buffers->other_keys = keys.Alternate();
    buffers->values = values.Current();
    buffers->other_values = values.Alternate();
  }
  return error;
}

ggm_status_t needed_bytes(std::int64_t items, int bits, std::size_t* bytes) {
  SortBuffers none{};
  *bytes = 0;
  return cuda_status(call_cub(nullptr, bytes, &none, items, bits, nullptr), "size of the sort's temporary storage");
}

// The memory and stream of the warm-up, freed on every path.
struct WarmUp {
  cudaStream_t stream = nullptr;
  void* memory = nullptr;

  ~WarmUp() {
    if (memory) (void)cudaFree(memory);
    if (stream) (void)cudaStreamDestroy(stream);
  }
};

}  // namespace

ggm_status_t sort_pairs(SortBuffers* buffers, std::int64_t items, int bits, cudaStream_t stream) {
  std::size_t bytes = 0;
  GGM_TRY(needed_bytes(items, bits, &bytes));
  if (static_cast<std::int64_t>(bytes) > buffers->temp_bytes)
    return fail(GGM_STATUS_INTERNAL_ERROR, "the sort of %lld items needs %zu bytes of scratch; %lld are booked",
                static_cast<long long>(items), bytes, static_cast<long long>(buffers->temp_bytes));
  return cuda_status(call_cub(buffers->temp, &bytes, buffers, items, bits, stream), "sort of the expert ids");
}

ggm_status_t verify_sort_bound() {
  for (const std::int64_t items : {std::int64_t{1}, std::int64_t{1000}, std::int64_t{4865}, std::int64_t{100000},
                                   std::int64_t{1} << 24, (std::int64_t{1} << 28) + 1, std::int64_t{GGM_MAX_ROWS}}) {
    for (const int bits : {1, 8, 9, 17}) {
      std::size_t bytes = 0;
      GGM_TRY(needed_bytes(items, bits, &bytes));
      if (static_cast<std::int64_t>(bytes) > sort_temp_bound(items))
        return fail(GGM_STATUS_INTERNAL_ERROR,
                    "the sort of %lld items by %d bits needs %zu bytes of scratch; the plan books %lld",
                    static_cast<long long>(items), bits, bytes, static_cast<long long>(sort_temp_bound(items)));
    }
  }
  return GGM_STATUS_SUCCESS;
}

ggm_status_t warm_up_sort() {
  // Above one tile of any tuning, so that the larger run takes the device-wide kernels; the smaller takes the single-tile
  // kernel.
  constexpr std::int64_t kItems = 1 << 16;
  const std::int64_t temp_bytes = sort_temp_bound(kItems);
  WarmUp run;
  GGM_TRY(cuda_status(cudaStreamCreateWithFlags(&run.stream, cudaStreamNonBlocking), "stream of the warm-up"));
  GGM_TRY(cuda_status(cudaMalloc(&run.memory, 4 * 4 * kItems + temp_bytes), "memory of the warm-up"));
  GGM_TRY(cuda_status(cudaMemsetAsync(run.memory, 0, 4 * 4 * kItems, run.stream), "memory of the warm-up"));
  auto* words = static_cast<std::uint32_t*>(run.memory);
  for (const std::int64_t items : {std::int64_t{32}, kItems}) {
    SortBuffers buffers{words,
                        words + kItems,
                        reinterpret_cast<std::int32_t*>(words + 2 * kItems),
                        reinterpret_cast<std::int32_t*>(words + 3 * kItems),
                        words + 4 * kItems,
                        temp_bytes};
    GGM_TRY(sort_pairs(&buffers, items, 9, run.stream));
  }
  return cuda_status(cudaStreamSynchronize(run.stream), "warm-up of the sort");
}

}  // namespace ggm::cuda
