// Operands of a product and their packing into panels: where types, storage orders, gathered rows, missing rows and scaling
// end, so that the micro-kernels see one form.
#pragma once

#include "host/elements.h"
#include "problem/problem.h"

namespace ggm::host {

// A matrix X(outer, inner) of one group; outer is i for A and j for B.
//   inner_contiguous:  X(o, kk) = data[row(o) * ld + kk]
//   inner_strided:     X(o, kk) = scale ? round_to(type, scale[kk] * data[row(kk) * ld + o]) : data[row(kk) * ld + o]
// row(r) is rows[r], or r without `rows`. Where it, or valid[r], is negative, the row reads as zeros and is never touched.
struct Operand {
  const void* data = nullptr;
  Type type = Type::none;
  std::int64_t ld = 0;
  Order order = Order::inner_contiguous;
  const std::int32_t* rows = nullptr;
  const std::int32_t* valid = nullptr;
  const void* scale = nullptr;  // of the accumulator type, strided form only

  std::int64_t row(std::int64_t r) const {
    if (valid != nullptr && valid[r] < 0) return -1;
    return rows == nullptr ? r : rows[r];
  }
};

// Packs outer0 .. +outer by inner0 .. +inner into panels of `panel` outer elements:
// out[(p * inner + kk) * panel + i] = X(outer0 + p * panel + i, inner0 + kk), zero beyond `outer`.
// inner <= kHostBlocking.inner, outer <= kHostBlocking.columns.
template <typename T>
void pack(const Family& family, const Operand& x, std::int64_t outer0, int outer, std::int64_t inner0, int inner, int panel,
          T* out);

}  // namespace ggm::host
