// The steps of K of one tile on their way through the stages in shared memory: loads of both operands, and of the rows' factors
// in a weight gradient. Shared by the main loops of the float32 and 16-bit kernels.
//
// A main loop calls start() once, then for every step: issue() into the slot that became free, and arrive() at the next one.
// Between the last read of a slot by any thread and the issue() that overwrites it lies the barrier of one arrive().
#pragma once

#include <cstddef>

#include "cuda/device/load/scale_rows.cuh"
#include "cuda/device/shared_storage.cuh"

namespace ggm::cuda {

// Shared memory of a kernel with such a pipeline.
template <int kernel, int element_bytes, int pad>
struct PipelineShared : SharedStorage<kernel, element_bytes, pad, float> {
  alignas(16) float scale[kShape<kernel>.stages][kShape<kernel>.k];  // factors of the rows of K in each stage
};

// A, B: which chunks a thread copies (MmaCopies, SimtCopies). `tables`: a loader keeps its rows' starts in shared memory.
template <typename Shared, typename Element, typename A, typename B, typename LoaderA, typename LoaderB, bool tables,
          bool scaled>
class Pipeline {
 public:
  static constexpr int kStages = Shared::shape.stages;
  static_assert(kStages >= 3, "a stage's factors are stored a barrier before they are used");

  __device__ __forceinline__ Pipeline(const GemmCall& call, const TileInputs& inputs, Shared& shared)
      : call_(call),
        shared_(shared),
        a_(inputs.a, shared.a_row, call.groups),
        b_(inputs.b, shared.b_row, call.groups),
        scale_(inputs.scale),
        stages_(ptx::shared_address(shared.stages)) {
    if constexpr (tables) __syncthreads();
  }

  // Shared-memory addresses of a stage's operands.
  __device__ __forceinline__ std::uint32_t a(int stage) const { return stages_ + stage * kStageBytes; }
  __device__ __forceinline__ std::uint32_t b(int stage) const { return a(stage) + kB; }

  // Puts the first steps under way and waits for step 0; `meanwhile` runs in between.
  template <typename Meanwhile>
  __device__ __forceinline__ void start(const Meanwhile& meanwhile) {
#pragma unroll
    for (int s = 0; s < kStages - 1; ++s) issue(s);
    meanwhile();
    if constexpr (scaled) __syncthreads();  // factors
    arrive(0);
  }

  // Puts the next step under way, into slot `stage`.
  __device__ __forceinline__ void issue(int stage) {
    a_.issue(a(stage));
    b_.issue(b(stage));
    if constexpr (scaled) scale_.issue(shared_.scale[stage]);
    ptx::cp_async_commit();
  }

  // After this the step in slot `stage`, the one that follows the current step, is there for all threads.
  __device__ __forceinline__ void arrive(int stage) {
    ptx::cp_async_wait<kStages - 2>();
    if constexpr (scaled) {
      if (call_.scaled == GemmCall::Scale::a) scale_chunks<A, Element>(a(stage), shared_.scale[stage]);
      if (call_.scaled == GemmCall::Scale::b) scale_chunks<B, Element>(b(stage), shared_.scale[stage]);
    }
    __syncthreads();
  }

 private:
  using Stage = typename Shared::Stage;
  static constexpr std::uint32_t kStageBytes = sizeof(Stage), kB = offsetof(Stage, b);

  const GemmCall& call_;
  Shared& shared_;
  LoaderA a_;
  LoaderB b_;
  ScaleLoader<Shared::shape.k> scale_;
  std::uint32_t stages_;
};

}  // namespace ggm::cuda
