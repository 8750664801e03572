// Barriers in shared memory that count arrivals and bytes of asynchronous copies (PTX ISA, "mbarrier", capability 9.0),
// clusters of blocks, and the order between ordinary accesses and those of the copy engine and the tensor cores.
#pragma once

#include <cstdint>

namespace ggm::cuda::ptx {

__device__ __forceinline__ void init_barrier(std::uint32_t barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to the other blocks of the cluster and to the copy engine.
__device__ __forceinline__ void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ __forceinline__ void arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives, and adds bytes that copies still have to bring before the phase can end.
__device__ __forceinline__ void arrive_expecting(std::uint32_t barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Arrives when all cp.async of this thread so far have come; the arrival must be counted in init_barrier.
__device__ __forceinline__ void arrive_behind_copies(std::uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

// Makes ordinary writes to shared memory that this thread has seen visible to the tensor cores.
__device__ __forceinline__ void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// The same of memory, between what this thread wrote there, or has seen written, and what the copy engine does.
__device__ __forceinline__ void fence_async_proxy_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

// Address in block `block` of the cluster of what lies at `local` in this one.
__device__ __forceinline__ std::uint32_t map_to_block(std::uint32_t local, unsigned block) {
  std::uint32_t remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(local), "r"(block));
  return remote;
}

__device__ __forceinline__ void arrive_remote(std::uint32_t barrier_in_cluster) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier_in_cluster) : "memory");
}

// Stores eight bytes in a block of the cluster and counts them on a barrier there.
__device__ __forceinline__ void store_remote_counted(std::uint32_t to_in_cluster, std::uint64_t value,
                                                     std::uint32_t barrier_in_cluster) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(to_in_cluster),
               "l"(value), "r"(barrier_in_cluster)
               : "memory");
}

// Waits until the phase of that parity has ended.
__device__ __forceinline__ void wait(std::uint32_t barrier, unsigned parity) {
  asm volatile(
      "{\n"
      " .reg .pred done;\n"
      "again:\n"
      " mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      " @!done bra again;\n"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

__device__ __forceinline__ unsigned block_in_cluster() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// All threads of all blocks of the cluster; what was written before is seen behind it.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

// The same for warps that have diverged.
__device__ __forceinline__ void cluster_sync_diverged() {
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
}

// Named barriers of a block: `threads` of them come together; who only arrives goes on.
__device__ __forceinline__ void named_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ __forceinline__ void named_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// They come together, and learn whether any of them says so.
__device__ __forceinline__ bool named_any(int barrier, int threads, bool value) {
  unsigned any;
  asm volatile(
      "{\n"
      " .reg .pred mine, some;\n"
      " setp.ne.u32 mine, %3, 0;\n"
      " bar.red.or.pred some, %1, %2, mine;\n"
      " selp.u32 %0, 1, 0, some;\n"
      "}"
      : "=r"(any)
      : "r"(barrier), "r"(threads), "r"(static_cast<unsigned>(value))
      : "memory");
  return any != 0;
}

// Registers of the calling warpgroup's threads.
template <int count>
__device__ __forceinline__ void shrink_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count>
__device__ __forceinline__ void grow_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

}  // namespace ggm::cuda::ptx
