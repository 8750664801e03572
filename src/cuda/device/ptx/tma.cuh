// Copies of boxes of a tensor between memory and shared memory by the copy engine (PTX ISA, "cp.async.bulk.tensor", capability
// 9.0). A box may reach beyond the tensor: zeros come from there, and its bytes count in full on the barrier; nothing goes
// there.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace ggm::cuda::ptx {

// Every map of this library has four dimensions (src/cuda/gemm/wgmma.cu).
struct BoxCorner {
  std::int32_t at[4];
};

// A map that a kernel has among its parameters.
__device__ __forceinline__ void prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

__device__ __forceinline__ void copy_box(std::uint32_t to, const CUtensorMap* map, const BoxCorner& c, std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];" ::
          "r"(to),
      "l"(map), "r"(c.at[0]), "r"(c.at[1]), "r"(c.at[2]), "r"(c.at[3]), "r"(barrier)
      : "memory");
}

// Into the same place of every block whose bit in `blocks` is set, counted on the same barrier of each.
__device__ __forceinline__ void copy_box_to_cluster(std::uint32_t to, const CUtensorMap* map, const BoxCorner& c,
                                                    std::uint32_t barrier, std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(to),
      "l"(map), "r"(c.at[0]), "r"(c.at[1]), "r"(c.at[2]), "r"(c.at[3]), "r"(barrier), "h"(blocks)
      : "memory");
}

// From shared memory, behind a fence_async_proxy by all who wrote there. What a thread has put under way it commits in groups.
__device__ __forceinline__ void store_box(const CUtensorMap* map, const BoxCorner& c, std::uint32_t from) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(map),
               "r"(c.at[0]), "r"(c.at[1]), "r"(c.at[2]), "r"(c.at[3]), "r"(from)
               : "memory");
}
__device__ __forceinline__ void commit_boxes() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Bytes as they follow each other; addresses and their number are multiples of 16. Stores are committed like boxes.
__device__ __forceinline__ void copy_bytes(std::uint32_t to, const void* from, unsigned bytes, std::uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
               "r"(bytes), "r"(barrier)
               : "memory");
}
__device__ __forceinline__ void store_bytes(void* to, std::uint32_t from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
}

// Waits until all but the thread's newest `pending` groups have been written.
template <int pending>
__device__ __forceinline__ void wait_boxes_written() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(pending) : "memory");
}

// Waits until shared memory has been read by all but the thread's newest `pending` groups.
template <int pending>
__device__ __forceinline__ void wait_boxes_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

}  // namespace ggm::cuda::ptx
