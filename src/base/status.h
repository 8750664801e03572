// Status codes with a text: every function that can fail returns ggm_status_t and leaves its reason in the thread's last-error
// text. No allocation, no exception. Used by every layer.
#pragma once

#include <cstddef>

#include "ggm/ggm.h"

namespace ggm {

// Stores the text (printf format) as this thread's last error and returns `status`, so that callers write
// `return fail(GGM_STATUS_INVALID_VALUE, "tokens = %lld ...", ...)`.
ggm_status_t fail(ggm_status_t status, const char* format, ...) __attribute__((format(printf, 2, 3)));

// The thread's last text, "" at first.
const char* last_error();

inline constexpr std::size_t kErrorTextBytes = 2048;

// The thread's text as it is now, to be put back after a failure that did not fail the call: a success leaves the text.
class KeptError {
 public:
  KeptError();
  void put_back() const;

 private:
  char text_[kErrorTextBytes];
};

const char* status_name(ggm_status_t status);

// Returns from the enclosing function when `expression` is not GGM_STATUS_SUCCESS.
#define GGM_TRY(expression)                                                \
  do {                                                                     \
    if (ggm_status_t ggm_try_status = (expression)) return ggm_try_status; \
  } while (0)

}  // namespace ggm
