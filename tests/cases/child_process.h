// Tests that need a process of their own (first use of the library, a crash, a hang): the test starts its own program again for
// the same test case and looks at how the child ends. Called at the start of such a test:
//
//     TEST_CASE("BR-009 ...: host", "[host]") {
//       if (!in_child()) return run_child(60);   // fails here when the child fails, crashes or hangs
//       ...                                      // the child's part
//     }
#pragma once

#include <string>

namespace ggm_test::cases {

bool in_child();

// Runs the current test case in a child process for at most `seconds`; then the child is ended and the test fails.
void run_child(double seconds);

// The same; returns what the child gave to print_result, so that two processes can be compared.
std::string child_result(double seconds);

// A line for child_result; only in the child.
void print_result(const std::string& text);

}  // namespace ggm_test::cases
