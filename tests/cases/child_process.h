// Tests that need a process of their own (first use of the library, a crash, a hang): the test starts its own program again for
// the same test case and looks at how the child ends. Registered by GGM_CASE_IN_CHILD and GGM_GPU_CASE_IN_CHILD, whose function
// runs in the child alone; the parent makes no handle.
#pragma once

#include <string>

#include "cases/case.h"

namespace ggm_test::cases {

bool in_child();

// Runs the current test case in a child process for at most `seconds`; then the child is ended and the test fails.
void run_child(double seconds);

// The same; returns what the child gave to print_result, so that two processes can be compared.
std::string child_result(double seconds);

// A line for child_result; only in the child.
void print_result(const std::string& text);

}  // namespace ggm_test::cases

#define GGM_GPU_CASE_IN_CHILD_TAGGED(seconds, title, tags, function)              \
  TEST_CASE(title ": gpu", tags) {                                                \
    if (!ggm_test::cases::in_child()) return ggm_test::cases::run_child(seconds); \
    ggm_test::cases::run_on_gpu(function);                                        \
  }
#define GGM_GPU_CASE_IN_CHILD(seconds, title, function) GGM_GPU_CASE_IN_CHILD_TAGGED(seconds, title, "[gpu]", function)
#define GGM_CASE_IN_CHILD(seconds, title, function)                               \
  TEST_CASE(title ": host", "[host]") {                                           \
    if (!ggm_test::cases::in_child()) return ggm_test::cases::run_child(seconds); \
    ggm_test::cases::run_on_host(function);                                       \
  }                                                                               \
  GGM_GPU_CASE_IN_CHILD(seconds, title, function)
