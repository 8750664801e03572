// Progress lines on stderr for steps that take longer than a second, and the loop over all cores that reports to them.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace demo {

// While it lives, says what is going on: nothing in the first second, then a line that is kept up to date on a terminal, or one
// line every ten seconds elsewhere.
class Step {
 public:
  explicit Step(std::string name);
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Lets the line show a percentage.
  void expect(std::int64_t total) { total_ = total; }
  void advance(std::int64_t done = 1) { done_ += done; }

 private:
  void watch();
  void show(double seconds, bool terminal) const;

  std::string name_;
  std::atomic<std::int64_t> done_{0}, total_{0};
  std::mutex mutex_;
  std::condition_variable finished_;
  bool done_flag_ = false;
  std::thread watcher_;
};

// Calls body(i) for every i in [0, count), on all cores; items are claimed one by one. body must not throw.
template <typename Body>
void parallel_for(std::int64_t count, Step& step, const Body& body) {
  step.expect(count);
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    for (std::int64_t i = next++; i < count; i = next++) {
      body(i);
      step.advance();
    }
  };
  const std::int64_t cores = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (std::int64_t i = 1; i < std::min(cores, count); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace demo
