#include "cuda/gemm/wgmma.h"

#include <cuda_runtime.h>

#include <atomic>

#include "base/status.h"
#include "cuda/device/hopper/hopper_call.h"
#include "cuda/gemm/wgmma_kernels.h"
#include "cuda/runtime/launch.cuh"
#include "cuda/runtime/status.h"

namespace ggm::cuda {
namespace {

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);
std::atomic<EncodeTiled> encode_tiled{nullptr};  // the driver's function, the same in every thread

ggm_status_t find_encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) return cuda_status(error, "cuTensorMapEncodeTiled");
  encode_tiled.store(reinterpret_cast<EncodeTiled>(function));
  return GGM_STATUS_SUCCESS;
}

constexpr int kBodyRegisters = 100;  // a kernel with a body has 128 or 168

const void* find_kernel(int kernel, Type type, Order b_order) {
  const bool contiguous = b_order == Order::inner_contiguous;
  const WgmmaKernel& row = kWgmmaKernels[kernel];
  if (row.over_k) return wgmma_kernel_k(type);
  if (row.for_few()) {
    if (row.gathered) return contiguous ? wgmma_kernel_few_gather_contiguous(type) : wgmma_kernel_few_gather_strided(type);
    return contiguous ? wgmma_kernel_few_rows_contiguous(type) : wgmma_kernel_few_rows_strided(type);
  }
  if (row.relayed) return contiguous ? wgmma_kernel_relay_contiguous(type) : wgmma_kernel_relay_strided(type);
  if (row.gathered) return contiguous ? wgmma_kernel_gather_contiguous(type) : wgmma_kernel_gather_strided(type);
  return contiguous ? wgmma_kernel_rows_contiguous(type) : wgmma_kernel_rows_strided(type);
}

CUtensorMapDataType map_type(Type type) {
  switch (type) {
    case Type::bfloat16: return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case Type::float16: return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    default: return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  }
}

struct MapShape {
  cuuint64_t extents[4], strides[3];
  cuuint32_t box[4];
};

