#include "progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace demo {

Step::Step(std::string name) : name_(std::move(name)), watcher_([this] { watch(); }) {}

Step::~Step() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    done_flag_ = true;
  }
  finished_.notify_one();
  watcher_.join();
}

void Step::watch() {
  using namespace std::chrono;
  const bool terminal = isatty(fileno(stderr)) != 0;
  const auto start = steady_clock::now();
  auto wake = start + seconds(1);
  bool shown = false;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!finished_.wait_until(lock, wake, [this] { return done_flag_; })) {
    show(duration<double>(steady_clock::now() - start).count(), terminal);
    shown = true;
    wake += terminal ? milliseconds(500) : milliseconds(10000);
  }
  if (shown && terminal) std::fprintf(stderr, "\r\033[K");
}

void Step::show(double seconds, bool terminal) const {
  char percent[32] = "";
  if (total_ > 0)
    std::snprintf(percent, sizeof percent, ", %d%%",
                  static_cast<int>(100.0 * static_cast<double>(done_) / static_cast<double>(total_)));
  std::fprintf(stderr, terminal ? "\r\033[K... %s (%.0f s%s)" : "... %s (%.0f s%s)\n", name_.c_str(), seconds, percent);
  std::fflush(stderr);
}

}  // namespace demo
