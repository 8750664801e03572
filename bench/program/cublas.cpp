#include "cublas.h"

#include <stdexcept>
#include <string>

namespace ggm_bench {

void check_cublas(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(std::string(what) + ": " + cublasGetStatusString(status));
}

cudaDataType_t cublas_type(Dtype type) {
  switch (type) {
    case Dtype::float32: return CUDA_R_32F;
    case Dtype::bf16: return CUDA_R_16BF;
    case Dtype::fp16: return CUDA_R_16F;
    case Dtype::int32: break;
  }
  throw std::runtime_error("int32 is not an element type of a product");
}

GemmShape forward_shape(std::int64_t rows, std::int64_t n, std::int64_t k, bool kn) {
  return {kn ? CUBLAS_OP_N : CUBLAS_OP_T, CUBLAS_OP_N, n, rows, k, kn ? n : k, k, n};
}

GemmShape gradient_shape(std::int64_t rows, std::int64_t n, std::int64_t k) {
  return {CUBLAS_OP_N, CUBLAS_OP_T, k, n, rows, k, n, k};
}

Cublas::Cublas(cudaStream_t stream) {
  check_cublas(cublasCreate(&handle_), "cublasCreate");
  // The stream first: setting it resets the workspace.
  check_cublas(cublasSetStream(handle_, stream), "cublasSetStream");
  workspace_.reserve(std::int64_t{64} << 20);
  check_cublas(cublasSetWorkspace(handle_, workspace_.data(), static_cast<std::size_t>(workspace_.bytes())),
               "cublasSetWorkspace");
}

Cublas::~Cublas() { cublasDestroy(handle_); }

int Cublas::version() const {
  int version = 0;
  check_cublas(cublasGetVersion(handle_, &version), "cublasGetVersion");
  return version;
}

void Cublas::gemm(const GemmShape& s, Dtype in, Dtype out, const GemmPointers& p) {
  const float alpha = 1, beta = 0;
  check_cublas(
      cublasGemmEx_64(handle_, s.op_a, s.op_b, s.m, s.n, s.k, &alpha, p.a, cublas_type(in), s.lda, p.b, cublas_type(in), s.ldb,
                      &beta, p.c, cublas_type(out), s.ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
      "cublasGemmEx");
}

void Cublas::batched(const GemmShape& s, Dtype in, Dtype out, const GemmPointers& p, std::int64_t stride_a,
                     std::int64_t stride_b, std::int64_t stride_c, std::int64_t count) {
  const float alpha = 1, beta = 0;
  check_cublas(cublasGemmStridedBatchedEx_64(handle_, s.op_a, s.op_b, s.m, s.n, s.k, &alpha, p.a, cublas_type(in), s.lda,
                                             stride_a, p.b, cublas_type(in), s.ldb, stride_b, &beta, p.c, cublas_type(out),
                                             s.ldc, stride_c, count, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
               "cublasGemmStridedBatchedEx");
}

void Cublas::grouped(const std::vector<GemmShape>& shapes, Dtype in, Dtype out, const void* const* a, const void* const* b,
                     void* const* c) {
  std::vector<cublasOperation_t> op_a, op_b;
  std::vector<std::int64_t> m, n, k, lda, ldb, ldc;
  for (const GemmShape& s : shapes) {
    op_a.push_back(s.op_a);
    op_b.push_back(s.op_b);
    m.push_back(s.m);
    n.push_back(s.n);
    k.push_back(s.k);
    lda.push_back(s.lda);
    ldb.push_back(s.ldb);
    ldc.push_back(s.ldc);
  }
  const std::vector<float> alpha(shapes.size(), 1.0f), beta(shapes.size(), 0.0f);
  const std::vector<std::int64_t> ones(shapes.size(), 1);
  check_cublas(cublasGemmGroupedBatchedEx_64(handle_, op_a.data(), op_b.data(), m.data(), n.data(), k.data(), alpha.data(), a,
                                             cublas_type(in), lda.data(), b, cublas_type(in), ldb.data(), beta.data(), c,
                                             cublas_type(out), ldc.data(), static_cast<std::int64_t>(shapes.size()),
                                             ones.data(), CUBLAS_COMPUTE_32F),
               "cublasGemmGroupedBatchedEx");
}

}  // namespace ggm_bench
