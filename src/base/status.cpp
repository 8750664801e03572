#include "base/status.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace ggm {
namespace {

thread_local char text[kErrorTextBytes] = "";

}  // namespace

ggm_status_t fail(ggm_status_t status, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, kErrorTextBytes, format, arguments);
  va_end(arguments);
  return status;
}

const char* last_error() { return text; }

KeptError::KeptError() { std::memcpy(text_, text, std::strlen(text) + 1); }
void KeptError::put_back() const { std::memcpy(text, text_, std::strlen(text_) + 1); }

const char* status_name(ggm_status_t status) {
#define GGM_NAME(name) \
  case name: return #name
  switch (status) {
    GGM_NAME(GGM_STATUS_SUCCESS);
    GGM_NAME(GGM_STATUS_INVALID_HANDLE);
    GGM_NAME(GGM_STATUS_WRONG_DEVICE);
    GGM_NAME(GGM_STATUS_NULL_POINTER);
    GGM_NAME(GGM_STATUS_INVALID_VALUE);
    GGM_NAME(GGM_STATUS_OVERFLOW);
    GGM_NAME(GGM_STATUS_INVALID_ENUM);
    GGM_NAME(GGM_STATUS_INVALID_FLAGS);
    GGM_NAME(GGM_STATUS_INVALID_STRUCT_SIZE);
    GGM_NAME(GGM_STATUS_WORKSPACE_TOO_SMALL);
    GGM_NAME(GGM_STATUS_MISALIGNED);
    GGM_NAME(GGM_STATUS_ALIASING);
    GGM_NAME(GGM_STATUS_TYPE_MISMATCH);
    GGM_NAME(GGM_STATUS_INVALID_STREAM);
    GGM_NAME(GGM_STATUS_RESERVED_NOT_ZERO);
    GGM_NAME(GGM_STATUS_UNSUPPORTED);
    GGM_NAME(GGM_STATUS_UNSUPPORTED_DEVICE);
    GGM_NAME(GGM_STATUS_BACKEND_UNAVAILABLE);
    GGM_NAME(GGM_STATUS_LIMIT_EXCEEDED);
    GGM_NAME(GGM_STATUS_INTERNAL_ERROR);
    GGM_NAME(GGM_STATUS_OUT_OF_MEMORY);
    GGM_NAME(GGM_STATUS_CUDA_ERROR);
    default: return "unknown status";
  }
#undef GGM_NAME
}

}  // namespace ggm
