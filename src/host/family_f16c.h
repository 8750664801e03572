// float16 conversions by the F16C instructions, for the AVX2 and AVX-512 families. Internal linkage, see family.h.
#pragma once

#include <immintrin.h>

#include "host/family.h"

namespace ggm::host {
namespace {

void float_from_float16(const std::uint16_t* in, std::int64_t n, float* out) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  if (i == n) return;
  std::uint16_t tail[8] = {};
  float converted[8];
  for (std::int64_t j = i; j < n; ++j) tail[j - i] = in[j];
  _mm256_storeu_ps(converted, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(tail))));
  for (std::int64_t j = i; j < n; ++j) out[j] = converted[j - i];
}

// The instruction would keep a NaN's payload; the library has one NaN, 0x7fff.
inline __m128i float16_bits(__m256 v) {
  const __m256 one_nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffe000));
  const __m256 unordered = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
  return _mm256_cvtps_ph(_mm256_blendv_ps(v, one_nan, unordered), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

void float16_from_float(const float* in, std::int64_t n, std::uint16_t* out) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), float16_bits(_mm256_loadu_ps(in + i)));
  if (i == n) return;
  float tail[8] = {};
  std::uint16_t converted[8];
  for (std::int64_t j = i; j < n; ++j) tail[j - i] = in[j];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(converted), float16_bits(_mm256_loadu_ps(tail)));
  for (std::int64_t j = i; j < n; ++j) out[j] = converted[j - i];
}

}  // namespace
}  // namespace ggm::host
