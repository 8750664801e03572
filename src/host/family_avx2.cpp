// AVX2 (with F16C and FMA, which every AVX2 processor has): 32-byte vectors, 6 x 16 floats a micro-tile in 12 of 16 registers.
#if defined(__x86_64__)
#include "ggm/ggm.h"
#include "host/family_f16c.h"
#include "host/family_kernels.h"

namespace ggm::host {

const Family kAvx2Family = {GGM_KERNELS_HOST_AVX2,      "avx2",
                            single_kernels<32, 6, 2>(), twice_kernels<32, 6, 2>(),
                            float_from_bfloat16,        float_from_float16,
                            bfloat16_from_float,        float16_from_float};

}  // namespace ggm::host
#endif
