// src/host/pool: every piece runs once, indices differ, a busy pool neither blocks nor loses a second caller.
#include "host/pool.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "support/test.h"

using namespace ggm::host;

namespace {

struct RunningPool {
  explicit RunningPool(int workers) : storage(new pthread_t[static_cast<std::size_t>(workers) + 1]) {
    REQUIRE(pool.start(storage.get(), workers) == GGM_STATUS_SUCCESS);
  }
  std::unique_ptr<pthread_t[]> storage;  // outlives the pool
  Pool pool;
};

}  // namespace

TEST_CASE("host pool: ranges cover 0..count-1 once, for every number of threads and grain", "[host]") {
  for (int workers : {0, 1, 3}) {
    RunningPool running(workers);
    for (std::int64_t count : {0, 1, 2, 63, 1000})
      for (std::int64_t grain : {1, 7, 64, 5000})
        for (int threads : {1, 2, 4, 100}) {
          std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
          running.pool.for_ranges(threads, count, grain, [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
          });
          bool once = true;
          for (const auto& n : seen) once &= n == 1;
          INFO("workers " << workers << " count " << count << " grain " << grain << " threads " << threads);
          REQUIRE(once);
        }
  }
}

TEST_CASE("host pool: participants have different indices below the limit, and no thread outlives a job", "[host]") {
  RunningPool running(7);
  for (int threads : {2, 3, 8}) {
    for (int round = 0; round < 300; ++round) {
      std::vector<std::atomic<int>> entered(8);
      std::atomic<int> inside{0};
      running.pool.run(threads, [&](int thread) {
        ++inside;
        ++entered[static_cast<std::size_t>(thread)];
        std::this_thread::yield();
        --inside;
      });
      REQUIRE(inside == 0);
      for (int i = 0; i < 8; ++i) REQUIRE(entered[static_cast<std::size_t>(i)] <= (i < threads ? 1 : 0));
      REQUIRE(entered[0] == 1);
    }
  }
}

TEST_CASE("host pool: workers really take part", "[host]") {
  RunningPool running(1);
  std::atomic<int> arrived{0};
  // Returns only when both threads are inside at the same time.
  running.pool.run(2, [&](int) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  CHECK(arrived == 2);
}

TEST_CASE("host pool: 8 threads on one pool at once each finish their own job", "[host]") {
  RunningPool running(3);
  std::vector<std::int64_t> sums(8, 0);
  std::vector<std::thread> callers;
  for (int c = 0; c < 8; ++c)
    callers.emplace_back([&, c] {
      for (int round = 0; round < 200; ++round) {
        std::atomic<std::int64_t> sum{0};
        running.pool.for_ranges(4, 100, 3, [&](std::int64_t begin, std::int64_t end, int) {
          for (std::int64_t i = begin; i < end; ++i) sum += i * (c + 1);
        });
        sums[static_cast<std::size_t>(c)] += sum;
      }
    });
  for (std::thread& caller : callers) caller.join();
  for (int c = 0; c < 8; ++c) CHECK(sums[static_cast<std::size_t>(c)] == std::int64_t{200} * 4950 * (c + 1));
}

TEST_CASE("host pool: starts and ends with idle workers, many times", "[host]") {
  for (int i = 0; i < 100; ++i) {
    RunningPool running(i % 5);
    if (i % 2 == 0) running.pool.run(5, [](int) {});
  }
}

// A child has the pool's memory and none of its threads. Its own work is then done alone, and nothing waits for the others.
TEST_CASE("host pool: a child of fork works alone and ends", "[host]") {
  for (int workers : {1, 7, 15}) {
    RunningPool* const running = new RunningPool(workers);
    running->pool.run(workers + 1, [](int) {});
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      alarm(20);  // a wait for a thread that is not there ends the child
      std::int64_t sum = 0;
      running->pool.for_ranges(workers + 1, 100, 3, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i) sum += i;
      });
      delete running;
      _exit(sum == 4950 ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    INFO("workers " << workers << " status " << status);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    running->pool.run(workers + 1, [](int) {});  // the parent's pool is as it was
    delete running;
  }
}
