// wgmma: products of a warpgroup from shared memory into registers (PTX ISA, "Asynchronous warpgroup-level matrix
// instructions", capability 9.0a). The left operand has 64 rows, the right one `columns` of 8 to 192; one instruction adds 16
// products to each sum. Thread 32 w + 4 g + t of the warpgroup holds, of every 8 columns, columns 2t, 2t + 1 of row 16 w + g,
// then of row 16 w + g + 8.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace ggm::cuda::ptx {

// Before the first product, and whenever other code has touched the sums.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most `pending` of the newest groups of products are unfinished.
template <int pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// The sums are read behind this point of the program: a wait says nothing about registers to the compiler.
__device__ __forceinline__ void keep_behind(float (&sums)[4]) {
  asm volatile("" : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]));
}

// Where an operand lies: rows of 128 bytes with the swizzle of 128 bytes, in blocks of eight rows of 1,024 bytes.
// `block_stride`: bytes from 64 columns to the next 64 of an operand whose contiguous direction is not K; of no meaning
// otherwise.
__device__ __forceinline__ std::uint64_t wgmma_operand(std::uint32_t address, std::uint32_t block_stride) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62, kEightRows = std::uint64_t{1024 >> 4} << 32;
  return kSwizzle128 | kEightRows | std::uint64_t{block_stride >> 4} << 16 | (address & 0x3ffff) >> 4;
}

// left_outer, right_outer: 0 when K is the contiguous direction of that operand, 1 when the other one is.
template <typename Element, int columns, int left_outer, int right_outer>
struct Wgmma;

