// The steps of K of one tile of a tensor-core kernel on their way through the stages in shared memory: loads of both operands,
// and of the rows' factors in a weight gradient.
//
// A tile begins with fill(), and perhaps skip_fill() in another object. Its main loop calls begin(), then in every step, spread
// between its products: own_arrived(), all parts of issue_part() into the slot that became free, all parts of scale_part() of
// the next slot, and publish(), behind which it reads the next slot and nothing of the current one. Operands whose rows may
// start anywhere have parts of shift_part() besides, behind those of the issue: they need the slot after the next as well.
#pragma once

#include <cstddef>
#include <type_traits>

#include "cuda/device/load/scale_rows.cuh"
#include "cuda/device/load/shifted_ordered_loader.cuh"
#include "cuda/device/shared_storage.cuh"

namespace ggm::cuda {

// Shared memory of a kernel with such a pipeline.
template <int kernel>
struct PipelineShared : SharedStorage<kernel, 2, 0, float> {
  alignas(16) float scale[kShape<kernel>.stages][kShape<kernel>.k];  // factors of the rows of K in each stage
};

// A, B: which chunks a thread copies (MmaCopies). `tables`: a loader keeps its rows' starts in shared memory. `held`:
// chunks that are on their way into place at a time, for operands whose rows may start anywhere.
template <typename Shared, typename Element, typename A, typename B, typename LoaderA, typename LoaderB, bool tables,
          bool scaled, int held>
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

  // For a pipeline whose first steps another one has put under way: goes on behind them.
  __device__ __forceinline__ void skip_fill() {
    a_.skip(kStages - 1);
    b_.skip(kStages - 1);
    if constexpr (scaled) scale_.skip(kStages - 1);
  }

  // Puts the first steps under way.
  __device__ __forceinline__ void fill() {
    constexpr int kUnrolled = tables ? 1 : kStages - 1;  // loaders with tables have long code
    if constexpr (kShiftsA) a_.begin_heads(a(0));
    if constexpr (kShiftsB) b_.begin_heads(b(0));
#pragma unroll kUnrolled
    for (int s = 0; s < kStages - 1; ++s)
#pragma unroll
      for (int part = 0; part < kIssueParts; ++part) issue_part(s, part, s);
    if constexpr (kShiftsA) a_.end_heads(a(0));
    if constexpr (kShiftsB) b_.end_heads(b(0));
  }

  // After this step 0 is there for all threads.
  __device__ __forceinline__ void begin() {
    if constexpr (scaled) {
      __syncthreads();  // factors
      ptx::cp_async_wait<kStages - 2>();
#pragma unroll 1
      for (int part = 0; part < kScaleParts; ++part) scale_part(0, part);
    }
    if constexpr (kShiftParts > 0) {
      constexpr int kUnrolled = held == 0 ? 1 : kShiftParts;
#pragma unroll kUnrolled
      for (int part = 0; part < kShiftParts; ++part) shift_part(0, 1, part);
    }
    publish();
  }

  // Before the first part of an issue into slot `stage`.
  __device__ __forceinline__ void begin_issue(int stage) const {
    if constexpr (kEnds)
      if (a_.ends()) {
        a_.copy_ends(a(stage));
        b_.copy_ends(b(stage));
      }
  }

  // Puts the next step under way, into slot `stage`. Parts come in ascending order. `round`: how many steps have been issued
  // since end_round().
  static constexpr int kIssueParts = A::kCount + B::kCount;
  __device__ __forceinline__ void issue_part(int stage, int part, int round) {
    if (part < A::kCount)
      issue_copy<A::kCount>(a_, a(stage), part, round);
    else
      issue_copy<B::kCount>(b_, b(stage), part - A::kCount, round);
    if (part + 1 < kIssueParts) return;
    if constexpr (scaled) scale_.issue(shared_.scale[stage]);
    ptx::cp_async_commit();
  }

  __device__ __forceinline__ void end_round(int steps) {
    a_.end_round(steps);
    b_.end_round(steps);
  }

  // Before the first part of an issue: the thread's own chunks of the step after the current one are there.
  __device__ __forceinline__ void own_arrived() {
    if constexpr (scaled) ptx::cp_async_wait<kStages - 3>();
  }

  // Scales the thread's own chunks of a slot.
  static constexpr int kScaleParts = scaled ? (A::kCount > B::kCount ? A::kCount : B::kCount) : 0;
  __device__ __forceinline__ void scale_part(int stage, int part) {
    if constexpr (scaled) {
      if (call_.scaled == GemmCall::Scale::none) return;
      if constexpr (A::kCount == B::kCount && A::kPassBytes == B::kPassBytes) {  // the same chunks of either operand
        scale_chunk<A, Element>(call_.scaled == GemmCall::Scale::a ? a(stage) : b(stage), shared_.scale[stage], part);
      } else {
        if (call_.scaled == GemmCall::Scale::a && part < A::kCount)
          scale_chunk<A, Element>(a(stage), shared_.scale[stage], part);
        if (call_.scaled == GemmCall::Scale::b && part < B::kCount)
          scale_chunk<B, Element>(b(stage), shared_.scale[stage], part);
      }
    }
  }

  // Moves the thread's own chunks of a slot into place; `after`: the slot of the step after. A part loads one chunk and stores
  // the one that was loaded `held` parts before.
  static constexpr bool kShiftsA = is_shifted<LoaderA>, kShiftsB = is_shifted<LoaderB>;
  static constexpr int kShiftsOfA = kShiftsA ? A::kCount : 0, kShifts = kShiftsOfA + (kShiftsB ? B::kCount : 0);
  static constexpr int kShiftParts = kShifts > 0 ? kShifts + held : 0;
  __device__ __forceinline__ void shift_part(int stage, int after, int part) {
    if (part == 0) {
      ptx::cp_async_wait<kStages - 3>();  // this lane's copies of both steps, and
      __syncwarp();                       // those of the others
    }
    if constexpr (kShiftsA) shift_part(a_, part, A::kCount, a(stage), a(after));
    if constexpr (kShiftsB) shift_part(b_, part - kShiftsOfA, B::kCount, b(stage), b(after));
  }

  // After this the slot after the current one is there for all threads.
  __device__ __forceinline__ void publish() {
    ptx::cp_async_wait<kStages - 2>();
    __syncthreads();
  }

 private:
  template <int count, typename Loader>
  static __device__ __forceinline__ void issue_copy(Loader& loader, std::uint32_t to, int i, int round) {
    if (i == 0) loader.begin_step();
    loader.copy(to, i, round);
    if (i + 1 == count) loader.end_step();
  }

  template <typename Loader>
  static __device__ __forceinline__ void shift_part(Loader& loader, int i, int count, std::uint32_t stage,
                                                    std::uint32_t after) {
    if constexpr (held == 0) {
      if (i >= 0 && i < count) loader.shift(stage, after, i);
    } else {
      if (i >= held && i < count + held) loader.store_shift(stage, i - held);
      if (i >= 0 && i < count) loader.load_shift(stage, after, i);
    }
  }

  static constexpr bool kEnds = std::is_same_v<LoaderA, ShiftedOrderedLoader<A>>;  // both operands then
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