ggm_status_t encode(const MapSource& source, const MapShape& shape, CUtensorMap* map) {
  const cuuint32_t steps[4] = {1, 1, 1, 1};
  const CUresult result =
      encode_tiled.load()(map, map_type(source.type), 4, const_cast<void*>(source.base), shape.extents, shape.strides,
                          shape.box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                          CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    return fail(GGM_STATUS_CUDA_ERROR, "cuTensorMapEncodeTiled: error %d (base %p, %lld x %lld, rows of %lld bytes)",
                static_cast<int>(result), source.base, static_cast<long long>(source.rows),
                static_cast<long long>(source.inner), static_cast<long long>(source.ld_bytes));
  return GGM_STATUS_SUCCESS;
}

// Elements of 128 bytes, the width of the swizzle.
cuuint32_t line_of(Type type) { return static_cast<cuuint32_t>(128 / bytes_of(type)); }

// Boxes of `box_rows` rows of 128 bytes.
ggm_status_t encode_rows(const MapSource& source, int box_rows, CUtensorMap* map) {
  const auto ld = static_cast<cuuint64_t>(source.ld_bytes), rows = static_cast<cuuint64_t>(source.rows);
  MapShape shape{{static_cast<cuuint64_t>(source.inner), rows, static_cast<cuuint64_t>(source.groups), 1},
                 {ld, source.by_group ? static_cast<cuuint64_t>(source.group_bytes) : ld, ld},
                 {line_of(source.type), static_cast<cuuint32_t>(box_rows), 1, 1}};
  if (source.ends_with_group) {
    shape.extents[1] = kRaggedRows;
    shape.extents[2] = rows + 1;
    shape.extents[3] = cuuint64_t{kRaggedRows} + 1;
    shape.strides[1] = ld;
    shape.strides[2] = (cuuint64_t{1} << 34) - ld;
  }
  return encode(source, shape, map);
}

// Boxes of eight rows of two times 128 bytes, of rows of whole 128 bytes.
ggm_status_t encode_pairs(const MapSource& d, CUtensorMap* map) {
  const cuuint32_t line = line_of(d.type);
  const auto ld = static_cast<cuuint64_t>(d.ld_bytes);
  const MapShape shape{
      {line, static_cast<cuuint64_t>(d.inner) / line, static_cast<cuuint64_t>(d.rows), static_cast<cuuint64_t>(d.groups)},
      {128, ld, d.by_group ? static_cast<cuuint64_t>(d.group_bytes) : ld},
      {line, 2, 8, 1}};
  return encode(d, shape, map);
}

constexpr int kStepRows = 64;

// Which boxes an operand is copied in.
enum class MapBoxes {
  steps,             // of 64 rows
  steps_and_halves,  // those, and of 32 rows
  widths,            // of 8 rows, 16 and so on: tiles have any multiple of 8, and K inside
};

ggm_status_t make_map(const MapSource& source, MapBoxes boxes, OperandMap* map) {
  map->by_group = source.by_group;
  map->from_first_row = source.divided;
  map->ends_with_group = source.ends_with_group;
  if (boxes == MapBoxes::widths) {
    for (int box = 0; box < kRightBoxes; ++box) GGM_TRY(encode_rows(source, 8 << box, &map->boxes[box]));
    return GGM_STATUS_SUCCESS;
  }
  GGM_TRY(encode_rows(source, kStepRows, &map->boxes[0]));
  return boxes == MapBoxes::steps ? GGM_STATUS_SUCCESS : encode_rows(source, kStepRows / 2, &map->boxes[1]);
}

// The window that rows of A pass through, as a tensor of rows.
MapSource window_of(const MapSource& a, const Relay& relay) {
  MapSource window = a;
  window.base = relay.window;
  window.ld_bytes = relay.ld_bytes;
  window.rows = relay.rows + kRelayTail;
  window.divided = false;
  return window;
}

// How the rows of x for inner products come: through the stages of operands where they are aligned, sorted ones by the copy
// engine; else each is read where it is needed.
ggm_status_t make_dots_map(const WgmmaKernel& row, const GemmCall& call, const MapSource& a, const MapSource& d,
                           HopperCall* hopper) {
  const Epilogue& e = call.epilogue;
  if (e.dots == nullptr || !(row.gathered || (e.dot_rows == nullptr && a.divided))) return GGM_STATUS_SUCCESS;
  MapSource x = a;
  x.base = e.dot_x;
  x.ld_bytes = e.dot_x_ld * bytes_of(call.type);
  x.inner = d.inner;
  hopper->dots_by_stages = x.obstacle() == nullptr;
  return hopper->dots_by_stages && !row.gathered ? make_map(x, MapBoxes::widths, &hopper->dots_map) : GGM_STATUS_SUCCESS;
}

// Results that need no more than a rounding, into rows of D that lie as those of the group do.
bool fits_result_map(const GemmCall& call, const MapSource& d) {
  const Epilogue& e = call.epilogue;
  if (e.kind != EpilogueKind::store || e.row_weight != nullptr || e.d_rows != nullptr) return false;
  if (!e.only_rounds(e.d_type) || (e.d_type != Type::float32 && e.d_type != call.type)) return false;
  return call.all_rows_stored() && d.obstacle() == nullptr;
}

ggm_status_t make_result_map(const GemmCall& call, const MapSource& d, ResultMap* map) {
  if (!fits_result_map(call, d)) return GGM_STATUS_SUCCESS;
  map->used = true;
  map->wide = d.type == Type::float32;
  map->by_group = d.by_group;
  map->from_first_row = d.divided;
  map->paired = d.inner % line_of(d.type) == 0;
  return map->paired ? encode_pairs(d, &map->box) : encode_rows(d, 8, &map->box);
}

}  // namespace