// Registers of the first n groups of 8 columns, as text and as operands.
#define GGM_TEXT_OF_0 "%0, %1, %2, %3"
#define GGM_TEXT_OF_1 ", %4, %5, %6, %7"
#define GGM_TEXT_OF_2 ", %8, %9, %10, %11"
#define GGM_TEXT_OF_3 ", %12, %13, %14, %15"
#define GGM_TEXT_OF_4 ", %16, %17, %18, %19"
#define GGM_TEXT_OF_5 ", %20, %21, %22, %23"
#define GGM_TEXT_OF_6 ", %24, %25, %26, %27"
#define GGM_TEXT_OF_7 ", %28, %29, %30, %31"
#define GGM_TEXT_OF_8 ", %32, %33, %34, %35"
#define GGM_TEXT_OF_9 ", %36, %37, %38, %39"
#define GGM_TEXT_OF_10 ", %40, %41, %42, %43"
#define GGM_TEXT_OF_11 ", %44, %45, %46, %47"
#define GGM_TEXT_OF_12 ", %48, %49, %50, %51"
#define GGM_TEXT_OF_13 ", %52, %53, %54, %55"
#define GGM_TEXT_OF_14 ", %56, %57, %58, %59"
#define GGM_TEXT_OF_15 ", %60, %61, %62, %63"
#define GGM_TEXT_OF_16 ", %64, %65, %66, %67"
#define GGM_TEXT_OF_17 ", %68, %69, %70, %71"
#define GGM_TEXT_OF_18 ", %72, %73, %74, %75"
#define GGM_TEXT_OF_19 ", %76, %77, %78, %79"
#define GGM_TEXT_OF_20 ", %80, %81, %82, %83"
#define GGM_TEXT_OF_21 ", %84, %85, %86, %87"
#define GGM_TEXT_OF_22 ", %88, %89, %90, %91"
#define GGM_TEXT_OF_23 ", %92, %93, %94, %95"
#define GGM_TEXT_1 GGM_TEXT_OF_0
#define GGM_TEXT_2 GGM_TEXT_1 GGM_TEXT_OF_1
#define GGM_TEXT_3 GGM_TEXT_2 GGM_TEXT_OF_2
#define GGM_TEXT_4 GGM_TEXT_3 GGM_TEXT_OF_3
#define GGM_TEXT_5 GGM_TEXT_4 GGM_TEXT_OF_4
#define GGM_TEXT_6 GGM_TEXT_5 GGM_TEXT_OF_5
#define GGM_TEXT_7 GGM_TEXT_6 GGM_TEXT_OF_6
#define GGM_TEXT_8 GGM_TEXT_7 GGM_TEXT_OF_7
#define GGM_TEXT_9 GGM_TEXT_8 GGM_TEXT_OF_8
#define GGM_TEXT_10 GGM_TEXT_9 GGM_TEXT_OF_9
#define GGM_TEXT_11 GGM_TEXT_10 GGM_TEXT_OF_10
#define GGM_TEXT_12 GGM_TEXT_11 GGM_TEXT_OF_11
#define GGM_TEXT_13 GGM_TEXT_12 GGM_TEXT_OF_12
#define GGM_TEXT_14 GGM_TEXT_13 GGM_TEXT_OF_13
#define GGM_TEXT_15 GGM_TEXT_14 GGM_TEXT_OF_14
#define GGM_TEXT_16 GGM_TEXT_15 GGM_TEXT_OF_15
#define GGM_TEXT_17 GGM_TEXT_16 GGM_TEXT_OF_16
#define GGM_TEXT_18 GGM_TEXT_17 GGM_TEXT_OF_17
#define GGM_TEXT_19 GGM_TEXT_18 GGM_TEXT_OF_18
#define GGM_TEXT_20 GGM_TEXT_19 GGM_TEXT_OF_19
#define GGM_TEXT_21 GGM_TEXT_20 GGM_TEXT_OF_20
#define GGM_TEXT_22 GGM_TEXT_21 GGM_TEXT_OF_21
#define GGM_TEXT_23 GGM_TEXT_22 GGM_TEXT_OF_22
#define GGM_TEXT_24 GGM_TEXT_23 GGM_TEXT_OF_23
#define GGM_SUM(i) "+f"(sums[i][0]), "+f"(sums[i][1]), "+f"(sums[i][2]), "+f"(sums[i][3])
#define GGM_SUMS_1 GGM_SUM(0)
#define GGM_SUMS_2 GGM_SUMS_1, GGM_SUM(1)
#define GGM_SUMS_3 GGM_SUMS_2, GGM_SUM(2)
#define GGM_SUMS_4 GGM_SUMS_3, GGM_SUM(3)
#define GGM_SUMS_5 GGM_SUMS_4, GGM_SUM(4)
#define GGM_SUMS_6 GGM_SUMS_5, GGM_SUM(5)
#define GGM_SUMS_7 GGM_SUMS_6, GGM_SUM(6)
#define GGM_SUMS_8 GGM_SUMS_7, GGM_SUM(7)
#define GGM_SUMS_9 GGM_SUMS_8, GGM_SUM(8)
#define GGM_SUMS_10 GGM_SUMS_9, GGM_SUM(9)
#define GGM_SUMS_11 GGM_SUMS_10, GGM_SUM(10)
#define GGM_SUMS_12 GGM_SUMS_11, GGM_SUM(11)
#define GGM_SUMS_13 GGM_SUMS_12, GGM_SUM(12)
#define GGM_SUMS_14 GGM_SUMS_13, GGM_SUM(13)
#define GGM_SUMS_15 GGM_SUMS_14, GGM_SUM(14)
#define GGM_SUMS_16 GGM_SUMS_15, GGM_SUM(15)
#define GGM_SUMS_17 GGM_SUMS_16, GGM_SUM(16)
#define GGM_SUMS_18 GGM_SUMS_17, GGM_SUM(17)
#define GGM_SUMS_19 GGM_SUMS_18, GGM_SUM(18)
#define GGM_SUMS_20 GGM_SUMS_19, GGM_SUM(19)
#define GGM_SUMS_21 GGM_SUMS_20, GGM_SUM(20)
#define GGM_SUMS_22 GGM_SUMS_21, GGM_SUM(21)
#define GGM_SUMS_23 GGM_SUMS_22, GGM_SUM(22)
#define GGM_SUMS_24 GGM_SUMS_23, GGM_SUM(23)

