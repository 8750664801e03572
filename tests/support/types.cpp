#include "support/types.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace ggm_test {
namespace {

// A 16-bit format with `mantissa` stored bits and exponent bias `bias`; all-ones exponent is infinity or NaN.
struct Format {
  int mantissa, bias, exponent_max;  // largest exponent of a finite number
};
constexpr Format kBfloat16{7, 127, 127};
constexpr Format kFloat16{10, 15, 15};

std::uint64_t encode16(const Format& f, double value) {
  const std::uint64_t sign = std::signbit(value) ? 0x8000u : 0u;
  const std::uint64_t infinity = (std::uint64_t{1} << 15) - (std::uint64_t{1} << f.mantissa);
  if (std::isnan(value)) return sign | infinity | (std::uint64_t{1} << (f.mantissa - 1));
  double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude)) return sign | infinity;
  int exponent;
  std::frexp(magnitude, &exponent);  // magnitude = m * 2^exponent, 0.5 <= m < 1
  --exponent;
  const int lowest = 1 - f.bias;
  if (exponent < lowest) exponent = lowest;
  // In units of the last place, so that rounding to an integer is rounding to the format.
  const double units = std::nearbyint(std::ldexp(magnitude, f.mantissa - exponent));
  // units may reach 2^(mantissa+1): adding it to the exponent field carries correctly into the next binade.
  const std::uint64_t field = static_cast<std::uint64_t>(exponent - lowest) << f.mantissa;
  const std::uint64_t bits = field + static_cast<std::uint64_t>(units);
  return sign | (bits >= infinity ? infinity : bits);
}

double decode16(const Format& f, std::uint64_t bits) {
  const double sign = bits & 0x8000u ? -1.0 : 1.0;
  const int exponent = static_cast<int>((bits & 0x7FFFu) >> f.mantissa);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << f.mantissa) - 1);
  if (exponent == f.bias + f.exponent_max + 1)
    return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  const std::uint64_t units = exponent ? fraction + (std::uint64_t{1} << f.mantissa) : fraction;
  return sign * std::ldexp(static_cast<double>(units), (exponent ? exponent : 1) - f.bias - f.mantissa);
}

}  // namespace

int bytes_of(std::int32_t type) {
  switch (type) {
    case GGM_TYPE_BFLOAT16:
    case GGM_TYPE_FLOAT16: return 2;
    case GGM_TYPE_FLOAT64:
    case kInt64: return 8;
    default: return 4;
  }
}

const char* name_of(std::int32_t type) {
  switch (type) {
    case GGM_TYPE_DEFAULT: return "none";
    case GGM_TYPE_FLOAT32: return "f32";
    case GGM_TYPE_BFLOAT16: return "bf16";
    case GGM_TYPE_FLOAT16: return "f16";
    case GGM_TYPE_FLOAT64: return "f64";
    case kInt32: return "i32";
    case kInt64: return "i64";
    case kUint32: return "u32";
    default: return "unknown";
  }
}

std::uint64_t encode(std::int32_t type, double value) {
  switch (type) {
    case GGM_TYPE_BFLOAT16: return encode16(kBfloat16, value);
    case GGM_TYPE_FLOAT16: return encode16(kFloat16, value);
    case GGM_TYPE_FLOAT64: {
      std::uint64_t bits;
      std::memcpy(&bits, &value, 8);
      return bits;
    }
    case kInt32: return static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
    case kInt64: return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
    case kUint32: return static_cast<std::uint32_t>(value);
    default: {
      const float narrow = static_cast<float>(value);
      std::uint32_t bits;
      std::memcpy(&bits, &narrow, 4);
      return bits;
    }
  }
}

double decode(std::int32_t type, std::uint64_t bits) {
  switch (type) {
    case GGM_TYPE_BFLOAT16: return decode16(kBfloat16, bits);
    case GGM_TYPE_FLOAT16: return decode16(kFloat16, bits);
    case GGM_TYPE_FLOAT64: {
      double value;
      std::memcpy(&value, &bits, 8);
      return value;
    }
    case kInt32: return static_cast<std::int32_t>(bits);
    case kInt64: return static_cast<double>(static_cast<std::int64_t>(bits));
    case kUint32: return static_cast<std::uint32_t>(bits);
    default: {
      const std::uint32_t narrow = static_cast<std::uint32_t>(bits);
      float value;
      std::memcpy(&value, &narrow, 4);
      return value;
    }
  }
}

double round_to(std::int32_t type, double value) {
  if (type == GGM_TYPE_DEFAULT || type == GGM_TYPE_FLOAT64) return value;
  if (type == GGM_TYPE_FLOAT32) return static_cast<float>(value);
  return decode(type, encode(type, value));
}

}  // namespace ggm_test
