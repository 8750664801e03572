// main of every test program. Besides Catch2's options it knows
//   --list-for-ctest FILE SECONDS   write the CTest registration of every test case (cmake/GgmTest.cmake), with that timeout
//                                   ([serial]: never beside another test; [large]: never beside another large one)
//   --watchdog SECONDS              end the program with a message and status 124 when one test case takes longer
//   --case TEXT                     run only that case of a table (see reproducer in test.h)
// Tests tagged [gpu] or [large] need a GPU: where there is none they are left out, and when nothing else was selected the
// program says why and exits with 77 ("skipped" for CTest), or with 1 under GGM_REQUIRE_GPU=1. Those tagged [hopper] too need
// one that runs the wgmma kernels; on another they are left out likewise, and GGM_REQUIRE_GPU does not ask for it.
#define CATCH_CONFIG_RUNNER
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include "support/backend.h"
#include "support/test.h"

namespace {

constexpr int kSkipped = 77;

std::string g_program, g_case, g_test_name;
bool g_has_case = false;
std::mutex g_mutex;
std::atomic<long long> g_started{0};

long long now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

#if CATCH_VERSION_MAJOR >= 3
using Listener = Catch::EventListenerBase;
using TestList = std::vector<Catch::TestCaseHandle>;
const Catch::TestCaseInfo& info_of(const Catch::TestCaseHandle& test) { return test.getTestCaseInfo(); }
std::vector<std::string> tags_of(const Catch::TestCaseInfo& info) {
  std::vector<std::string> tags;
  for (const auto& tag : info.tags) tags.emplace_back(tag.original.data(), tag.original.size());
  return tags;
}
#else
using Listener = Catch::TestEventListenerBase;
using TestList = std::vector<Catch::TestCase>;
const Catch::TestCaseInfo& info_of(const Catch::TestCase& test) { return test; }
std::vector<std::string> tags_of(const Catch::TestCaseInfo& info) { return info.tags; }
#endif

struct CurrentTest : Listener {
  using Listener::Listener;
  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    const std::lock_guard<std::mutex> lock(g_mutex);
    g_test_name = info.name;
    g_started = now_ms();
  }
};
CATCH_REGISTER_LISTENER(CurrentTest)

bool has_tag(const Catch::TestCaseInfo& info, const char* name) {
  for (const std::string& tag : tags_of(info))
    if (tag == name) return true;
  return false;
}
bool needs_gpu(const Catch::TestCaseInfo& info) { return has_tag(info, "gpu") || has_tag(info, "large"); }

void start_watchdog(double seconds) {
  g_started = now_ms();
  std::thread([seconds] {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      if (now_ms() - g_started.load() < seconds * 1000) continue;
      const std::lock_guard<std::mutex> lock(g_mutex);
      std::fprintf(stderr, "watchdog: test \"%s\" did not end within %g s\n", g_test_name.c_str(), seconds);
      std::fflush(nullptr);
      std::_Exit(124);
    }
  }).detach();
}

// Names go into a CMake script and back into Catch2's test filter, which has its own special characters.
bool is_plain_name(const std::string& name) { return name.find_first_of("\"\\*;$[]") == std::string::npos; }

// A name as one pattern of Catch2's filter: quoted, and commas escaped, which would end the pattern even inside quotes.
std::string pattern_of(const std::string& name) {
  std::string pattern = "\"";
  for (const char c : name) pattern += c == ',' ? std::string("\\,") : std::string(1, c);
  return pattern + "\"";
}

int list_for_ctest(const TestList& tests, const char* path, double timeout) {
  std::ofstream out(path);
  for (const auto& test : tests) {
    const Catch::TestCaseInfo& info = info_of(test);
    if (info.isHidden()) continue;
    std::string labels;
    for (const char* label : {"host", "gpu", "large"})
      if (has_tag(info, label)) labels += std::string(labels.empty() ? "" : ";") + label;
    if (labels.empty() || !is_plain_name(info.name)) {
      std::fprintf(stderr, "test \"%s\": %s\n", info.name.c_str(),
                   labels.empty() ? "has none of the tags [host], [gpu], [large]" : "the name may not hold any of \"\\*;$[]");
      out.close();
      std::remove(path);
      return 1;
    }
    const double seconds = has_tag(info, "large") ? 4 * timeout : timeout;
    out << "add_test([=[" << info.name << "]=] [=[" << g_program << "]=] [=[" << pattern_of(info.name) << "]=] --watchdog "
        << seconds * 0.95 << ")\n"
        << "set_tests_properties([=[" << info.name << "]=] PROPERTIES LABELS \"" << labels << "\" TIMEOUT " << seconds
        << " SKIP_RETURN_CODE " << kSkipped << (has_tag(info, "serial") ? " RUN_SERIAL TRUE" : "")
        << (has_tag(info, "large") ? " RESOURCE_LOCK gpu_memory" : "") << ")\n";
  }
  return out.good() ? 0 : 1;
}

