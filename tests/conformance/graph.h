// Observers of a scene's calls on CUDA: one that runs each call through a captured graph, one that watches the free device
// memory. In builds without CUDA they do nothing; only GPU tests use them.
#pragma once

#include <string>
#include <vector>

#include "support/scene.h"

namespace ggm_test {

class CaptureGraph : public CallObserver {
 public:
  CaptureGraph();
  CaptureGraph(const CaptureGraph&) = delete;
  ~CaptureGraph() override;

  ggm_stream_t stream() const { return stream_; }
  void before_call() override;  // begins a capture in the strictest mode: anything unsafe in any thread breaks it
  void after_call() override;   // ends it, instantiates the graph and launches it
  bool replay();                // launches the graph of the last call again and waits; needs keep_graph

  bool keep_graph = false;
  int failures = 0;
  int kernels = 0;                 // of the last call
  std::vector<std::string> names;  // theirs, mangled, in no order; "?" where the driver cannot tell
  // How many kernels of the last call have the text in their names.
  int kernels_named(const std::string& text) const;

 private:
  void drop();

  ggm_stream_t stream_ = nullptr;
  void* executable_ = nullptr;
};

class WatchDeviceMemory : public CallObserver {
 public:
  void before_call() override;
  void after_call() override;
  int calls = 0, changed = 0;

 private:
  std::size_t free_before_ = 0;
};

}  // namespace ggm_test
