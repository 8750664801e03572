#include "fuzz/fuzz.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace ggm_test::fuzz {
namespace {

double environment(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtod(text, nullptr) : otherwise;
}

}  // namespace

double span(Index batches, Index stride, Index rows, Index ld, Index columns) {
  if (batches == 0 || rows == 0 || columns == 0) return 0;
  const auto real = [](Index i) { return static_cast<double>(i); };
  return real(batches - 1) * real(stride) + real(rows - 1) * real(ld) + real(columns);
}

bool Round::affordable(std::initializer_list<double> elements, double multiplies) const {
  constexpr double kElements = 500e3, kMultiplies = 5e6;
  constexpr std::size_t kWorkspaceBytes = 8 << 20;
  for (const double count : elements)
    if (count > kElements) return false;
  return multiplies <= kMultiplies && workspace_bytes_ <= kWorkspaceBytes;
}

std::uint32_t* Round::faults() {
  if (draw.chance(30)) return nullptr;
  faults_ = &scene.faults().fill([&](auto, auto, auto) {
    return draw.any_of<Index>({0, 0, 0, 5, Index{UINT32_MAX} - 1, Index{UINT32_MAX}});
  });
  return static_cast<std::uint32_t*>(faults_->data());
}

ggm_status_t Round::spoil_arguments(Scene::Arguments* arguments) {
  switch (draw.choice(0, 3)) {
    case 0: arguments->handle = nullptr; return GGM_STATUS_INVALID_HANDLE;
    case 1:
      if (scene.backend().cuda) return GGM_STATUS_SUCCESS;
      arguments->stream = reinterpret_cast<ggm_stream_t>(std::uintptr_t{0x10});
      return GGM_STATUS_INVALID_STREAM;
    case 2:
      if (workspace_bytes_ == 0) return GGM_STATUS_SUCCESS;
      arguments->workspace_bytes -= draw.chance(50) ? 1 : at(draw.between(1, static_cast<Index>(workspace_bytes_)));
      return GGM_STATUS_WORKSPACE_TOO_SMALL;
    default:
      if (workspace_bytes_ == 0) return GGM_STATUS_SUCCESS;
      arguments->workspace = static_cast<char*>(arguments->workspace) + draw.between(1, GGM_WORKSPACE_ALIGNMENT - 1);
      return GGM_STATUS_MISALIGNED;
  }
}

void Round::require_status(const char* operation, ggm_status_t got, ggm_status_t want) const {
  INFO(operation << ": " << ggm_status_string(got) << ", expected " << ggm_status_string(want) << "; " << ggm_last_error());
  REQUIRE(got == want);
  if (got == GGM_STATUS_SUCCESS) return;
  CHECK(std::strlen(ggm_last_error()) > 0);
  const std::string written = scene.written_output();
  INFO("refused, but wrote to " << written);
  REQUIRE(written.empty());
}

void Round::compare(const Tensor& tensor, const std::vector<double>& want) const {
  const std::string wrong = difference(tensor, want);
  INFO(wrong);
  REQUIRE(wrong.empty());
}

void Round::compare(const Tensor& tensor, const std::vector<Index>& want) const {
  REQUIRE(static_cast<std::size_t>(tensor.size()) == want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    const Index got = tensor.integer(static_cast<Index>(i));
    if (got == want[i]) continue;
    INFO(tensor.name() << "[" << i << "]");
    REQUIRE(got == want[i]);
  }
}

void Round::compare_faults(const Faults& counted, bool any_work) const {
  if (!faults_) return;
  for (Index i = 0; i < GGM_FAULT_WORDS; ++i) {
    const Index before = static_cast<Index>(faults_->initial_bits(0, 0, i)), now = faults_->integer(i);
    const Index want = std::min(before + counted[at(i)], Index{UINT32_MAX});
    INFO("fault word " << i << ", " << before << " before");
    if (any_work || now != before) REQUIRE(now == want);
  }
}

void each_seed(const std::function<void(std::uint64_t)>& one) {
  const double seconds = environment("GGM_FUZZ_SECONDS", 2);
  const auto first = static_cast<std::uint64_t>(environment("GGM_FUZZ_SEED", 1));
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  bool any = false;
  for (std::uint64_t seed = first; !any || elapsed() < seconds; ++seed) {
    const std::string text = "seed " + std::to_string(seed);
    if (!case_selected(text)) continue;
    any = true;
    GGM_CASE(text);
    one(seed);
  }
}

void rounds(bool cuda, void (*one)(Round&)) {
  std::vector<Handle> handles;
  for (const Backend& backend : backends(cuda)) handles.emplace_back(backend);
  each_seed([&](std::uint64_t seed) {
    const Handle& handle = handles[seed % handles.size()];
    INFO(handle.backend().name);
    Round round(handle, seed);
    one(round);
  });
}

}  // namespace ggm_test::fuzz
