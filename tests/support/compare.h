// Comparing outputs with references: bit for bit, or by the relative Frobenius norm.
#pragma once

#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "support/tensor.h"

namespace ggm_test {

// "" when every element has exactly the bits of `expected` (packed, rounded to the tensor's type; any NaN equals any NaN), else
// the first difference. -0.0 and +0.0 differ.
inline std::string difference(const Tensor& tensor, const std::vector<double>& expected) {
  const Shape& s = tensor.shape();
  std::size_t i = 0;
  if (expected.size() != static_cast<std::size_t>(tensor.size())) return tensor.name() + ": the reference has another size";
  for (std::int64_t b = 0; b < s.batches; ++b)
    for (std::int64_t r = 0; r < s.rows; ++r)
      for (std::int64_t c = 0; c < s.columns; ++c, ++i) {
        const std::uint64_t want = encode(tensor.type(), expected[i]), got = tensor.bits(b, r, c);
        if (want == got) continue;
        const double got_value = decode(tensor.type(), got);
        if (std::isnan(expected[i]) && std::isnan(got_value)) continue;
        std::ostringstream text;
        text.precision(17);
        text << tensor.name() << "[" << b << "," << r << "," << c << "] = " << got_value << " (bits " << std::hex << got
             << std::dec << "), expected " << expected[i] << " (bits " << std::hex << want << ")";
        return text.str();
      }
  return "";
}

// ||got - want|| / ||want|| in the Frobenius norm; infinite when something is not finite. 0 for two zero matrices.
inline double relative_error(const std::vector<double>& got, const std::vector<double>& want) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (!std::isfinite(got[i])) return INFINITY;
    error += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  return error == 0 ? 0 : norm == 0 ? INFINITY : std::sqrt(error / norm);
}

// "" when every element is within relative * magnitude + floor of `want`, else the first that is not. `magnitude` is the same
// reference of absolute values, so the bound scales with what was added up and holds for every shape, however sums cancel.
inline std::string beyond_bound(const Tensor& tensor, const std::vector<double>& want, const std::vector<double>& magnitude,
                                double relative, double floor) {
  const std::vector<double> got = tensor.values();
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::fabs(got[i] - want[i]) <= relative * magnitude[i] + floor) continue;
    std::ostringstream text;
    text.precision(17);
    text << tensor.name() << " element " << i << " = " << got[i] << ", float64 gives " << want[i] << "; the bound is "
         << relative << " * " << magnitude[i] << " + " << floor;
    return text.str();
  }
  return "";
}

// The relative part of that bound: `length` float32 (float64) additions, and the two roundings to 16 bits that a fused result
// may pass (product, result) unless it is float32 throughout.
inline double rounding_bound(std::int32_t in, std::int32_t out, std::int64_t length) {
  const double sums = static_cast<double>(length + 4) * (in == GGM_TYPE_FLOAT64 ? 1.2e-16 : 6e-8);
  if (!is_16bit(out)) return sums;
  return sums + 2.02 * (out == GGM_TYPE_BFLOAT16 ? 1.0 / 256 : 1.0 / 2048);
}
inline double absolute_floor(std::int32_t out) { return out == GGM_TYPE_FLOAT16 ? 1.0 / (1 << 22) : 0.0; }

// The limits of the relative error for random data. `inner` is the length of the sums.
inline double product_limit(std::int32_t in, std::int32_t out, std::int64_t inner) {
  const double length = static_cast<double>(inner);
  if (in == GGM_TYPE_FLOAT64) return 1e-13;
  if (in == GGM_TYPE_FLOAT32) return 2e-6 * std::sqrt(std::fmax(1.0, length / 4096));
  return out == GGM_TYPE_FLOAT32 ? 2e-5 * std::fmax(1.0, length / 16384) : 2e-3;
}
// y and dx of the fused operations, d_weight of 16-bit inputs against plain float64.
inline double fused_limit(std::int32_t in, std::int32_t out, std::int64_t inner) {
  return is_16bit(in) && out != GGM_TYPE_FLOAT32 ? 2.6e-3 : product_limit(in, out, inner);
}

}  // namespace ggm_test
