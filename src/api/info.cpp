// Version, build information, status texts, the last error.
#include <cstdio>
#include <cstring>

#include "base/status.h"
#ifdef GGM_WITH_CUDA
#include "cuda/cuda_backend.h"
#endif

#ifndef GGM_COMMIT
#define GGM_COMMIT "unknown"
#endif
#define GGM_TEXT_(x) #x
#define GGM_TEXT(x) GGM_TEXT_(x)

namespace {

struct BuildInfo {
  char text[256];
  BuildInfo() {
#ifdef GGM_WITH_CUDA
    char cuda[128];
    std::snprintf(cuda, sizeof cuda, "CUDA %s (%s)", ggm::cuda::toolkit_version(), ggm::cuda::architectures());
#else
    const char* cuda = "no CUDA";
#endif
    std::snprintf(text, sizeof text, "libggm %d.%d.%d, commit %s, %s, host kernels plain avx2 avx512", GGM_VERSION_MAJOR,
                  GGM_VERSION_MINOR, GGM_VERSION_PATCH, GGM_TEXT(GGM_COMMIT), cuda);
  }
};

}  // namespace

extern "C" {

GGM_API int32_t ggm_version(void) { return GGM_VERSION; }

GGM_API const char* ggm_build_info(void) {
  static const BuildInfo info;
  return info.text;
}

GGM_API const char* ggm_status_string(ggm_status_t status) { return ggm::status_name(status); }

GGM_API const char* ggm_last_error(void) { return ggm::last_error(); }

GGM_API size_t ggm_copy_last_error(char* buffer, size_t capacity) {
  const char* text = ggm::last_error();
  const std::size_t length = std::strlen(text);
  if (buffer != nullptr && capacity > 0) {
    const std::size_t copied = length < capacity ? length : capacity - 1;
    std::memcpy(buffer, text, copied);
    buffer[copied] = '\0';
  }
  return length;
}

}  // extern "C"
