// Misuse of the functions that are no operations, and the fields and parameters that cannot be misused.
#include <cstdlib>
#include <cstring>

#include "misuse.h"

namespace misuse {
namespace {

// Creates with one wrong field. The handle must come back as NULL.
template <class Break>
std::function<ggm_status_t(ggm_handle_t)> create_with(Break break_it) {
  return [break_it](ggm_handle_t valid) {
    ggm_info_t info = GGM_INFO_INIT;
    ggm_get_info(valid, &info);
    ggm_create_params_t params = GGM_CREATE_PARAMS_INIT;
    params.backend = info.backend;
    break_it(params);
    ggm_handle_t handle = valid;
    const ggm_status_t status = ggm_create(&params, &handle);
    return handle == nullptr ? status : GGM_STATUS_INTERNAL_ERROR;
  };
}

#define CREATE(field, value, status, where, ...)                                                                 \
  FreeRow {                                                                                                      \
    "ggm_create_params_t." #field, #value, create_with([](ggm_create_params_t& p) { p.field = value; }), status, \
        {#field, __VA_ARGS__}, Where::where                                                                      \
  }

void* gives_nothing(void*, std::size_t, std::size_t) { return nullptr; }
void frees_nothing(void*, void*, std::size_t) {}

ggm_status_t create_newer() {
  struct {
    ggm_create_params_t params;
    unsigned char more[16];
  } newer{GGM_CREATE_PARAMS_INIT, {1}};
  newer.params.struct_size = sizeof newer;
  ggm_handle_t handle = nullptr;
  return ggm_create(&newer.params, &handle);
}

ggm_status_t info_of_size(ggm_handle_t valid, std::uint32_t size) {
  ggm_info_t info;
  std::memset(&info, 0x5a, sizeof info);
  info.struct_size = size;
  const ggm_status_t status = ggm_get_info(valid, &info);
  return info.backend == 0x5a5a5a5a ? status : GGM_STATUS_INTERNAL_ERROR;
}

ggm_handle_t stray() {
  alignas(256) static unsigned char zeros[4096];
  return reinterpret_cast<ggm_handle_t>(zeros);
}

void add_create(std::vector<FreeRow>& rows) {
  const std::string size = std::to_string(sizeof(ggm_create_params_t));
  const std::vector<FreeRow> table{
      {"ggm_create.handle",
       "NULL",
       [](ggm_handle_t) { return ggm_create(nullptr, nullptr); },
       GGM_STATUS_NULL_POINTER,
       {"handle", "NULL"}},
      {"ggm_create.params",
       "of a newer version, with a field in use that is not known",
       [](ggm_handle_t) { return create_newer(); },
       GGM_STATUS_INVALID_STRUCT_SIZE,
       {"params", "struct_size", size}},
      CREATE(struct_size, 0, GGM_STATUS_INVALID_STRUCT_SIZE, both, "0", size),
      CREATE(struct_size, 8, GGM_STATUS_INVALID_STRUCT_SIZE, both, "8", size),
      CREATE(flags, 2, GGM_STATUS_INVALID_FLAGS, both, "0x2", "0x1"),
      CREATE(backend, 3, GGM_STATUS_INVALID_ENUM, both, "3", "2"),
      CREATE(backend, -1, GGM_STATUS_INVALID_ENUM, both, "-1"),
      CREATE(device, -1, GGM_STATUS_INVALID_VALUE, both, "-1", "0"),
      CREATE(device, 1, GGM_STATUS_RESERVED_NOT_ZERO, host, "1", "host"),
      CREATE(device, 4096, GGM_STATUS_UNSUPPORTED_DEVICE, cuda, "4096"),
      {"ggm_create_params_t.device",
       "4096 with GGM_BACKEND_AUTO",
       create_with([](ggm_create_params_t& p) {
         p.backend = GGM_BACKEND_AUTO;
         p.device = 4096;
       }),
       GGM_STATUS_UNSUPPORTED_DEVICE,
       {"device", "4096"},
       Where::cuda},
      {"ggm_create_params_t.device",
       "with GGM_CREATE_CURRENT_DEVICE",
       create_with([](ggm_create_params_t& p) {
         p.flags = GGM_CREATE_CURRENT_DEVICE;
         p.device = 1;
       }),
       GGM_STATUS_RESERVED_NOT_ZERO,
       {"device", "1", "GGM_CREATE_CURRENT_DEVICE"}},
      CREATE(kernel_family, 3, GGM_STATUS_INVALID_ENUM, both, "3"),
      CREATE(kernel_family, -1, GGM_STATUS_INVALID_ENUM, both, "-1"),
      CREATE(kernel_family, GGM_KERNELS_CUDA_PORTABLE, GGM_STATUS_INVALID_VALUE, host, "backend"),
      CREATE(kernel_family, GGM_KERNELS_CUDA_HOPPER, GGM_STATUS_INVALID_VALUE, host, "backend"),
      CREATE(kernel_family, GGM_KERNELS_HOST_PLAIN, GGM_STATUS_INVALID_VALUE, cuda, "backend"),
      CREATE(log_level, 4, GGM_STATUS_INVALID_ENUM, both, "4", "3"),
      CREATE(log_level, -1, GGM_STATUS_INVALID_ENUM, both, "-1"),
      CREATE(host_threads, -1, GGM_STATUS_INVALID_VALUE, both, "-1", "1024"),
      CREATE(host_threads, 1025, GGM_STATUS_INVALID_VALUE, both, "1025", "1024"),
      CREATE(reserved, 7, GGM_STATUS_RESERVED_NOT_ZERO, both, "7", "0"),
      CREATE(allocate, gives_nothing, GGM_STATUS_NULL_POINTER, both, "deallocate", "NULL"),
      CREATE(deallocate, frees_nothing, GGM_STATUS_NULL_POINTER, both, "allocate", "NULL"),
      {"ggm_create_params_t.allocate",
       "gives NULL",
       create_with([](ggm_create_params_t& p) {
         p.allocate = gives_nothing;
         p.deallocate = frees_nothing;
       }),
       GGM_STATUS_OUT_OF_MEMORY,
       {"allocator", "bytes"}},
  };
  rows.insert(rows.end(), table.begin(), table.end());
}

}  // namespace

std::vector<FreeRow> free_rows() {
  std::vector<FreeRow> rows;
  add_create(rows);
  const std::string size = std::to_string(sizeof(ggm_info_t));
  const std::vector<FreeRow> table{
      {"ggm_destroy.handle",
       "no handle of ggm_create",
       [](ggm_handle_t) { return ggm_destroy(stray()); },
       GGM_STATUS_INVALID_HANDLE,
       {"handle"}},
      {"ggm_get_info.handle",
       "NULL",
       [](ggm_handle_t) {
         ggm_info_t info = GGM_INFO_INIT;
         return ggm_get_info(nullptr, &info);
       },
       GGM_STATUS_INVALID_HANDLE,
       {"handle", "NULL"}},
      {"ggm_get_info.handle",
       "no handle of ggm_create",
       [](ggm_handle_t) {
         ggm_info_t info = GGM_INFO_INIT;
         return ggm_get_info(stray(), &info);
       },
       GGM_STATUS_INVALID_HANDLE,
       {"handle"}},
      {"ggm_get_info.info",
       "NULL",
       [](ggm_handle_t valid) { return ggm_get_info(valid, nullptr); },
       GGM_STATUS_NULL_POINTER,
       {"info", "NULL"}},
      {"ggm_info_t.struct_size",
       "0",
       [](ggm_handle_t valid) { return info_of_size(valid, 0); },
       GGM_STATUS_INVALID_STRUCT_SIZE,
       {"struct_size", "0", size}},
      {"ggm_info_t.struct_size",
       "larger, with a field in use that is not known",
       [](ggm_handle_t valid) {
         struct {
           ggm_info_t info;
           unsigned char more[8];
         } newer{GGM_INFO_INIT, {1}};
         newer.info.struct_size = sizeof newer;
         return ggm_get_info(valid, &newer.info);
       },
       GGM_STATUS_INVALID_STRUCT_SIZE,
       {"struct_size", size}},
  };
  rows.insert(rows.end(), table.begin(), table.end());
  return rows;
}

std::vector<Exempt> exempt() {
  return {
      {"ggm_create_params_t.log", "NULL is legal, and a function pointer cannot be checked"},
      {"ggm_create_params_t.log_user", "passed through"},
      {"ggm_create_params_t.allocator_user", "passed through"},
      {"ggm_info_t.backend", "output"},
      {"ggm_info_t.device", "output"},
      {"ggm_info_t.kernel_family", "output"},
      {"ggm_info_t.compute_capability", "output"},
      {"ggm_info_t.multiprocessors", "output"},
      {"ggm_info_t.shared_memory_bytes", "output"},
      {"ggm_info_t.workspace_alignment", "output"},
      {"ggm_status_string.status", "any number is legal; the test 'misuse: texts' has unknown ones"},
      {"ggm_copy_last_error.buffer", "no status is returned; the test 'misuse: texts' has NULL"},
      {"ggm_copy_last_error.capacity", "no status is returned; the test 'misuse: texts' has 0 and short buffers"},
  };
}

}  // namespace misuse
