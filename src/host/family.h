// The instruction-set families of the host backend: plain x86-64, AVX2, AVX-512. A family is a table of small kernels; which
// one a backend uses is chosen at run time. All families give the same bits: every element is acc = acc + a*b with the product
// rounded before the addition, in ascending order of the inner index, and conversions are the same functions. NOTE: the
// family's own sources (family_*.cpp) are compiled with options of their instruction set, so they include nothing but this
// header and headers whose functions have internal linkage; an inline function shared with other sources could be merged by the
// linker into the copy that needs AVX-512.
#pragma once

#include <cstdint>

namespace ggm::host {

template <typename T>
struct MicroKernels {
  int rows;     // outer elements of one packed panel of A
  int columns;  // outer elements of one packed panel of B

  // tile(i, j) = [tile(i, j) if add, else 0] + sum over kk ascending of a[kk * rows + i] * b[kk * columns + j], for
  // i < used_rows and all j < columns.
  void (*multiply)(int used_rows, std::int64_t inner, bool add, const T* a, const T* b, T* tile, std::int64_t tile_ld);

  // out[kk * panel + i] = in[i][kk] for i < count, kk < inner: `count` rows become columns of a panel.
  void (*interleave)(const T* const* in, int count, std::int64_t inner, int panel, T* out);

  // Inner product of up to 64 columns in the order of section 8 of ggm.h: four sums of fused multiply-adds.
  T (*dot)(const T* u, const T* v, int columns);
};

struct Family {
  std::int32_t id;  // GGM_KERNELS_HOST_*
  const char* name;
  MicroKernels<float> single;
  MicroKernels<double> twice;

  // n elements; exact one way, round to nearest even the other, every NaN becomes 0x7fff.
  void (*float_from_bfloat16)(const std::uint16_t* in, std::int64_t n, float* out);
  void (*float_from_float16)(const std::uint16_t* in, std::int64_t n, float* out);
  void (*bfloat16_from_float)(const float* in, std::int64_t n, std::uint16_t* out);
  void (*float16_from_float)(const float* in, std::int64_t n, std::uint16_t* out);

  template <typename T>
  const MicroKernels<T>& micro() const {
    if constexpr (sizeof(T) == sizeof(float))
      return single;
    else
      return twice;
  }
};

extern const Family kPlainFamily;
#if defined(__x86_64__)
extern const Family kAvx2Family;
extern const Family kAvx512Family;
#endif

// The table of a resolved GGM_KERNELS_HOST_* value; the processor must have it (describe_device has checked).
const Family& family(std::int32_t kernel_family);

}  // namespace ggm::host
