// The vendor's grouped call: one launch, sizes on the host, pointers on the device.
#include "contender.h"
#include "expert_products.h"

namespace ggm_bench {

namespace {

struct GroupedCall {
  std::vector<GemmShape> shapes;
  DeviceBuffer pointers;  // a, b, c one after the other
};

std::shared_ptr<GroupedCall> make_call(const CellData& d, int set) {
  auto call = std::make_shared<GroupedCall>();
  const auto products = expert_products(d, set, d.input(set), d.output());
  std::vector<const void*> a, b, c;
  for (const ExpertProduct& p : products) {
    call->shapes.push_back(p.shape);
    a.push_back(p.pointers.a);
    b.push_back(p.pointers.b);
    c.push_back(p.pointers.c);
  }
  a.insert(a.end(), b.begin(), b.end());
  a.insert(a.end(), c.begin(), c.end());
  call->pointers.reserve(static_cast<std::int64_t>(a.size() * sizeof(void*)));
  // On the bench's stream, which does not wait for the default one.
  check(cudaMemcpyAsync(call->pointers.data(), a.data(), a.size() * sizeof(void*), cudaMemcpyHostToDevice, d.stream),
        "copy of pointers");
  return call;
}

}  // namespace

std::vector<Contender> cublas_grouped(const Context& context) {
  const CellData d = context.data;
  if (!has_expert_products(d)) return {};
  std::vector<std::shared_ptr<GroupedCall>> calls;
  for (int set = 0; set < d.sets(); ++set) calls.push_back(make_call(d, set));
  Contender c = cublas_loop(context).front();
  c.name = "cuBLAS grouped";
  // The call reads host arrays. Were one of its copies captured, a replay would read them after they are gone.
  c.capturable = false;
  c.enqueue = [d, calls, &cublas = context.cublas](int set, cudaStream_t) {
    const GroupedCall& call = *calls[set];
    const std::size_t count = call.shapes.size();
    void** pointers = call.pointers.as<void*>();
    cublas.grouped(call.shapes, d.cell->dtype, d.cell->output_dtype(), pointers, pointers + count, pointers + 2 * count);
  };
  return {c};
}

}  // namespace ggm_bench
