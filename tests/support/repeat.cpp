#include "support/repeat.h"

#include <cstring>

#if defined(GGM_TEST_CUDA)
#include <cuda_runtime_api.h>

#include "support/device_compare.h"
#endif

namespace ggm_test {

// Gaps between rows are compared too: they hold canaries before and after.
Repeated::Repeated(const Backend& backend, const std::vector<Tensor*>& outputs) : backend_(backend), count_(backend, 8) {
  const std::uint64_t zero = 0;
  count_.write(&zero);
  for (const Tensor* tensor : outputs) {
    entries_.push_back({tensor->data(), tensor->bytes(), Buffer(backend, tensor->bytes())});
    std::vector<unsigned char> content(tensor->bytes());
    copy_out(backend, content.data(), tensor->data(), content.size());
    entries_.back().want.write(content.data());
  }
}

void Repeated::poison() {
  for (Entry& entry : entries_) {
#if defined(GGM_TEST_CUDA)
    if (backend_.cuda) {
      (void)cudaMemsetAsync(entry.data, kPoison, entry.bytes, nullptr);
      continue;
    }
#endif
    std::memset(entry.data, kPoison, entry.bytes);
  }
}

void Repeated::compare() {
  for (Entry& entry : entries_) {
#if defined(GGM_TEST_CUDA)
    if (backend_.cuda) {
      count_differences(entry.data, entry.want.data(), entry.bytes, static_cast<unsigned long long*>(count_.data()));
      continue;
    }
#endif
    host_count_ += std::memcmp(entry.data, entry.want.data(), entry.bytes) != 0;
  }
}

std::uint64_t Repeated::differences() {
  std::uint64_t count = 0;
  count_.read(&count);
  return count + host_count_;
}

void make_once(const Backend& backend, const ReadyCall& call) {
  Buffer workspace(backend, call.workspace_bytes);
  GGM_REQUIRE_OK(call.make(workspace.data(), workspace.bytes(), nullptr));
  synchronize(backend);
}

std::uint64_t differences_of_runs(const Backend& backend, const ReadyCall& call, int times) {
  Buffer workspace(backend, call.workspace_bytes);
  Repeated repeated(backend, call.outputs);
  BusyStream other(backend);
  for (int i = 0; i < times; ++i) {
    other.keep_busy();
    repeated.poison();
    const ggm_status_t status = call.make(workspace.data(), workspace.bytes(), nullptr);
    if (status != GGM_STATUS_SUCCESS) GGM_REQUIRE_OK(status);
    repeated.compare();
  }
  return repeated.differences();
}

}  // namespace ggm_test
