// cuBLAS for row-major operands: a handle with its own workspace, so that its calls can be captured, and the two products of
// this bench. float32 stays float32 arithmetic: no TF32.
#pragma once

#include <cublas_v2.h>

#include <cstdint>
#include <vector>

#include "device.h"
#include "types.h"

namespace ggm_bench {

void check_cublas(cublasStatus_t status, const char* what);
cudaDataType_t cublas_type(Dtype type);

// A column-major cuBLAS call that does a row-major product; one struct feeds the plain, batched and grouped calls.
struct GemmShape {
  cublasOperation_t op_a = CUBLAS_OP_N, op_b = CUBLAS_OP_N;
  std::int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
};
// D [rows, n] = X [rows, k] @ W, W [n, k] or (kn) [k, n]. cuBLAS's A is W, its B is X.
GemmShape forward_shape(std::int64_t rows, std::int64_t n, std::int64_t k, bool kn);
// D [n, k] = G^T [rows, n] @ X [rows, k]. cuBLAS's A is X, its B is G.
GemmShape gradient_shape(std::int64_t rows, std::int64_t n, std::int64_t k);

struct GemmPointers {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
};

class Cublas {
 public:
  explicit Cublas(cudaStream_t stream);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  void gemm(const GemmShape& shape, Dtype in, Dtype out, const GemmPointers& pointers);
  void batched(const GemmShape& shape, Dtype in, Dtype out, const GemmPointers& pointers, std::int64_t stride_a,
               std::int64_t stride_b, std::int64_t stride_c, std::int64_t count);
  // Groups of one product each; a, b, c are device arrays of pointers.
  void grouped(const std::vector<GemmShape>& shapes, Dtype in, Dtype out, const void* const* a, const void* const* b,
               void* const* c);
  int version() const;
  std::int64_t workspace_bytes() const { return workspace_.bytes(); }

 private:
  cublasHandle_t handle_ = nullptr;
  DeviceBuffer workspace_;
};

}  // namespace ggm_bench
