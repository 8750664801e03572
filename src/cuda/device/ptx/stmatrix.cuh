// Storing fragments to shared memory (PTX ISA, "stmatrix", capability 9.0).
#pragma once

#include <cstdint>

namespace ggm::cuda::ptx {

// Four 8x8 matrices of 16-bit elements, columns as rows; lane l gives the address where row l%8 of matrix l/8 goes.
__device__ __forceinline__ void stmatrix_x4_turned(std::uint32_t address, const std::uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(r[0]), "r"(r[1]),
               "r"(r[2]), "r"(r[3])
               : "memory");
}

}  // namespace ggm::cuda::ptx
