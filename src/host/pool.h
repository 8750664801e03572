// The backend's threads. They are made once; a call borrows them without allocating. A job must be divisible at run time: each
// participant claims pieces until none are left, so it is complete whoever takes part, and a caller that finds the pool busy
// with another thread's job does its own alone.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "ggm/ggm.h"

namespace ggm::host {

class Pool {
 public:
  Pool();
  ~Pool();  // ends and joins the workers; in a child of fork(), which has none of them, nothing
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Starts `workers` threads; their ids go to `storage`, which must outlive the pool.
  ggm_status_t start(pthread_t* storage, int workers);

  // Runs work(context, i) on up to `threads` threads, the caller's included (always i = 0); indices differ and are below
  // `threads`. Returns when all have returned.
  using Work = void (*)(void* context, int thread);
  void run(int threads, Work work, void* context);

  template <typename Function>
  void run(int threads, Function&& function) {
    auto call = [](void* context, int thread) { (*static_cast<std::remove_reference_t<Function>*>(context))(thread); };
    run(threads, call, const_cast<void*>(static_cast<const void*>(&function)));
  }

  // Splits 0 .. count-1 into pieces of at most `grain` that threads claim in turn: function(begin, end, thread).
  template <typename Function>
  void for_ranges(int threads, std::int64_t count, std::int64_t grain, Function&& function) {
    std::atomic<std::int64_t> next{0};
    const std::int64_t pieces = count / grain + (count % grain != 0);
    if (pieces < threads) threads = static_cast<int>(pieces);
    run(threads, [&](int thread) {
      for (std::int64_t piece = next++; piece < pieces; piece = next++) {
        const std::int64_t begin = piece * grain;
        function(begin, count - begin < grain ? count : begin + grain, thread);
      }
    });
  }

 private:
  static void* worker_main(void* pool);
  void work_until_stopped();

  pthread_t* workers_ = nullptr;
  int worker_count_ = 0;
  pid_t process_ = 0;              // that has them
  std::atomic<bool> busy_{false};  // a job owns the workers

  pthread_mutex_t mutex_;
  pthread_cond_t wake_, finished_;
  // Guarded by mutex_:
  bool stop_ = false;
  Work work_ = nullptr;
  void* context_ = nullptr;
  int wanted_ = 0;  // workers that may still join the current job
  int active_ = 0;  // workers inside it
  int next_thread_ = 0;
};

}  // namespace ggm::host
