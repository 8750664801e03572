// Included first by every test file: the right Catch2 header (2.13 or 3) and checks of statuses.
// Catch2's macros may be used on the main thread of a test alone.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <string>

#include "ggm/ggm.h"

namespace ggm_test {

// True when the case may run: always, unless the program was started with --case TEXT; then only the case of that very text.
bool case_selected(const std::string& text);

// "reproduce: program "test name" --case "text"", for the head of a failure.
std::string reproducer(const std::string& text);

// The test program itself, for tests that start it again as a child.
const std::string& program();

}  // namespace ggm_test

// The next check of this scope prints the one-line reproducer of `text` when it fails.
#define GGM_CASE(text) INFO(::ggm_test::reproducer(text))

#define GGM_REQUIRE_STATUS(expected, expression)                                                                 \
  do {                                                                                                           \
    const ggm_status_t ggm_test_status = (expression);                                                           \
    INFO(#expression << " gave " << ggm_status_string(ggm_test_status) << "; last error: " << ggm_last_error()); \
    REQUIRE(ggm_test_status == (expected));                                                                      \
  } while (0)
#define GGM_REQUIRE_OK(expression) GGM_REQUIRE_STATUS(GGM_STATUS_SUCCESS, expression)