// `groups` of 8 columns; the operands behind the sums have the numbers l, r, lo, ro.
#define GGM_WGMMA(Element, type, columns, groups, l, r, lo, ro)                                                         \
  template <int left_outer, int right_outer>                                                                            \
  struct Wgmma<Element, columns, left_outer, right_outer> {                                                             \
    template <int sum_groups>                                                                                           \
    static __device__ __forceinline__ void add(float (&sums)[sum_groups][4], std::uint64_t left, std::uint64_t right) { \
      static_assert(sum_groups >= groups, "one sum for each row and column");                                           \
      asm volatile(                                                                                                     \
          "{\n.reg .pred add;\nsetp.ne.b32 add, 1, 0;\n"                                                                \
          "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type " {" GGM_TEXT_##groups                  \
          "}, %" #l ", %" #r ", add, 1, 1, %" #lo ", %" #ro ";\n}"                                                      \
          : GGM_SUMS_##groups                                                                                           \
          : "l"(left), "l"(right), "n"(left_outer), "n"(right_outer));                                                  \
    }                                                                                                                   \
  };
#define GGM_WGMMA_BOTH(columns, groups, l, r, lo, ro)             \
  GGM_WGMMA(__nv_bfloat16, "bf16", columns, groups, l, r, lo, ro) \
  GGM_WGMMA(__half, "f16", columns, groups, l, r, lo, ro)

GGM_WGMMA_BOTH(8, 1, 4, 5, 6, 7)
GGM_WGMMA_BOTH(16, 2, 8, 9, 10, 11)
GGM_WGMMA_BOTH(24, 3, 12, 13, 14, 15)
GGM_WGMMA_BOTH(32, 4, 16, 17, 18, 19)
GGM_WGMMA_BOTH(40, 5, 20, 21, 22, 23)
GGM_WGMMA_BOTH(48, 6, 24, 25, 26, 27)
GGM_WGMMA_BOTH(56, 7, 28, 29, 30, 31)
GGM_WGMMA_BOTH(64, 8, 32, 33, 34, 35)
GGM_WGMMA_BOTH(72, 9, 36, 37, 38, 39)
GGM_WGMMA_BOTH(80, 10, 40, 41, 42, 43)
GGM_WGMMA_BOTH(88, 11, 44, 45, 46, 47)
GGM_WGMMA_BOTH(96, 12, 48, 49, 50, 51)
GGM_WGMMA_BOTH(104, 13, 52, 53, 54, 55)
GGM_WGMMA_BOTH(112, 14, 56, 57, 58, 59)
GGM_WGMMA_BOTH(120, 15, 60, 61, 62, 63)
GGM_WGMMA_BOTH(128, 16, 64, 65, 66, 67)
GGM_WGMMA_BOTH(136, 17, 68, 69, 70, 71)
GGM_WGMMA_BOTH(144, 18, 72, 73, 74, 75)
GGM_WGMMA_BOTH(152, 19, 76, 77, 78, 79)
GGM_WGMMA_BOTH(160, 20, 80, 81, 82, 83)
GGM_WGMMA_BOTH(168, 21, 84, 85, 86, 87)
GGM_WGMMA_BOTH(176, 22, 88, 89, 90, 91)
GGM_WGMMA_BOTH(184, 23, 92, 93, 94, 95)
GGM_WGMMA_BOTH(192, 24, 96, 97, 98, 99)

#undef GGM_WGMMA_BOTH
#undef GGM_WGMMA
#undef GGM_SUM
#undef GGM_SUMS_1
#undef GGM_TEXT_1
#undef GGM_TEXT_OF_0
#undef GGM_SUMS_2
#undef GGM_TEXT_2
#undef GGM_TEXT_OF_1
#undef GGM_SUMS_3
#undef GGM_TEXT_3
#undef GGM_TEXT_OF_2
#undef GGM_SUMS_4
#undef GGM_TEXT_4
#undef GGM_TEXT_OF_3
#undef GGM_SUMS_5
#undef GGM_TEXT_5
#undef GGM_TEXT_OF_4
#undef GGM_SUMS_6
#undef GGM_TEXT_6
#undef GGM_TEXT_OF_5
#undef GGM_SUMS_7
#undef GGM_TEXT_7
#undef GGM_TEXT_OF_6
#undef GGM_SUMS_8
#undef GGM_TEXT_8
#undef GGM_TEXT_OF_7
#undef GGM_SUMS_9
#undef GGM_TEXT_9
#undef GGM_TEXT_OF_8
#undef GGM_SUMS_10
#undef GGM_TEXT_10
#undef GGM_TEXT_OF_9
#undef GGM_SUMS_11
#undef GGM_TEXT_11
#undef GGM_TEXT_OF_10
#undef GGM_SUMS_12
#undef GGM_TEXT_12
#undef GGM_TEXT_OF_11
#undef GGM_SUMS_13
#undef GGM_TEXT_13
#undef GGM_TEXT_OF_12
#undef GGM_SUMS_14
#undef GGM_TEXT_14
#undef GGM_TEXT_OF_13
#undef GGM_SUMS_15
#undef GGM_TEXT_15
#undef GGM_TEXT_OF_14
#undef GGM_SUMS_16
#undef GGM_TEXT_16
#undef GGM_TEXT_OF_15
#undef GGM_SUMS_17
#undef GGM_TEXT_17
#undef GGM_TEXT_OF_16
#undef GGM_SUMS_18
#undef GGM_TEXT_18
#undef GGM_TEXT_OF_17
#undef GGM_SUMS_19
#undef GGM_TEXT_19
#undef GGM_TEXT_OF_18
#undef GGM_SUMS_20
#undef GGM_TEXT_20
#undef GGM_TEXT_OF_19
#undef GGM_SUMS_21
#undef GGM_TEXT_21
#undef GGM_TEXT_OF_20
#undef GGM_SUMS_22
#undef GGM_TEXT_22
#undef GGM_TEXT_OF_21
#undef GGM_SUMS_23
#undef GGM_TEXT_23
#undef GGM_TEXT_OF_22
#undef GGM_SUMS_24
#undef GGM_TEXT_24
#undef GGM_TEXT_OF_23

}  // namespace ggm::cuda::ptx
