// What all cases share: the handle, a call with fresh memory for its workspace, routing arrays made on the device.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "device_memory.h"
#include "ggm/ggm.h"

namespace ggm_test {

inline constexpr std::int32_t kTypes[] = {GGM_TYPE_FLOAT32, GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT16, GGM_TYPE_FLOAT64};
inline bool is_16bit(std::int32_t type) { return type == GGM_TYPE_BFLOAT16 || type == GGM_TYPE_FLOAT16; }

struct Session {
  ggm_handle_t handle = nullptr;
  int calls = 0;
};
inline Session& session() {
  static Session s;
  return s;
}

inline void require(ggm_status_t status, const std::string& what) {
  if (status != GGM_STATUS_SUCCESS) throw std::runtime_error(what + ": " + ggm_status_string(status) + ": " + ggm_last_error());
}

// Queries, calls with a workspace of exactly that size, waits.
template <typename Problem, typename Tensors, typename Query, typename Call>
void run(const std::string& name, Query query, Call call, const Problem& problem, const Tensors& tensors) {
  std::size_t bytes = 0;
  require(query(session().handle, &problem, &bytes), name);
  DeviceMemory memory;
  void* workspace = bytes ? memory.fresh(bytes) : nullptr;
  require(call(session().handle, &problem, &tensors, workspace, bytes, nullptr), name);
  cuda_check(cudaDeviceSynchronize(), name.c_str());
  ++session().calls;
}

struct Routing {
  std::int64_t tokens, top_k, experts;
  std::int32_t id_type = GGM_INDEX_INT32;
  std::int32_t* offsets = nullptr;
  std::int32_t* row_assignment = nullptr;
  std::int32_t* assignment_row = nullptr;
  void* ids = nullptr;
  std::int32_t* num_tokens = nullptr;
  std::uint32_t* faults = nullptr;
  std::int64_t rows() const { return tokens * top_k; }
};

// From ids that leave the last expert without tokens, and hold -1, twice the same and a bad one.
Routing make_routing(DeviceMemory& memory, std::int64_t tokens, std::int64_t top_k, std::int64_t experts, std::int32_t id_type,
                     bool with_map = false);

}  // namespace ggm_test