TestList selected(Catch::Session& session) {
  const Catch::Config& config = session.config();
  const auto& all = Catch::getAllTestCasesSorted(config);
  if (config.hasTestFilters()) return Catch::filterTests(all, config.testSpec(), config);
  TestList visible;
  for (const auto& test : all)
    if (!info_of(test).isHidden()) visible.push_back(test);
  return visible;
}

// Why this machine cannot run a test; empty: it can.
std::string obstacle(const Catch::TestCaseInfo& info) {
  if (!needs_gpu(info)) return "";
  if (!ggm_test::gpu().present) return ggm_test::gpu().reason;
  return has_tag(info, "hopper") ? ggm_test::hopper_obstacle() : "";
}

// Leaves out what this machine cannot run. Returns the exit status when the program should end here, else -1.
int drop_tests(Catch::Session& session, const TestList& tests) {
  std::string rest, reason;
  int dropped = 0;
  for (const auto& test : tests) {
    const std::string why = obstacle(info_of(test));
    if (!why.empty()) {
      ++dropped;
      reason = why;
    } else {
      rest += std::string(rest.empty() ? "" : ",") + pattern_of(info_of(test).name);
    }
  }
  if (dropped == 0) return -1;
  const char* require = std::getenv("GGM_REQUIRE_GPU");
  const bool required = require && std::strcmp(require, "") != 0 && std::strcmp(require, "0") != 0 && !ggm_test::gpu().present;
  std::fprintf(stderr, "%s %d GPU test%s: %s\n", required ? "FAILED, cannot run" : "skipped", dropped, dropped == 1 ? "" : "s",
               reason.c_str());
  if (required) return 1;
  if (rest.empty()) return kSkipped;
  session.configData().testsOrTags = {rest};
  session.useConfigData(session.configData());
  return -1;
}

}  // namespace

namespace ggm_test {

bool case_selected(const std::string& text) { return !g_has_case || text == g_case; }
const std::string& program() { return g_program; }
std::string reproducer(const std::string& text) {
  return "reproduce: " + g_program + " '" + pattern_of(g_test_name) + "' --case '" + text + "'";
}

}  // namespace ggm_test

int main(int argc, char** argv) {
  g_program = argv[0];
  std::vector<const char*> rest{argv[0]};
  const char* list_path = nullptr;
  double list_timeout = 0, watchdog = 0;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--list-for-ctest") && i + 2 < argc) {
      list_path = argv[i + 1];
      list_timeout = std::atof(argv[i + 2]);
      i += 2;
    } else if (!std::strcmp(argv[i], "--watchdog") && i + 1 < argc) {
      watchdog = std::atof(argv[++i]);
    } else if (!std::strcmp(argv[i], "--case") && i + 1 < argc) {
      g_case = argv[++i];
      g_has_case = true;
    } else {
      rest.push_back(argv[i]);
    }
  }
  Catch::Session session;
  const int parsed = session.applyCommandLine(static_cast<int>(rest.size()), rest.data());
  if (parsed != 0) return parsed;
  if (list_path) return list_for_ctest(Catch::getAllTestCasesSorted(session.config()), list_path, list_timeout);

  const bool only_lists = argc > 1 && (!std::strncmp(argv[1], "--list", 6) || !std::strcmp(argv[1], "-l"));
  if (!only_lists) {
    const TestList tests = selected(session);
    bool any_gpu = false;
    for (const auto& test : tests) any_gpu |= needs_gpu(info_of(test));
    if (any_gpu) {
      const int status = drop_tests(session, tests);
      if (status >= 0) return status;
      if (ggm_test::gpu().present) std::printf("GPU: %s\n", ggm_test::gpu().name.c_str());
    }
    if (watchdog > 0) start_watchdog(watchdog);
  }
  const int failed = session.run();
  // A skip code must never come from a count of failures.
  return failed == 0 ? 0 : failed == kSkipped || failed > 120 ? 1 : failed;
}
