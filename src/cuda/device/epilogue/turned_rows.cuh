// Results of a turned product (gemm_wgmma.cuh) that the copy engine cannot store (mapped_rows.cuh): a thread's registers run
// along columns of D, so all pass through shared memory. Rounded ones that are only weighted or go to rows of a list, 32 or 64
// columns at a time, as 16-byte pieces of rows; everything else in float32, 16 or 32 rows at a time, through the epilogue that
// all kernels share. And the inner products. All ways give the same bits. The work of one warpgroup.
#pragma once

#include "cuda/device/epilogue/direct_rows.cuh"
#include "cuda/device/epilogue/epilogue.cuh"
#include "cuda/device/ptx/cp_async.cuh"
#include "cuda/device/ptx/mbarrier.cuh"
#include "cuda/device/ptx/mma.cuh"
#include "cuda/device/ptx/stmatrix.cuh"

namespace ggm::cuda {

template <typename Element, typename Sums, int staging_bytes>
class TurnedRows {
 public:
  static constexpr int kColumns = Sums::kN * 128 <= staging_bytes ? 64 : 32;       // rounded columns at a time
  static constexpr int kRows = staging_bytes >= 32 * kStagingPitch * 4 ? 32 : 16;  // float32 rows at a time
  static_assert(Sums::kN * kColumns * 2 <= staging_bytes && kRows * kStagingPitch * 4 <= staging_bytes,
                "a part fits its staging");
  static constexpr int kFewRows = 16;  // a tile of so few passes faster through the float32 epilogue, in one part

  __device__ __forceinline__ TurnedRows(const GemmCall& call, const Tile& tile, const Sums& sums, char* staging, int barrier)
      : view_{call, tile, reinterpret_cast<float*>(staging)},
        sums_(sums),
        staging_(ptx::shared_address(staging)),
        barrier_(barrier),
        thread_(ptx::fresh_thread() % kThreads) {}

  __device__ __forceinline__ void store() {
    if (is_plain())
      store_plain();
    else if (Sums::kOverRows && is_plain_ordered() && view_.tile.m_left > kFewRows)
      store_ordered();
    else if (view_.call.epilogue.kind != EpilogueKind::none)
      store_general();
  }

  // Inner products, from float32 rows in shared memory, kRows at a time. The words of x for the next rows are under way
  // meanwhile.
  __device__ __forceinline__ void store_dots() {
    if (words_of_x(view_.call, view_.tile)) {
      store_dots_by_words();
    } else {
#pragma unroll 1
      for (int part = 0; part * kRows < view_.tile.m_left; ++part) {
        view_.row0 = part * kRows;
        stage_rows(part);
        dot_rows<float, kRows, kWarps>(view_);
      }
    }
    view_.row0 = 0;
  }

  // The same with x in shared memory: halves of 64 columns, rows of 128 bytes, swizzled like an operand (dot_stages.cuh). A
  // warp has 16 columns of each half, in every lane two of them (8 apart) of two rows of every eight: sums of two terms in the
  // lane, then of eight neighbours in eight lanes, which leaves a row to a lane. The staging takes them to who adds the warps'.
  __device__ __forceinline__ void sum_staged_dots(std::uint32_t first_half, std::uint32_t second_half) const {
    sum_half<0>(first_half);
    sum_half<1>(second_half);
  }
  __device__ __forceinline__ void store_staged_dots() const {
    ptx::named_sync(barrier_, kThreads);
    const Epilogue& e = view_.call.epilogue;
#pragma unroll 1
    for (int row = thread_; row < view_.tile.m_left; row += kThreads) {
      float* const to = static_cast<float*>(e.dots) + view_.sorted_row(row) * e.dot_blocks + view_.tile.n0 / kDotBlock;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float quarters[kWarps];
#pragma unroll
        for (int w = 0; w < kWarps; ++w) quarters[w] = ptx::load_shared_4(dot_place(half, w, row));
        if (half * kDotBlock < view_.tile.n_left)
          to[half] = add_rn(add_rn(quarters[0], quarters[1]), add_rn(quarters[2], quarters[3]));
      }
    }
  }

 private:
  __device__ __forceinline__ std::uint32_t dot_place(int half, int warp, int row) const {
    return staging_ + ((half * kWarps + warp) * Sums::kN + row) * 4;
  }

  // What a lane keeps of two numbers, plus what its partner `bit` lanes away has of the same: one gets the first's sum, the
  // other the second's.
  __device__ __forceinline__ float add_over(int bit, float first, float second) const {
    const bool upper = (thread_ & bit) != 0;
    const float theirs = __shfl_xor_sync(0xffffffffu, upper ? first : second, bit);
    return add_rn(upper ? second : first, theirs);
  }

