#include "host/pool.h"

#include <unistd.h>

#include <csignal>

#include "base/status.h"

namespace ggm::host {

Pool::Pool() {
  pthread_mutex_init(&mutex_, nullptr);
  pthread_cond_init(&wake_, nullptr);
  pthread_cond_init(&finished_, nullptr);
}

Pool::~Pool() {
  // NOTE: fork() copies the memory and no thread but its caller. What is said of the workers here is not so in the child, and
  // the mutex may be held by one that is not there.
  if (process_ != getpid()) return;
  pthread_mutex_lock(&mutex_);
  stop_ = true;
  pthread_cond_broadcast(&wake_);
  pthread_mutex_unlock(&mutex_);
  for (int i = 0; i < worker_count_; ++i) pthread_join(workers_[i], nullptr);
  pthread_cond_destroy(&finished_);
  pthread_cond_destroy(&wake_);
  pthread_mutex_destroy(&mutex_);
}

ggm_status_t Pool::start(pthread_t* storage, int workers) {
  workers_ = storage;
  process_ = getpid();
  // The application's signals are its own: workers start with all of them blocked.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int error = 0;
  while (worker_count_ < workers && error == 0) {
    error = pthread_create(&workers_[worker_count_], nullptr, worker_main, this);
    if (error == 0) ++worker_count_;
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (error != 0)
    return fail(GGM_STATUS_OUT_OF_MEMORY, "host_threads = %d; the system gave only %d threads", workers + 1, worker_count_ + 1);
  return GGM_STATUS_SUCCESS;
}

void Pool::run(int threads, Work work, void* context) {
  if (threads > worker_count_ + 1) threads = worker_count_ + 1;
  if (threads <= 1 || process_ != getpid() || busy_.exchange(true, std::memory_order_acquire)) return work(context, 0);
  pthread_mutex_lock(&mutex_);
  work_ = work;
  context_ = context;
  wanted_ = threads - 1;
  next_thread_ = 1;
  if (wanted_ == worker_count_)
    pthread_cond_broadcast(&wake_);
  else
    for (int i = 0; i < wanted_; ++i) pthread_cond_signal(&wake_);
  pthread_mutex_unlock(&mutex_);

  work(context, 0);

  pthread_mutex_lock(&mutex_);
  wanted_ = 0;  // workers that have not woken by now would find nothing to do
  while (active_ > 0) pthread_cond_wait(&finished_, &mutex_);
  pthread_mutex_unlock(&mutex_);
  busy_.store(false, std::memory_order_release);
}

void* Pool::worker_main(void* pool) {
  static_cast<Pool*>(pool)->work_until_stopped();
  return nullptr;
}

void Pool::work_until_stopped() {
  pthread_mutex_lock(&mutex_);
  for (;;) {
    while (!stop_ && wanted_ == 0) pthread_cond_wait(&wake_, &mutex_);
    if (stop_) break;
    --wanted_;
    ++active_;
    const int thread = next_thread_++;
    const Work work = work_;
    void* const context = context_;
    pthread_mutex_unlock(&mutex_);
    work(context, thread);
    pthread_mutex_lock(&mutex_);
    if (--active_ == 0) pthread_cond_signal(&finished_);
  }
  pthread_mutex_unlock(&mutex_);
}

}  // namespace ggm::host
