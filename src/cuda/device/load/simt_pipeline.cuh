// The steps of K of one tile of a float32 kernel on their way through shared memory. An operand that is copied into its last
// form uses all stages as a ring. One that is rearranged uses half of them as a ring of copies, which only the thread that made
// a copy touches, and two more for arranged steps: one is multiplied while the other is filled.
//
// The first steps are put under way by fill(); a main loop whose tile another object has done that for calls skip_fill(). Then
// it calls start() once and, in every step, between the products of the step: arrive(), all parts of arrange(), issue(), and
// last a barrier, behind which it reads the next step and nothing of this one.
#pragma once

#include <cstddef>

#include "cuda/device/load/scale_rows.cuh"
#include "cuda/device/load/simt_loader.cuh"
#include "cuda/device/shared_storage.cuh"

namespace ggm::cuda {

// Which main loop a tile takes. none: no tiles are left. few: only the first four rows of each thread exist. part: some of the
// tile's rows do not exist, and they are spread over the warps. scaled: rows of K have factors.
enum class SimtKind { none, general, few, part, fast, scaled };

struct SimtSlot {
  Tile tile;
  TileInputs inputs;
  SimtKind kind;
};

template <int kernel>
struct SimtShared : SharedStorage<kernel, 4, 0, float> {
  SimtSlot slots[3];  // a tile whose results are on their way, the one in the main loop, and the next
  alignas(16) float scale[kShape<kernel>.stages][kShape<kernel>.k];  // factors of the rows of K in each stage
};

// K is padded with zeros to a multiple of this in every kernel, so that all give the same bits.
inline constexpr int kSimtPadding = 16;

// `spread`: rows of A (RowSpread).
template <bool fast, bool scaled, bool spread, int kernel, Order a_order, Order b_order>
class SimtPipeline {
 public:
  static constexpr TileShape shape = kShape<kernel>;
  static constexpr unsigned kStages = shape.stages, kCopies = kStages / 2;
  static constexpr unsigned kAhead = kCopies + 1;  // steps from the one that is multiplied to the one that is issued
  static_assert(kCopies >= 2 && (kStages & (kStages - 1)) == 0, "two arranged steps; places in the rings are remainders");
  static_assert(kSimtPadding % shape.k == 0, "a padded K is whole steps");

  __device__ __forceinline__ SimtPipeline(const GemmCall& call, const TileInputs& inputs, SimtShared<kernel>& shared)
      : call_(call),
        shared_(shared),
        a_(inputs.a, shared.a_row, call.groups),
        b_(inputs.b, shared.b_row, call.groups),
        scale_(inputs.scale),
        stages_(ptx::shared_address(shared.stages)) {
    if constexpr (!fast) __syncthreads();  // row tables
  }

  // Where the multiply finds its operands. A step is named by its number modulo kStages.
  __device__ __forceinline__ std::uint32_t a(unsigned step) const { return last_form<ArrangerA>(step); }
  __device__ __forceinline__ std::uint32_t b(unsigned step) const { return last_form<ArrangerB>(step) + kB; }

  // Puts the first steps under way.
  __device__ __forceinline__ void fill() {
#pragma unroll
    for (unsigned step = 0; step < kCopies; ++step) issue(step);
  }

  // For a pipeline whose first steps another one has put under way: goes on behind them.
  __device__ __forceinline__ void skip_fill() {
    a_.skip(kCopies);
    b_.skip(kCopies);
    if constexpr (scaled) scale_.skip(kCopies);
  }

  // Makes step 0 ready.
  __device__ __forceinline__ void start() {
    if constexpr (scaled) __syncthreads();  // factors
    arrive();
#pragma unroll
    for (int part = 0; part < kParts; ++part) arrange(0, part);
    issue(kCopies);
    __syncthreads();
  }

  // Puts a step under way, in the place of the chunks that were arranged last.
  __device__ __forceinline__ void issue(unsigned step) {
    a_.issue(copied<ArrangerA>(step));
    b_.issue(copied<ArrangerB>(step) + kB);
    if constexpr (scaled) scale_.issue(shared_.scale[step]);
    ptx::cp_async_commit();
  }

  // Waits for the thread's own chunks of the next step.
  __device__ __forceinline__ void arrive() { ptx::cp_async_wait<kCopies - 1>(); }

  // Arranges the thread's chunks of a step: part i stores chunk i - 1 and loads chunk i.
  __device__ __forceinline__ void arrange(unsigned step, int part) {
    const int stored = part - 1;
    if (stored >= 0 && stored < ArrangerA::kCount) a_arranger_.store(a(step), stored);
    if (stored >= ArrangerA::kCount && stored < kParts - 1) b_arranger_.store(b(step), stored - ArrangerA::kCount);
    if (part < ArrangerA::kCount)
      a_arranger_.load(copied<ArrangerA>(step), part, factors(step), call_.scaled == GemmCall::Scale::a);
    if (part >= ArrangerA::kCount && part < kParts - 1)
      b_arranger_.load(copied<ArrangerB>(step) + kB, part - ArrangerA::kCount, factors(step),
                       call_.scaled == GemmCall::Scale::b);
  }

 private:
  using A = SimtCopies<shape.m, shape.k, shape.threads(), a_order, RowSpread<kernel, spread>>;
  using B = SimtCopies<shape.n, shape.k, shape.threads(), b_order>;
  using ArrangerA = Arranger<A, false, scaled>;
  using ArrangerB = Arranger<B, kColumnsSwapped<kernel>, scaled>;
  using Stage = typename SimtShared<kernel>::Stage;
  static constexpr std::uint32_t kStageBytes = sizeof(Stage), kB = offsetof(Stage, b);
  // Rows of K may be listed in a weight gradient only; there both operands have K outside.
  static constexpr bool kListed = a_order == Order::inner_strided;

  __device__ __forceinline__ std::uint32_t factors(unsigned step) const {
    return ptx::shared_address(shared_.scale) + step * sizeof(shared_.scale[0]);
  }
  template <typename OperandArranger>
  __device__ __forceinline__ std::uint32_t copied(unsigned step) const {
    return stages_ + (OperandArranger::kNeeded ? step % kCopies : step) * kStageBytes;
  }
  template <typename OperandArranger>
  __device__ __forceinline__ std::uint32_t last_form(unsigned step) const {
    return stages_ + (OperandArranger::kNeeded ? kCopies + step % 2 : step) * kStageBytes;
  }

 public:
  static constexpr int kParts = ArrangerA::kCount + ArrangerB::kCount + 1;

 private:
  const GemmCall& call_;
  SimtShared<kernel>& shared_;
  SimtLoader<fast, kListed, A> a_;
  SimtLoader<fast, kListed, B> b_;
  ArrangerA a_arranger_;
  ArrangerB b_arranger_;
  ScaleLoader<shape.k> scale_;
  std::uint32_t stages_;
};

}  // namespace ggm::cuda
