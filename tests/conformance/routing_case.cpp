#include "conformance/routing_case.h"

#include <algorithm>
#include <cstdint>
#include <sstream>

#include "support/inputs.h"

namespace ggm_test {

using Index = std::int64_t;

std::string RoutingCase::text() const {
  static const char* const localities[] = {"local",    "first_expert", "expert_map",
                                           "max_rows", "num_tokens",   "clamped_num_tokens"};
  static const char* const patterns[] = {"uniform", "skewed", "some_none", "some_bad", "none", "extreme", "extreme64"};
  std::ostringstream out;
  out << "T=" << tokens << " top_k=" << top_k << " E=" << experts << " " << localities[static_cast<int>(locality)] << " "
      << patterns[static_cast<int>(ids)];
  return out.str();
}

RouteInput RoutingCase::input() const {
  RouteInput in;
  in.tokens = tokens;
  in.top_k = top_k;
  in.experts = experts;
  Index total = experts;
  if (locality == Locality::first_expert) {
    in.first_expert = 2;
    in.experts_total = total = experts + 5;
  } else if (locality == Locality::expert_map) {
    in.experts_total = total = experts + 3;
    for (Index e = 0; e < total; ++e)  // reversed, with holes and one entry that is no expert
      in.expert_map.push_back(e % 4 == 3 ? -1 : e == 2 ? experts + 7 : std::max<Index>(-1, experts - 1 - e));
  } else if (locality == Locality::max_rows) {
    in.max_rows = std::max<Index>(1, tokens * top_k / 2);
  } else if (locality == Locality::num_tokens) {
    in.has_num_tokens = true;
    in.num_tokens = tokens * 2 / 3;
  } else if (locality == Locality::clamped_num_tokens) {
    in.has_num_tokens = true;
    in.num_tokens = tokens % 2 ? -4 : tokens + 1;
  }
  for (Index t = 0; t < tokens; ++t)
    for (Index j = 0; j < top_k; ++j) {
      const std::uint32_t h = mix(static_cast<std::uint32_t>(t), static_cast<std::uint32_t>(j), seed + 31u);
      Index id = static_cast<Index>(h % static_cast<std::uint32_t>(total));
      switch (ids) {
        case Ids::uniform: break;
        case Ids::skewed: id = (h >> 8) % 4 ? total - 1 : id; break;
        case Ids::some_none: id = (h >> 8) % 3 == 0 ? -1 : id; break;
        case Ids::some_bad:
          id = (h >> 8) % 5 == 0 ? -2 - static_cast<Index>(h >> 20) : (h >> 8) % 5 == 1 ? total + (h >> 24) : id;
          break;
        case Ids::none_at_all: id = -1; break;
        case Ids::extreme:
          id = h % 3 == 0 ? INT32_MIN + static_cast<Index>(h >> 24) : h % 3 == 1 ? INT32_MAX - static_cast<Index>(h >> 24) : id;
          break;
        // Low halves that would be good ids: reading 32 of the 64 bits goes unseen otherwise.
        case Ids::extreme64: id = h % 3 == 0 ? id + (Index{1} << (32 + h % 31)) : h % 3 == 1 ? INT64_MIN + id : id; break;
      }
      in.ids.push_back(id);
    }
  return in;
}

RoutingTensors routing_tensors(Scene* scene, const RouteInput& in, std::int32_t id_type, Index ids_ld, bool with_ids) {
  RoutingTensors out;
  const Index real = real_tokens(in);
  if (with_ids) {
    out.ids = &scene->input("ids", index_element(id_type), {1, in.tokens, in.top_k, ids_ld}, 1);
    // Ids of tokens that are not real are never read: -77 would be counted as a fault.
    out.ids->fill(
        [&](Index, Index t, Index j) { return t < real ? in.ids[static_cast<std::size_t>(t * in.top_k + j)] : Index{-77}; });
    if (!in.expert_map.empty())
      out.expert_map =
          &scene->input("expert_map", kInt32, {1, 1, static_cast<Index>(in.expert_map.size())}, 1).assign(in.expert_map);
  }
  if (in.has_num_tokens) {
    out.num_tokens = &scene->input("num_tokens", kInt32, {1, 1, 1}, 1);
    out.num_tokens->fill([&](auto, auto, auto) { return in.num_tokens; });
  }
  return out;
}

void spoil(Routing* routing, std::uint32_t seed) {
  const Index limit = static_cast<Index>(routing->assignment_row.size());
  std::vector<Index>* arrays[] = {&routing->group_offsets, &routing->row_assignment, &routing->assignment_row};
  for (std::size_t which = 0; which < 3; ++which) {
    if (seed % 4 != which && seed % 4 != 3) continue;  // one array, or all three
    std::vector<Index>& array = *arrays[which];
    const std::uint32_t one_in = seed % 5 == 0 ? 1 : 2 + seed % 7;
    for (std::size_t i = 0; i < array.size(); ++i) {
      const std::uint32_t h = mix(static_cast<std::uint32_t>(i), seed, static_cast<std::uint32_t>(which));
      if (h % one_in != 0) continue;
      switch ((h >> 8) % 6) {
        case 0: array[i] = INT32_MIN + static_cast<Index>(h >> 28); break;
        case 1: array[i] = INT32_MAX - static_cast<Index>(h >> 28); break;
        case 2: array[i] = -1; break;
        case 3: array[i] = array[(i * 7 + h) % array.size()]; break;
        case 4: array[i] = static_cast<Index>(h >> 4) % (limit + 3); break;
        default: array[i] = static_cast<std::int32_t>(h * 2654435761u); break;
      }
    }
  }
}

Index real_tokens(const RouteInput& in) {
  Faults ignored{};
  return clamp_tokens(in.tokens, in.has_num_tokens, in.num_tokens, &ignored);
}

}  // namespace ggm_test
