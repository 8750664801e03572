// Small CUDA kernels for the cases that need a GPU: delays, integer inputs by rule, exact checks of results too large to copy
// back, and dense counting of different bytes. Plain one-thread-an-element loops, written apart from the library. All of them
// only enqueue work on `stream`; counters are device memory that the caller clears and reads.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ggm_test::cases {

// Keeps one block busy for that long.
void enqueue_spin(double milliseconds, cudaStream_t stream);

// Fills [rows, cols] of a floating type, rows `ld` elements apart, with P(first_row + r, c) of tests/support/inputs.h.
void enqueue_rows(void* to, std::int32_t type, std::int64_t rows, std::int64_t cols, std::int64_t ld, std::int64_t first_row,
                  cudaStream_t stream);
// Fills [experts, n, k] with Q(e, n, k), experts `stride` elements apart; sign_only keeps the sign alone (-1, 0, 1).
void enqueue_weights(void* to, std::int32_t type, std::int64_t experts, std::int64_t n, std::int64_t k, std::int64_t stride,
                     bool sign_only, cudaStream_t stream);
// Sets element (r, column) of `rows` rows `ld` apart to `value`, where column is r mod `period` (0: column 0).
void enqueue_points(void* to, std::int32_t type, std::int64_t rows, std::int64_t ld, std::int64_t period, float value,
                    cudaStream_t stream);
// Multiplies all elements by -1.
void enqueue_negate(void* data, std::int32_t type, std::int64_t count, cudaStream_t stream);

// Adds to *wrong the number of bytes in which the two differ (counted as 4-byte words, `bytes` a multiple of 4, plus a tail).
void enqueue_compare(const void* got, const void* want, std::int64_t bytes, unsigned long long* wrong, cudaStream_t stream);

// One product of groups given by device offsets [groups + 1], inputs integers so that every sum is exact: counts into *wrong
// the elements of D whose bits differ from the exact sum rounded once to d_type.
struct ProductCheck {
  std::int32_t type, d_type;
  std::int64_t groups, rows, m, n, k;  // contiguous: D [rows, n], k inner; variable K: D [groups, m, n] over the rows
  const void* a;
  const void* b;
  const void* d;
  std::int64_t ldd;  // contiguous only
  const std::int32_t* offsets;
};
void enqueue_check_contiguous(const ProductCheck& check, unsigned long long* wrong, cudaStream_t stream);
void enqueue_check_variable_k(const ProductCheck& check, unsigned long long* wrong, cudaStream_t stream);

// Column sums of a [rows, cols] tensor as int64 (elements are integers).
void enqueue_column_sums(const void* data, std::int32_t type, std::int64_t rows, std::int64_t cols, long long* sums,
                         cudaStream_t stream);

// Copies `words` 4-byte words, then overwrites the source with `poison`; starts early and waits first, so that a neighbour on
// the stream that does not wait for it reads too early.
void enqueue_late_copy(std::uint32_t* to, const std::uint32_t* from, std::int64_t words, double wait_ms, cudaStream_t stream);

}  // namespace ggm_test::cases
