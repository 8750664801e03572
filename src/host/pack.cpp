#include "host/pack.h"

#include "plan/host_config.h"

namespace ggm::host {
namespace {

constexpr int kMaxPanel = 32;
constexpr int kSlice = 64;  // inner elements converted at a time: 32 rows of them stay in the first-level cache

static_assert(kHostBlocking.columns <= kRun && kHostBlocking.rows <= kRun && kHostBlocking.inner <= kRun,
              "packing holds one row of a block in a buffer of kRun elements");

// Panels of an operand whose rows run along the inner dimension: rows become columns.
template <typename T>
void pack_contiguous(const Family& family, const Operand& x, std::int64_t outer0, int outer, std::int64_t inner0, int inner,
                     int panel, T* out) {
  static const T zeros[kRun] = {};
  const bool direct = x.type == kTypeOf<T>;
  T converted[kMaxPanel][kSlice];
  for (int first = 0; first < outer; first += panel, out += static_cast<std::int64_t>(panel) * inner) {
    std::int64_t row[kMaxPanel];
    for (int i = 0; i < panel; ++i) row[i] = first + i < outer ? x.row(outer0 + first + i) : -1;
    const int step = direct ? inner : kSlice;
    for (int done = 0; done < inner; done += step) {
      const int count = inner - done < step ? inner - done : step;
      const T* source[kMaxPanel];
      for (int i = 0; i < panel; ++i) {
        if (row[i] < 0)
          source[i] = zeros;
        else
          source[i] = view(family, x.type, x.data, row[i] * x.ld + inner0 + done, count, direct ? nullptr : converted[i]);
      }
      family.micro<T>().interleave(source, panel, count, panel, out + static_cast<std::int64_t>(done) * panel);
    }
  }
}

template <typename T, int kPanel>
void spread(const T* values, int outer, std::int64_t panel_stride, T* out) {
  int o = 0;
  for (; o + kPanel <= outer; o += kPanel, out += panel_stride) std::memcpy(out, values + o, kPanel * sizeof(T));
  for (; o < outer; ++o) *out++ = values[o];
}

// One inner step: consecutive outer elements go to consecutive panels. A copy of a known length is a few instructions.
template <typename T>
void spread(const T* values, int outer, int panel, std::int64_t panel_stride, T* out) {
  switch (panel) {
    case 32: return spread<T, 32>(values, outer, panel_stride, out);
    case 16: return spread<T, 16>(values, outer, panel_stride, out);
    case 12: return spread<T, 12>(values, outer, panel_stride, out);
    case 8: return spread<T, 8>(values, outer, panel_stride, out);
    case 6: return spread<T, 6>(values, outer, panel_stride, out);
    default: return spread<T, 4>(values, outer, panel_stride, out);
  }
}

// Panels of an operand whose rows run along the outer dimension.
template <typename T>
void pack_strided(const Family& family, const Operand& x, std::int64_t outer0, int outer, std::int64_t inner0, int inner,
                  int panel, T* out) {
  const std::int64_t panel_stride = static_cast<std::int64_t>(panel) * inner;
  const int padded = (outer + panel - 1) / panel * panel;
  T buffer[kRun + kMaxPanel] = {};
  for (int kk = 0; kk < inner; ++kk, out += panel) {
    const std::int64_t row = x.row(inner0 + kk);
    if (row < 0) {
      for (int o = 0; o < padded; o += panel) std::memset(out + o / panel * panel_stride, 0, panel * sizeof(T));
      continue;
    }
    const T* values = view(family, x.type, x.data, row * x.ld + outer0, outer, buffer);
    if (x.scale != nullptr) {
      const T factor = static_cast<const T*>(x.scale)[inner0 + kk];
      for (int o = 0; o < outer; ++o) buffer[o] = factor * values[o];
      round_to(family, x.type, outer, buffer);
      values = buffer;
    }
    spread(values, outer, panel, panel_stride, out);
    for (int o = outer; o < padded; ++o) out[o / panel * panel_stride + o % panel] = 0;
  }
}

}  // namespace

template <typename T>
void pack(const Family& family, const Operand& x, std::int64_t outer0, int outer, std::int64_t inner0, int inner, int panel,
          T* out) {
  if (x.order == Order::inner_contiguous)
    pack_contiguous(family, x, outer0, outer, inner0, inner, panel, out);
  else
    pack_strided(family, x, outer0, outer, inner0, inner, panel, out);
}

template void pack<float>(const Family&, const Operand&, std::int64_t, int, std::int64_t, int, int, float*);
template void pack<double>(const Family&, const Operand&, std::int64_t, int, std::int64_t, int, int, double*);

}  // namespace ggm::host
