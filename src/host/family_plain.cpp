// The family that every x86-64 (and any other) processor runs: 16-byte vectors, 4 x 8 floats a micro-tile.
#include "base/convert.h"
#include "ggm/ggm.h"
#include "host/family_kernels.h"

namespace ggm::host {
namespace {

// Branch-free form of float16_to_float, so that it becomes vector code.
void float_from_float16(const std::uint16_t* in, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t half = in[i];
    const std::uint32_t exponent = half & 0x7c00u;
    const std::uint32_t normal = ((half & 0x7fffu) << 13) + (112u << 23);
    const std::uint32_t special = normal + (112u << 23);  // infinity or NaN: exponent 255
    const float tiny = static_cast<float>(static_cast<std::int32_t>(half & 0x3ffu)) * 0x1p-24f;
    const std::uint32_t magnitude = exponent == 0 ? float_to_bits(tiny) : exponent == 0x7c00u ? special : normal;
    out[i] = bits_to_float(magnitude | ((half & 0x8000u) << 16));
  }
}

void float16_from_float(const float* in, std::int64_t n, std::uint16_t* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = float_to_float16(in[i]);
}

}  // namespace

const Family kPlainFamily = {GGM_KERNELS_HOST_PLAIN,     "plain",
                             single_kernels<16, 4, 2>(), twice_kernels<16, 4, 2>(),
                             float_from_bfloat16,        float_from_float16,
                             bfloat16_from_float,        float16_from_float};

}  // namespace ggm::host
