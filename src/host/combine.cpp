#include "host/combine.h"

#include <algorithm>

namespace ggm::host {
namespace {

// The rows of token t in ascending order, at most GGM_MAX_TOP_K of them.
int rows_of_token(const Rows& rows, std::int64_t t, std::int64_t top_k, std::int32_t* list) {
  int count = 0;
  for (std::int64_t j = 0; j < top_k; ++j) {
    const std::int32_t row = rows.assignment_row[t * top_k + j];
    if (row >= 0) list[count++] = row;
  }
  std::sort(list, list + count);
  return count;
}

template <typename T>
void combine_token(const Engine& engine, const Rows& rows, const CombineJob& job, std::int64_t t, const std::int32_t* list,
                   int count) {
  const T* weights = rows.weights<T>();
  T sum[kRun], buffer[kRun];
  for (std::int64_t c = 0; c < job.features; c += kRun) {
    const std::int64_t n = min64(job.features - c, kRun), out = t * job.output_ld + c;
    if (job.add) load(engine.family, job.output_type, job.output, out, n, sum);
    for (int i = 0; i < count; ++i) {
      const std::int64_t r = list[i];
      const T* row = view(engine.family, job.row_type, job.rows, r * job.row_ld + c, n, buffer);
      if (weights != nullptr) {
        for (std::int64_t k = 0; k < n; ++k) buffer[k] = weights[r] * row[k];
        row = buffer;
      }
      if (i == 0 && !job.add)  // the first product starts the sum: a 0 would turn -0 into +0
        std::memcpy(sum, row, n * sizeof(T));
      else
        for (std::int64_t k = 0; k < n; ++k) sum[k] = sum[k] + row[k];
    }
    store(engine.family, job.output_type, job.output, out, n, sum);
  }
}

}  // namespace

template <typename T>
void combine_rows(const Engine& engine, const Rows& rows, const CombineJob& job) {
  if (job.features == 0) return;
  const int threads = threads_for(work_of(job.tokens, job.features, job.top_k), job.threads);
  const std::int64_t grain = max64(1, min64(64, job.tokens / (4 * threads)));
  engine.pool.for_ranges(threads, job.tokens, grain, [&](std::int64_t begin, std::int64_t end, int) {
    std::int32_t list[GGM_MAX_TOP_K];
    for (std::int64_t t = begin; t < end; ++t) {
      const bool real = t < rows.real_tokens;
      const int count = real ? rows_of_token(rows, t, job.top_k, list) : 0;
      if (count > 0)
        combine_token<T>(engine, rows, job, t, list, count);
      else if (real ? !job.add : !job.keep_unused)
        store_zeros(job.output_type, job.output, t * job.output_ld, job.features);
    }
  });
}

template <typename T>
T inner_product(const Family& family, const Vector& u, const Vector& v, std::int64_t n) {
  T u_buffer[kDotColumns], v_buffer[kDotColumns], sum = 0;
  for (std::int64_t c = 0; c < n; c += kDotColumns) {
    const int columns = static_cast<int>(min64(n - c, kDotColumns));
    const T block = family.micro<T>().dot(view(family, u.type, u.base, u.index + c, columns, u_buffer),
                                          view(family, v.type, v.base, v.index + c, columns, v_buffer), columns);
    sum = c == 0 ? block : sum + block;
  }
  return sum;
}

template void combine_rows<float>(const Engine&, const Rows&, const CombineJob&);
template void combine_rows<double>(const Engine&, const Rows&, const CombineJob&);
template float inner_product<float>(const Family&, const Vector&, const Vector&, std::int64_t);
template double inner_product<double>(const Family&, const Vector&, const Vector&, std::int64_t);

}  // namespace ggm::host
