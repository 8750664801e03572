// A second CUDA stream that can be kept busy beside the library, and repeating one operation without the standing checks of a
// scene.
#pragma once

#include "support/backend.h"

namespace ggm_test {

// On the host: nothing, and a NULL stream.
class BusyStream {
 public:
  explicit BusyStream(const Backend& backend);
  BusyStream(const BusyStream&) = delete;
  ~BusyStream();
  void keep_busy();  // adds device-side copies and fills that take about as long as a small layer
  ggm_stream_t stream() const { return stream_; }

 private:
  ggm_stream_t stream_ = nullptr;
  void* memory_ = nullptr;
};

}  // namespace ggm_test