const char* MapSource::obstacle() const {
  if (reinterpret_cast<std::uintptr_t>(base) % 16 != 0) return "the address is no multiple of 16";
  if (ld_bytes % 16 != 0 || (by_group && group_bytes % 16 != 0)) return "a stride is no multiple of 16 bytes";
  if (by_group && group_bytes <= 0) return "groups share a matrix";
  if (inner < 1 || rows < 1 || groups < 1) return "the tensor is empty";
  if (inner * bytes_of(type) % 16 != 0) return "a row is no multiple of 16 bytes";
  if (ld_bytes <= 0 || ld_bytes >= std::int64_t{1} << 31 || rows >= kRaggedRows) return "the tensor is too large";
  if (by_group && group_bytes >= std::int64_t{1} << 40) return "the tensor is too large";
  return nullptr;
}

ggm_status_t load_wgmma_kernels(bool* usable) {
  *usable = false;
  int device = 0, major = 0, minor = 0, shared_bytes = 0;
  GGM_TRY(cuda_status(cudaGetDevice(&device), "cudaGetDevice"));
  GGM_TRY(cuda_status(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "capability"));
  GGM_TRY(cuda_status(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "capability"));
  GGM_TRY(cuda_status(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "shared memory"));
  if (10 * major + minor != 90 || shared_bytes < kWgmmaSharedBytes) return GGM_STATUS_SUCCESS;
  for (int kernel = 0; kernel < kWgmmaKernelCount; ++kernel)
    for (Type type : {Type::bfloat16, Type::float16})
      for (Order order : {Order::inner_contiguous, Order::inner_strided}) {
        const void* function = find_kernel(kernel, type, order);
        cudaFuncAttributes attributes;
        GGM_TRY(cuda_status(cudaFuncGetAttributes(&attributes, function), kWgmmaKernels[kernel].name));
        // Code for anything but 9.0a has no body, and no use for registers.
        if (attributes.numRegs < kBodyRegisters) return GGM_STATUS_SUCCESS;
        GGM_TRY(cuda_status(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, kWgmmaSharedBytes),
                            kWgmmaKernels[kernel].name));
      }
  GGM_TRY(find_encoder());
  *usable = encode_tiled.load() != nullptr;
  return GGM_STATUS_SUCCESS;
}

ggm_status_t launch_wgmma(int kernel, const GemmCall& call, const MapSource& a, const MapSource& b, const MapSource& d,
                          const Relay& relay, const Launch& launch) {
  if (call.group_count == 0) return GGM_STATUS_SUCCESS;
  const WgmmaKernel& row = kWgmmaKernels[kernel];
  HopperCall hopper;
  hopper.gemm = call;
  GGM_TRY(make_map(b, MapBoxes::steps, &hopper.left_map));
  hopper.relay = relay;
  if (row.relayed)
    GGM_TRY(make_map(window_of(a, relay), MapBoxes::widths, &hopper.right_map));
  else if (!row.gathered)
    GGM_TRY(make_map(a, row.over_k ? MapBoxes::steps_and_halves : MapBoxes::widths, &hopper.right_map));
  GGM_TRY(make_result_map(call, d, &hopper.result));
  GGM_TRY(make_dots_map(row, call, a, d, &hopper));

  int device = 0, available = 0;
  GGM_TRY(cuda_status(cudaGetDevice(&device), "cudaGetDevice"));
  GGM_TRY(cuda_status(cudaDeviceGetAttribute(&available, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute"));
  const int blocks = (launch.multiprocessors < available ? launch.multiprocessors : available) / 2 * 2;
  // Clusters are asked for here: portable architectures, for which the kernels have no body, know no such attribute of a
  // kernel.
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {2, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(row.gathered ? 512 : 384);
  config.dynamicSmemBytes = kWgmmaSharedBytes;
  config.stream = launch.stream;
  config.attrs = attributes;
  config.numAttrs = add_dependent(launch, 1, attributes);
  void* arguments[] = {&hopper};
  return cuda_status(cudaLaunchKernelExC(&config, find_kernel(kernel, call.type, call.b_order), arguments), row.name);
}

}  // namespace ggm::cuda
