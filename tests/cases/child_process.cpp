#include "cases/child_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "support/test.h"

namespace ggm_test::cases {
namespace {

// A sanitizer makes a child several times slower, as cmake/GgmTest.cmake allows for a test.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kSlowdown = 6;
#else
constexpr double kSlowdown = 1;
#endif

constexpr const char* kChild = "GGM_CASES_CHILD";

struct Child {
  pid_t pid = -1;
  int output = -1;
};

Child start(const std::string& test) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::fflush(nullptr);
  Child child;
  child.pid = fork();
  REQUIRE(child.pid >= 0);
  if (child.pid == 0) {
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    setenv(kChild, "1", 1);
    const std::string filter = "\"" + test + "\"";
    execl("/proc/self/exe", ggm_test::program().c_str(), filter.c_str(), static_cast<char*>(nullptr));
    _exit(126);
  }
  close(ends[1]);
  child.output = ends[0];
  return child;
}

// Reads until the child closes its end or the time is over; false when it is over.
bool read_all(int from, double seconds, std::string& text) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  char buffer[4096];
  for (;;) {
    const double left = std::chrono::duration<double>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd wait{from, POLLIN, 0};
    if (poll(&wait, 1, static_cast<int>(left * 1000) + 1) <= 0) continue;
    const ssize_t got = read(from, buffer, sizeof buffer);
    if (got <= 0) return true;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

}  // namespace

bool in_child() { return std::getenv(kChild) != nullptr; }

std::string child_result(double seconds) {
  seconds *= kSlowdown;
  const Child child = start(Catch::getResultCapture().getCurrentTestName());
  std::string text;
  const bool ended = read_all(child.output, seconds, text);
  if (!ended) kill(child.pid, SIGKILL);
  close(child.output);
  int status = 0;
  waitpid(child.pid, &status, 0);
  INFO("output of the child:\n" << text);
  if (!ended) FAIL("the child did not end within " << seconds << " s");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) FAIL("the child ended with wait status " << status);
  std::string result;
  for (std::size_t at = 0; (at = text.find("result: ", at)) != std::string::npos;) {
    const std::size_t line_end = text.find('\n', at);
    result += text.substr(at, line_end - at) + "\n";
    at = line_end;
  }
  SUCCEED();
  return result;
}

void run_child(double seconds) { (void)child_result(seconds); }

void print_result(const std::string& text) {
  std::printf("result: %s\n", text.c_str());
  std::fflush(stdout);
}

}  // namespace ggm_test::cases