  template <int half>
  __device__ __forceinline__ void sum_half(std::uint32_t x) const {
    static_assert(Sums::kN % 16 == 0 && 2 * kWarps * Sums::kN * 4 <= staging_bytes, "pairs of eights, and sums of both halves");
    const unsigned lane = static_cast<unsigned>(thread_) % 32, warp = static_cast<unsigned>(thread_) / 32;
    const int left = view_.tile.n_left - half * kDotBlock - static_cast<int>(warp) * 16;  // columns that exist, of the warp's
    // A lane gives the address of a row of one of four 8x8 matrices: eight rows and the next eight, of the warp's first eight
    // columns and of the others.
    const std::uint32_t from = x + (lane / 16 * 8 + lane % 8) * 128 + ((2 * warp + lane / 8 % 2) ^ lane % 8) * 16;
    const std::uint32_t to =
        dot_place(half, static_cast<int>(warp), static_cast<int>(lane % 4 * 2 + lane / 4 % 2 + lane / 8 * 8));
#pragma unroll
    for (int first = 0; first < Sums::kFragmentsN; first += 4) {  // rows / 8
      float of_eights[4];
#pragma unroll
      for (int j = 0; j < 4; j += 2) {
        if (first + j >= Sums::kFragmentsN) continue;
        std::uint32_t words[4];
        ptx::ldmatrix_x4<true>(words, from + (first + j) * 1024);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float2 u0 = sums_.pair(2 * half, first + j + i), v0 = unpack(words[2 * i], Element{});
          const float2 u1 = sums_.pair(2 * half + 1, first + j + i), v1 = unpack(words[2 * i + 1], Element{});
          float2 s = make_float2(0.0f, 0.0f);
          if (left > 0) s = make_float2(fma_rn(u0.x, v0.x, s.x), fma_rn(u0.y, v0.y, s.y));
          if (left > 8) s = make_float2(fma_rn(u1.x, v1.x, s.x), fma_rn(u1.y, v1.y, s.y));
          of_eights[j + i] = add_over(4, s.x, s.y);
        }
      }
      const float low = add_over(8, of_eights[0], of_eights[1]);
      const bool four = first + 4 <= Sums::kFragmentsN;  // else there are two
      const float high = four ? add_over(8, of_eights[2], of_eights[3]) : low;
      const float sum = add_over(16, low, high);
      if (four || lane < 16) ptx::store_shared_4(to + first * 32, sum);
    }
  }

  static constexpr int kThreads = 128, kWarps = 4;

  // Rounded results with at most a weight behind the rounding; rows of D aligned to 16 bytes.
  __device__ __forceinline__ bool is_plain() const {
    const Epilogue& e = view_.call.epilogue;
    const GroupDesc& d = view_.tile.desc;
    if (e.kind != EpilogueKind::store || !e.only_rounds(kTypeOf<Element>) || e.d_type != kTypeOf<Element>) return false;
    if (e.row_weight != nullptr && e.product_type != kTypeOf<Element>) return false;
    if (d.ldd > 0x3fffffff || (view_.tile.n_left % 8 != 0 && view_.tile.n_left < kTileColumns)) return false;
    return ((reinterpret_cast<std::uint64_t>(d.d) | static_cast<std::uint64_t>(d.ldd) * 2) & 15) == 0;
  }

  __device__ __forceinline__ void store_plain() const {
    std::int32_t to[kMine];
    unsigned zeros = 0;
#pragma unroll
    for (int i = 0; i < kMine; ++i) find_row(i, &to[i], &zeros);
#pragma unroll
    for (int part = 0; part < 128 / kColumns; ++part) {
      ptx::named_sync(barrier_, kThreads);  // the staging has been read
      stage_columns(part);
      ptx::named_sync(barrier_, kThreads);
      if (view_.call.epilogue.row_weight != nullptr)
        store_columns<true>(part, to, zeros);
      else
        store_columns<false>(part, to, zeros);
    }
  }

  // The staging of rounded columns: [row][16-byte chunk], chunks swizzled so that eight rows of one chunk, and all chunks of
  // neighbouring rows, lie in different banks.
  static constexpr int kChunks = kColumns / 8, kPitch = kColumns * 2;
  static constexpr int kRowStep = kThreads / kChunks, kMine = (Sums::kN + kRowStep - 1) / kRowStep;  // rows of a thread
  __device__ __forceinline__ std::uint32_t chunk_at(int row, int chunk) const {
    return staging_ + row * kPitch + (chunk ^ row / (8 / kChunks) % kChunks) * 16;
  }

  // Columns kColumns * part and on, of all rows. A warp has 16 columns of each half of the tile.
  __device__ __forceinline__ void stage_columns(int part) const {
    constexpr int kWarpsAPart = kColumns / 16;
    const int lane = thread_ % 32, half = part * kColumns / 64;
    if (kWarpsAPart < kWarps && thread_ / 32 / kWarpsAPart != part % 2) return;
    const std::uint32_t to = chunk_at(lane / 16 * 8 + lane % 8, thread_ / 32 % kWarpsAPart * 2 + lane / 8 % 2);
#pragma unroll
    for (int j = 0; j < Sums::kFragmentsN; j += 2) {
      if (8 * j >= view_.tile.m_left) continue;
      std::uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 v = sums_.pair(2 * half + i % 2, j + i / 2);
        words[i] = pack(v.x, v.y, Element{});
      }
      ptx::stmatrix_x4_turned(to + j * 8 * kPitch, words);
    }
  }

  // The memory row of D for the thread's row i, -1: not stored; and whether it gets zeros. All are looked up before the first
  // store, so that their latencies overlap.
  __device__ __forceinline__ void find_row(int i, std::int32_t* to, unsigned* zeros) const {
    const Epilogue& e = view_.call.epilogue;
    const int row = thread_ / kChunks + i * kRowStep;
    *to = -1;
    if (row >= view_.tile.m_left) return;
    const std::int64_t r = view_.sorted_row(row);
    const bool live = view_.row_valid(r);
    *zeros |= static_cast<unsigned>(!live) << i;
    if (live || !e.keep_invalid) *to = e.d_rows != nullptr ? __ldg(e.d_rows + r) : view_.tile.m0 + row;
  }

  template <bool weighted>
  __device__ __forceinline__ void store_columns(int part, const std::int32_t (&to)[kMine], unsigned zeros) const {
    constexpr int kBatch = 3;  // rows under way at once
    const int chunk = thread_ % kChunks, column = part * kColumns + chunk * 8;
    if (column >= view_.tile.n_left) return;
    const GroupDesc& d = view_.tile.desc;
    char* const base = static_cast<char*>(d.d) + (std::int64_t{view_.tile.n0} + column) * 2;
    const auto pitch = static_cast<std::uint32_t>(d.ldd * 2);
#pragma unroll
    for (int first = 0; first < kMine; first += kBatch) {
      std::uint32_t words[kBatch][4];
#pragma unroll
      for (int u = 0; u < kBatch; ++u)
        if (first + u < kMine)
          ptx::load_shared_16(words[u], chunk_at(min(thread_ / kChunks + (first + u) * kRowStep, Sums::kN - 1), chunk));
#pragma unroll
      for (int u = 0; u < kBatch; ++u) {
        const int i = first + u;
        if (i >= kMine) continue;
        if (to[i] < 0) continue;
        if (weighted) weigh(i, words[u]);
        ptx::store_global_16(base + std::uint64_t{static_cast<std::uint32_t>(to[i])} * pitch, words[u]);
      }
    }
    if (zeros == 0) return;
    constexpr std::uint32_t kZero[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < kMine; ++i)
      if ((zeros >> i & 1) != 0 && to[i] >= 0)
        ptx::store_global_16(base + std::uint64_t{static_cast<std::uint32_t>(to[i])} * pitch, kZero);
  }

  __device__ __forceinline__ void weigh(int i, std::uint32_t (&words)[4]) const {
    const float weight = view_.row_weight(view_.sorted_row(thread_ / kChunks + i * kRowStep));
#pragma unroll
    for (std::uint32_t& word : words) {
      const float2 v = unpack(word, Element{});
      word = pack(__fmul_rn(weight, v.x), __fmul_rn(weight, v.y), Element{});
    }
  }

  // The ordered combine (ordered_rows.cuh) of products rounded to Element, into float32 sums aligned to 16 bytes.
  __device__ __forceinline__ bool is_plain_ordered() const {
    const Epilogue& e = view_.call.epilogue;
    return e.kind == EpilogueKind::ordered && e.only_rounds(kTypeOf<Element>) && e.product_type == kTypeOf<Element> &&
           fours_aligned(e.sums, e.sums_ld, Type::float32) && (view_.tile.n_left % 8 == 0 || view_.tile.n_left >= kTileColumns);
  }

  // In rounds: all rows of the tile whose turn has come, until none is left. No row keeps another of the tile from being looked
  // at, so the lowest unfinished row of a column always is. A lane speaks for one or two of its warp's rows.
  __device__ __forceinline__ void store_ordered() const {
    const Epilogue& e = view_.call.epilogue;
    const int lane = thread_ % 32;
    OwnRows own{{-1, -1}, {0, 0}, {1.0f, 1.0f}};
    unsigned pending = 0, ready = 0;  // bits of the lane's two rows
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = row_of(32 * h + lane);
      if (32 * h + lane >= kMine * kGroups || row >= view_.tile.m_left) continue;
      const std::int64_t r = view_.sorted_row(row);
      if (!view_.row_valid(r)) continue;
      own.token[h] = __ldg(e.row_token + r);
      own.turn[h] = __ldg(e.row_turn + r);
      own.weight[h] = view_.row_weight(r);
      pending |= static_cast<unsigned>(own.token[h] >= 0) << h;
    }
    while (ptx::named_any(barrier_, kThreads, pending != 0)) {
      ready = 0;
#pragma unroll
      for (int h = 0; h < 2; ++h)
        if ((pending >> h & 1) != 0 && (own.turn[h] == 0 || ptx::peek_turn(counter(own.token[h])) == own.turn[h]))
          ready |= 1u << h;
      ptx::fence_turns();
      __syncwarp();  // orders the other lanes' reads behind the fence
      if (!ptx::named_any(barrier_, kThreads, ready != 0)) {
        __nanosleep(64);
        continue;
      }
#pragma unroll 1
      for (int part = 0; part < 128 / kColumns; ++part) {
        if (part > 0) ptx::named_sync(barrier_, kThreads);  // the staging has been read
#pragma unroll
        for (int p = 0; p < 128 / kColumns; ++p)
          if (p == part) stage_columns(p);
        ptx::named_sync(barrier_, kThreads);
        add_columns(part, own, ready);
      }
      __syncwarp();  // all lanes of a row have stored before its turn is passed on
      ptx::fence_turns();
#pragma unroll
      for (int h = 0; h < 2; ++h)
        if ((ready >> h & 1) != 0) ptx::put_turn(counter(own.token[h]), static_cast<std::uint16_t>(own.turn[h] + 1));
      pending &= ~ready;
    }
  }

  // Rows of a warp: kGroups at a time, row q of them.
  static constexpr int kGroups = 32 / kChunks;
  static_assert(kMine * kGroups <= 64, "a lane speaks for two rows at most");
  __device__ __forceinline__ int row_of(int q) const { return thread_ / 32 * kGroups + q % kGroups + q / kGroups * kRowStep; }

  struct OwnRows {
    std::int32_t token[2], turn[2];
    float weight[2];
  };
  __device__ __forceinline__ std::uint16_t* counter(std::int32_t token) const {
    const Epilogue& e = view_.call.epilogue;
    return e.turns + std::int64_t{token} * e.turn_tiles + view_.tile.n0 / kTileColumns;
  }

  // Where eight columns of one row go, and what is there already.
  struct OldSums {
    float4* to;  // nullptr: the row is not ready
    float4 sums[2];
    float weight;
    bool starts;
  };
  // The thread's row i. Past L1: another multiprocessor wrote the sums.
  __device__ __forceinline__ OldSums old_sums(int i, int column, const OwnRows& own, unsigned ready) const {
    const Epilogue& e = view_.call.epilogue;
    const int h = i * kGroups / 32, from = (i * kGroups + thread_ % 32 / kChunks) % 32;
    const std::int32_t token = __shfl_sync(0xffffffffu, h == 0 ? own.token[0] : own.token[1], from);
    const std::int32_t turn = __shfl_sync(0xffffffffu, h == 0 ? own.turn[0] : own.turn[1], from);
    OldSums old;
    old.weight = __shfl_sync(0xffffffffu, h == 0 ? own.weight[0] : own.weight[1], from);
    old.starts = turn == 0;
    const bool live = (__shfl_sync(0xffffffffu, ready, from) >> h & 1) != 0 && column < view_.tile.n_left;
    float* const base = static_cast<float*>(e.sums) + view_.tile.n0 + column;
    old.to = live ? reinterpret_cast<float4*>(base + std::int64_t{token} * e.sums_ld) : nullptr;
    if (live && !old.starts)
#pragma unroll
      for (int half = 0; half < 2; ++half) old.sums[half] = __ldcg(old.to + half);
    return old;
  }

  // Adds the staged columns to the rows that are ready. The old sums of the next row are under way meanwhile.
  __device__ __forceinline__ void add_columns(int part, const OwnRows& own, unsigned ready) const {
    const int chunk = thread_ % kChunks, column = part * kColumns + chunk * 8;
    OldSums old = old_sums(0, column, own, ready);
#pragma unroll 1
    for (int i = 0; i < kMine; ++i) {
      const OldSums next = old_sums(min(i + 1, kMine - 1), column, own, i + 1 < kMine ? ready : 0);
      if (old.to != nullptr) {
        std::uint32_t words[4];
        ptx::load_shared_16(words, chunk_at(thread_ / kChunks + i * kRowStep, chunk));
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float2 a = weighted(words[2 * half], old.weight), b = weighted(words[2 * half + 1], old.weight);
          const float4 was = old.sums[half];
          const float4 sum = make_float4(add_rn(was.x, a.x), add_rn(was.y, a.y), add_rn(was.z, b.x), add_rn(was.w, b.y));
          __stcg(old.to + half, old.starts ? make_float4(a.x, a.y, b.x, b.y) : sum);
        }
      }
      old = next;
    }
  }

  // Two rounded products times the row's weight, if there are weights.
  __device__ __forceinline__ float2 weighted(std::uint32_t word, float weight) const {
    const float2 v = unpack(word, Element{});
    return view_.call.epilogue.row_weight == nullptr ? v : make_float2(__fmul_rn(weight, v.x), __fmul_rn(weight, v.y));
  }

  static constexpr int kDotRows = 16, kDotPasses = kRows / kDotRows;  // rows at a time, and how often until new ones are staged
  __device__ __forceinline__ void store_dots_by_words() {
    const int lane = thread_ % 32, block = lane / 4 % 2 * kDotBlock, l = lane % 4, own = thread_ / 32 * 4 + lane / 8;
    const auto row_of = [&](int pass) {
      const TileView<float> whole{view_.call, view_.tile, view_.staging};
      return static_cast<std::int32_t>(dot_row(whole, pass * kDotRows + own, view_.tile.m_left));
    };
    std::int32_t x_row = row_of(0), next_row = row_of(1);
    std::uint32_t words[kDotWords];
    load_dot_words(view_, block, l, x_row, words);
#pragma unroll 1
    for (int pass = 0; pass * kDotRows < view_.tile.m_left; ++pass) {
      if (pass % kDotPasses == 0) {
        view_.row0 = pass * kDotRows;
        stage_rows(pass / kDotPasses);
      }
      const int i = pass % kDotPasses * kDotRows + own;
      store_dot(view_, i, block, l, x_row >= 0, dot_words(view_, i, block, l, words));
      load_dot_words(view_, block, l, next_row, words);
      x_row = next_row;
      next_row = row_of(pass + 2);
    }
  }

  __device__ __forceinline__ void store_general() {
    const bool ordered = view_.call.epilogue.kind == EpilogueKind::ordered;
#pragma unroll 1
    for (int part = 0; part * kRows < view_.tile.m_left; ++part) {
      view_.row0 = part * kRows;
      stage_rows(part);
      if (Sums::kOverRows && ordered)
        ordered_rows<float, kRows, kWarps>(view_);
      else
        store_rows<float, kRows, kWarps>(view_);
    }
  }

  // Float32 rows kRows * part and on. The registers that hold them are other ones in each part, so each has code of its own;
  // what is done with the rows has not.
  __device__ __forceinline__ void stage_rows(int part) const {
    ptx::named_sync(barrier_, kThreads);  // the staging has been read
#pragma unroll
    for (int p = 0; p < (Sums::kN + kRows - 1) / kRows; ++p)
      if (p == part) stage_part(p);
    ptx::named_sync(barrier_, kThreads);
  }

  __device__ __forceinline__ void stage_part(int part) const {
    float* staging = const_cast<float*>(view_.staging);
    const int row = thread_ % 4 * 2;
#pragma unroll
    for (int j = 0; j < kRows / 8; ++j) {
      if (part * kRows / 8 + j >= Sums::kFragmentsN) continue;
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        const float2 v = sums_.pair(u, part * (kRows / 8) + j);
        float* to = staging + (8 * j + row) * kStagingPitch + Sums::row(u, thread_);
        to[0] = v.x;
        to[kStagingPitch] = v.y;
      }
    }
  }

  TileView<float> view_;
  const Sums& sums_;
  std::uint32_t staging_;
  int barrier_, thread_;
};

}  // namespace ggm::cuda
