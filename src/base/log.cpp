#include "base/log.h"

#include <cstdarg>
#include <cstdio>

namespace ggm {

void Log::line(std::int32_t at, const char* format, ...) const {
  if (!on(at)) return;
  char text[2048];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (callback) {
    try {
      callback(user, at, text);
    } catch (...) {  // a line that could not be taken changes nothing for the call
    }
  } else {
    std::fprintf(stderr, "ggm: %s\n", text);
  }
}

}  // namespace ggm
