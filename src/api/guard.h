// The one door out of the library: no exception passes it.
#pragma once

#include <exception>
#include <new>

#include "base/status.h"

namespace ggm::api {

template <typename Body>
ggm_status_t guard(const char* function, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(GGM_STATUS_OUT_OF_MEMORY, "%s: host memory could not be had", function);
  } catch (const std::exception& e) {
    return fail(GGM_STATUS_INTERNAL_ERROR, "%s: unexpected exception: %s", function, e.what());
  } catch (...) {
    return fail(GGM_STATUS_INTERNAL_ERROR, "%s: unexpected exception", function);
  }
}

}  // namespace ggm::api
