// The log of one handle: a level and a callback (stderr without one). Lines are cut to a fixed length; nothing is allocated.
#pragma once

#include <cstdint>

#include "ggm/ggm.h"

namespace ggm {

struct Log {
  std::int32_t level = GGM_LOG_OFF;
  void (*callback)(void*, std::int32_t, const char*) = nullptr;
  void* user = nullptr;

  bool on(std::int32_t at) const { return level >= at; }
  void line(std::int32_t at, const char* format, ...) const __attribute__((format(printf, 3, 4)));
};

}  // namespace ggm
