// Asynchronous copies from global to shared memory (PTX ISA, "cp.async", capability 8.0). Bytes of the destination beyond
// `bytes` are zeroed and the source beyond them is not read; bytes == 0 reads nothing.
#pragma once

#include <cstdint>

#include "cuda/device/ptx/cache_policy.cuh"

namespace ggm::cuda::ptx {

__device__ __forceinline__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

// 16 bytes past L1: operand tiles are reused through shared memory, not through L1. Both addresses are multiples of 16.
__device__ __forceinline__ void cp_async_16(std::uint32_t to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

// 16 whole bytes or, when `live` is 0, 16 zero bytes without reading: a predicate costs less than a count. The hint brings the
// other half of a 128-byte line into L2, where the next step of K finds it. `once`: see read_once.
template <bool once = false>
__device__ __forceinline__ void cp_async_16_if(unsigned live, std::uint32_t to, const void* from) {
  if constexpr (once) {
    asm volatile(
        "{\n"
        " .reg .pred ignored;\n"
        " setp.eq.u32 ignored, %2, 0;\n"
        " cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, ignored, %3;\n"
        "}" ::"r"(to),
        "l"(from), "r"(live), "l"(read_once())
        : "memory");
    return;
  }
  asm volatile(
      "{\n"
      " .reg .pred ignored;\n"
      " setp.eq.u32 ignored, %2, 0;\n"
      " cp.async.cg.shared.global.L2::128B [%0], [%1], 16, ignored;\n"
      "}" ::"r"(to),
      "l"(from), "r"(live)
      : "memory");
}

// The same for row `row` of a matrix.
__device__ __forceinline__ void cp_async_16_if(unsigned live, std::uint32_t to, std::uint32_t row, std::uint32_t ld_bytes,
                                               const void* from) {
  asm volatile(
      "{\n"
      " .reg .pred ignored;\n"
      " .reg .b64 source;\n"
      " setp.eq.u32 ignored, %4, 0;\n"
      " mad.wide.u32 source, %2, %3, %1;\n"
      " cp.async.cg.shared.global.L2::128B [%0], [source], 16, ignored;\n"
      "}" ::"r"(to),
      "l"(from), "r"(row), "r"(ld_bytes), "r"(live)
      : "memory");
}

// The same, zero bytes when the row is negative.
__device__ __forceinline__ void cp_async_16_row(std::int32_t row, std::uint32_t ld_bytes, std::uint32_t to, const void* from) {
  asm volatile(
      "{\n"
      " .reg .pred ignored;\n"
      " .reg .b64 source;\n"
      " .reg .b32 some;\n"
      " setp.lt.s32 ignored, %2, 0;\n"
      " max.s32 some, %2, 0;\n"
      " mad.wide.u32 source, some, %3, %1;\n"
      " cp.async.cg.shared.global.L2::128B [%0], [source], 16, ignored;\n"
      "}" ::"r"(to),
      "l"(from), "r"(row), "r"(ld_bytes)
      : "memory");
}

// Moves a source on, here and now: the compiler does not make sums of it that it finds anew for every copy.
__device__ __forceinline__ void advance(const char** from, std::int64_t bytes) {
  asm volatile("add.s64 %0, %0, %1;" : "+l"(*from) : "l"(bytes));
}

// 4 bytes; neighbours of the same row come as separate copies, so L1 merges them. Both addresses are multiples of 4.
__device__ __forceinline__ void cp_async_4(std::uint32_t to, const void* from, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `pending` of this thread's newest groups are unfinished.
template <int pending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

__device__ __forceinline__ void prefetch_l1(const void* from) {
  asm volatile("prefetch.global.L1 [%0];" ::"l"(from) : "memory");
}

// Ordinary accesses by shared-memory address.
__device__ __forceinline__ void load_shared_16(std::uint32_t (&words)[4], std::uint32_t from) {
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(from)
               : "memory");
}

__device__ __forceinline__ void store_shared_16(std::uint32_t to, const std::uint32_t (&words)[4]) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}

__device__ __forceinline__ void store_global_16(void* to, const std::uint32_t (&words)[4]) {
  asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}

__device__ __forceinline__ void load_shared_16(float (&values)[4], std::uint32_t from) {
  asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
               : "r"(from)
               : "memory");
}

__device__ __forceinline__ void store_shared_16(std::uint32_t to, const float (&values)[4]) {
  asm volatile("st.shared.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(to), "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3])
               : "memory");
}

__device__ __forceinline__ std::uint64_t load_shared_8(std::uint32_t from) {
  std::uint64_t word;
  asm volatile("ld.shared.u64 %0, [%1];" : "=l"(word) : "r"(from) : "memory");
  return word;
}

__device__ __forceinline__ std::uint32_t load_shared_word(std::uint32_t from) {
  std::uint32_t word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
  return word;
}

__device__ __forceinline__ void store_shared_word(std::uint32_t to, std::uint32_t word) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(word) : "memory");
}

__device__ __forceinline__ float load_shared_4(std::uint32_t from) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(from) : "memory");
  return value;
}

__device__ __forceinline__ void store_shared_4(std::uint32_t to, float value) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(value) : "memory");
}

__device__ __forceinline__ void store_shared_2(std::uint32_t to, unsigned short value) {
  asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"(value) : "memory");
}

}  // namespace ggm::cuda::ptx
