// The routing of a case: ids by a pattern, locality, counts on the device. Shared by the tests of route, permute and moe.
#pragma once

#include <string>

#include "support/reference_route.h"
#include "support/scene.h"

namespace ggm_test {

enum class Locality { all_local, first_expert, expert_map, max_rows, num_tokens, clamped_num_tokens };
inline constexpr int kLocalities = 6;
enum class Ids { uniform, skewed, some_none, some_bad, none_at_all, extreme, extreme64 };
inline constexpr int kIdPatterns = 6;  // without the last, which needs 64-bit ids

struct RoutingCase {
  std::int64_t tokens = 1, top_k = 1, experts = 1;
  Locality locality = Locality::all_local;
  Ids ids = Ids::uniform;
  std::uint32_t seed = 0;

  std::string text() const;
  RouteInput input() const;  // everything that the reference needs
};

// Shapes that every table walks: tokens, top_k, experts.
inline constexpr std::int64_t kRoutingShapes[][3] = {{0, 1, 1},   {1, 1, 1},    {1, 8, 40},  {2, 2, 3},   {3, 1, 7},
                                                     {7, 4, 5},   {17, 8, 8},   {33, 2, 4},  {64, 3, 40}, {100, 6, 2},
                                                     {129, 1, 1}, {257, 2, 16}, {300, 8, 40}};
inline constexpr int kRoutingShapeCount = 13;

// The device arrays of a routing in a scene. Unused pointers are NULL.
struct RoutingTensors {
  Tensor *ids = nullptr, *expert_map = nullptr, *num_tokens = nullptr;
  const void* ids_data() const { return ids ? ids->data() : nullptr; }
  const std::int32_t* expert_map_data() const {
    return expert_map ? static_cast<const std::int32_t*>(expert_map->data()) : nullptr;
  }
  const std::int32_t* num_tokens_data() const {
    return num_tokens ? static_cast<const std::int32_t*>(num_tokens->data()) : nullptr;
  }
};
RoutingTensors routing_tensors(Scene* scene, const RouteInput& in, std::int32_t id_type, std::int64_t ids_ld,
                               bool with_ids = true);

// Spoils routing arrays in a way that the seed decides: a few wrong entries, two rows that claim one slot, shifted offsets, or
// nothing but random bits.
void spoil(Routing* routing, std::uint32_t seed);

// num_tokens of the input, clamped.
std::int64_t real_tokens(const RouteInput& in);

}  // namespace ggm_test
