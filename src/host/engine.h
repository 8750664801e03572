// What every operation of the host backend works with, and how many threads a piece of work deserves.
#pragma once

#include "base/checked.h"
#include "host/elements.h"
#include "host/pool.h"
#include "plan/host_config.h"
#include "plan/ledger.h"

namespace ggm::host {

struct Engine {
  const Family& family;
  Pool& pool;
};

// Waking a thread costs about as much as a million multiply-adds or copied bytes, so small jobs stay on the caller's.
inline int threads_for(std::int64_t work, int limit) {
  const std::int64_t worth = 1 + work / (std::int64_t{1} << 20);
  return static_cast<int>(min64(worth, limit));
}

// Saturating product of sizes, for estimates of work.
inline std::int64_t work_of(std::int64_t a, std::int64_t b, std::int64_t c = 1) {
  const Checked work = Checked(a) * Checked(b) * Checked(c);
  return work.overflow ? INT64_MAX : work.value;
}

}  // namespace ggm::host
