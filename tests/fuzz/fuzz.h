// One round of the fuzzer: a random problem of one operation, now and then with a field that is wrong; tensors that fit it,
// with hostile content where the device reads sizes and indices; a call that is now and then made wrongly. What must hold:
//   - the call accepts and refuses what the size query does, with the same status and a text;
//   - a wrong call gets the status of its mistake;
//   - a refused call writes nothing, an accepted one stays inside its outputs and its workspace to the byte (Scene);
//   - every output has the bits of the reference, and every fault is counted.
#pragma once

#include <functional>
#include <string>

#include "fuzz/draw.h"
#include "fuzz/mutate.h"
#include "support/compare.h"
#include "support/reference_route.h"
#include "support/scene.h"

namespace ggm_test::fuzz {

inline std::size_t at(Index i) { return static_cast<std::size_t>(i); }
// A leading dimension or stride field, resolved.
inline Index packed_if_zero(Index field, Index packed) { return field ? field : packed; }

// A mistake in the tensors of a call: done when it applies to the problem at hand, it must lead to that status.
template <typename T>
struct Mistake {
  bool applies;
  ggm_status_t status;
  void (*make)(T* tensors);
};

class Round {
 public:
  Round(const Handle& handle, std::uint64_t seed) : draw(seed), scene(handle) {}

  Draw draw;
  Scene scene;

  // Asks the size query about a problem that was drawn valid, often after spoiling one of its fields. True when it is accepted.
  template <typename P, typename T>
  bool accepted(const Operation<P, T>& operation, P* problem, std::size_t first_32bit_field) {
    const bool spoilt = draw.chance(30);
    if (spoilt) spoil_field(draw, problem, sizeof(P), first_32bit_field);
    query_ = operation.workspace_size(scene.handle(), problem, &workspace_bytes_);
    INFO(operation.name << "_workspace_size: " << ggm_status_string(query_) << ": " << ggm_last_error());
    if (!spoilt) REQUIRE(query_ == GGM_STATUS_SUCCESS);
    if (query_ != GGM_STATUS_SUCCESS) workspace_bytes_ = 4096;
    return query_ == GGM_STATUS_SUCCESS;
  }

  // Whether tensors of so many elements, this workspace and so many multiply-adds are worth the time of a round.
  bool affordable(std::initializer_list<double> elements, double multiplies = 0) const;

  // The array of faults with counts in it already, or NULL.
  std::uint32_t* faults();

  // The call with tensors that fit the problem, or fit any problem when the query refused it. True when outputs are to be
  // compared.
  template <typename P, typename T>
  bool call(const Operation<P, T>& operation, const P& problem, T tensors, std::initializer_list<Mistake<T>> mistakes) {
    Buffer workspace(scene.backend(), workspace_bytes_);
    set_bytes(scene.backend(), workspace.data(), draw.choice(0, 255), workspace.bytes());
    Scene::Arguments arguments{scene.handle(), workspace.data(), workspace.bytes(), nullptr};
    if (workspace_bytes_ == 0 && draw.chance(50)) arguments.workspace = nullptr;
    ggm_status_t want = query_;
    if (want == GGM_STATUS_SUCCESS && draw.chance(15)) {
      const Mistake<T>& mistake = *(mistakes.begin() + draw.between(0, static_cast<Index>(mistakes.size()) - 1));
      if (draw.chance(40)) {
        want = spoil_arguments(&arguments);
      } else if (draw.chance(10)) {
        tensors.reserved = 1;
        want = GGM_STATUS_RESERVED_NOT_ZERO;
      } else if (mistake.applies) {
        mistake.make(&tensors);
        want = mistake.status;
      }
    }
    const ggm_status_t got = scene.call(operation, problem, tensors, workspace, arguments);
    require_status(operation.name, got, want);
    return got == GGM_STATUS_SUCCESS;
  }

  void compare(const Tensor& tensor, const std::vector<double>& want) const;
  void compare(const Tensor& tensor, const std::vector<Index>& want) const;
  // Faults are added to what was there and saturate. Without any work a call may leave out its checks of device data: then the
  // words hold the old counts or these.
  void compare_faults(const Faults& counted, bool any_work = true) const;

 private:
  ggm_status_t spoil_arguments(Scene::Arguments* arguments);
  void require_status(const char* operation, ggm_status_t got, ggm_status_t want) const;

  ggm_status_t query_ = GGM_STATUS_SUCCESS;
  std::size_t workspace_bytes_ = 0;
  Tensor* faults_ = nullptr;
};

// Elements from the first to one past the last of [batches, rows, columns], as a number that no hostile size overflows.
double span(Index batches, Index stride, Index rows, Index ld, Index columns);

// Seeds until the time is over. The first one and the seconds: environment GGM_FUZZ_SEED, GGM_FUZZ_SECONDS.
void each_seed(const std::function<void(std::uint64_t)>& one);

// A round for each seed, over the kernel families in turn.
void rounds(bool cuda, void (*one)(Round&));

}  // namespace ggm_test::fuzz

#define GGM_FUZZ(name, one)                                                  \
  TEST_CASE("fuzz: " name, "[host]") { ggm_test::fuzz::rounds(false, one); } \
  TEST_CASE("fuzz: " name ", GPU", "[gpu]") { ggm_test::fuzz::rounds(true, one); }
