// AVX-512 F, BW, DQ, VL: 64-byte vectors, 12 x 32 floats a micro-tile in 24 of 32 registers.
#if defined(__x86_64__)
#include "ggm/ggm.h"
#include "host/family_f16c.h"
#include "host/family_kernels.h"

namespace ggm::host {

const Family kAvx512Family = {
    GGM_KERNELS_HOST_AVX512, "avx512",           single_kernels<64, 12, 2>(), twice_kernels<64, 12, 2>(),
    float_from_bfloat16,     float_from_float16, bfloat16_from_float,         float16_from_float};

}  // namespace ggm::host
#endif
