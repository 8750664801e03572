// Host threads on one handle and one device: BR-054.
#include <atomic>
#include <barrier>
#include <map>
#include <mutex>
#include <thread>

#include "cases/child_process.h"
#include "cases/device_case.h"
#include "cases/gemm_case.h"
#include "cases/moe_case.h"

namespace ggm_test::cases {
namespace {

constexpr int kThreads = 8;
constexpr std::int64_t kTokens[] = {1, 17, 300, 5000};

// A case with its expected outputs, made once and read by all threads.
struct Task {
  std::string name;
  MoeCase moe;
  GemmCase gemm;
  std::vector<std::unique_ptr<Tensor>> want;  // forward: y; backward: dx, d_weight, d_routing_weights; product: d
  enum { forward, backward, product } kind = forward;
};

std::vector<Task> make_tasks(const Handle& handle) {
  std::vector<Task> tasks;
  for (std::int64_t tokens : kTokens)
    for (std::int32_t type : kCaseTypes) {
      const std::string text = std::string(name_of(type)) + " " + std::to_string(tokens) + " tokens";
      const auto ids = [](auto t, auto j) { return (3 * t + j) % 5; };
      for (auto kind : {Task::forward, Task::backward}) {
        Task& task = tasks.emplace_back();
        task.kind = kind;
        task.name = text + (kind == Task::forward ? " forward" : " backward");
        task.moe = integer_moe(type, tokens, 2, 5, 64, 48, ids);
        task.moe.combine = tokens == 300 ? GGM_COMBINE_TWO_STEP : GGM_COMBINE_AUTO;
        if (kind == Task::forward) {
          task.want.push_back(expected_tensor(handle, type, {1, tokens, 48}, expected_forward(task.moe)));
        } else {
          const MoeGradients want = expected_backward(task.moe);
          task.want.push_back(expected_tensor(handle, type, {1, tokens, 64}, want.dx));
          task.want.push_back(expected_tensor(handle, type, {5, 48, 64}, want.d_weight));
          task.want.push_back(expected_tensor(handle, F32, {1, tokens, 2}, want.d_routing_weights));
        }
      }
      for (bool gradient : {false, true}) {
        Task& task = tasks.emplace_back();
        task.kind = Task::product;
        task.name = text + (gradient ? " variable K" : " contiguous");
        const Ids sizes = {tokens / 3, 0, tokens - tokens / 3};
        task.gemm = gradient ? variable_k(type, sizes, tokens, 48, 64) : contiguous(type, sizes, tokens, 48, 64);
        const Shape shape = gradient ? Shape{3, 48, 64} : Shape{1, tokens, 48};
        task.want.push_back(expected_tensor(handle, type, shape, expected_gemm(task.gemm)));
      }
    }
  return tasks;
}

// One thread's own tensors for a task.
class Job {
 public:
  Job(const Handle& handle, const Task& task) : task_(task) {
    if (task.kind == Task::product) {
      gemm_ = std::make_unique<GemmCall>(handle, task.gemm);
      gemm_->upload();
      const auto call = std::make_shared<Enqueued<ggm_grouped_gemm_problem_t, ggm_grouped_gemm_tensors_t>>(
          handle, op::grouped_gemm, gemm_->problem, gemm_->tensors);
      call_ = [call](ggm_stream_t stream) { return call->status(stream); };
      outputs_ = {gemm_->d};
      return;
    }
    moe_ = std::make_unique<MoeCall>(handle, task.moe);
    if (task.kind == Task::forward) {
      const auto call = std::make_shared<Enqueued<ggm_moe_problem_t, ggm_moe_forward_tensors_t>>(
          handle, op::moe_forward, moe_->problem, moe_->forward_tensors());
      call_ = [call](ggm_stream_t stream) { return call->status(stream); };
      outputs_ = {moe_->y};
    } else {
      const auto call = std::make_shared<Enqueued<ggm_moe_problem_t, ggm_moe_backward_tensors_t>>(
          handle, op::moe_backward, moe_->problem, moe_->backward_tensors());
      call_ = [call](ggm_stream_t stream) { return call->status(stream); };
      outputs_ = {moe_->dx, moe_->d_weight, moe_->d_routing_weights};
    }
    moe_->upload();
  }

  // Poison, the call (eager, or through a graph captured in relaxed mode), comparison. Returns the library's status.
  ggm_status_t run(const Stream& stream, bool capture, const Counter& wrong) const {
    for (const Tensor* output : outputs_) enqueue_poison(*output, stream);
    ggm_status_t status = GGM_STATUS_SUCCESS;
    if (capture) {
      const Graph graph(cudaStreamCaptureModeRelaxed, stream, [&] { status = call_(stream); });
      graph.launch(stream);
      stream.wait();
    } else {
      status = call_(stream);
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i) enqueue_compare(*outputs_[i], *task_.want[i], wrong, stream);
    return status;
  }
  const std::string& name() const { return task_.name; }

 private:
  const Task& task_;
  std::unique_ptr<MoeCall> moe_;
  std::unique_ptr<GemmCall> gemm_;
  std::function<ggm_status_t(ggm_stream_t)> call_;
  std::vector<const Tensor*> outputs_;
};

struct Worker {
  std::vector<Job> jobs;
  Stream stream;
  Counter wrong;
  std::string failure;
};

// Every thread starts at the barrier at another task and goes on for `rounds`. No Catch2 macros in here.
void run_threads(std::vector<std::unique_ptr<Worker>>& workers, int rounds, bool one_captures) {
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < workers.size(); ++i)
    threads.emplace_back([&, i] {
      Worker& worker = *workers[i];
      try {
        start.arrive_and_wait();
        for (int round = 0; round < rounds; ++round) {
          const Job& job = worker.jobs[(static_cast<std::size_t>(round) + 6 * i) % worker.jobs.size()];
          const ggm_status_t status = job.run(worker.stream, one_captures && i == 0, worker.wrong);
          if (status != GGM_STATUS_SUCCESS)
            worker.failure = job.name() + ": " + ggm_status_string(status) + " " + ggm_last_error();
        }
        worker.stream.wait();
      } catch (const std::exception& error) {
        worker.failure = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

void eight_threads(const Handle& handle) {
  const std::vector<Task> tasks = make_tasks(handle);
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < kThreads; ++i) {
    workers.push_back(std::make_unique<Worker>());
    for (const Task& task : tasks) workers.back()->jobs.emplace_back(handle, task);
  }
  cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  run_threads(workers, static_cast<int>(tasks.size()), false);  // the first use of every kernel, by all threads at once
  std::size_t before = 0, after = 0, total = 0;
  cuda(cudaMemGetInfo(&before, &total), "cudaMemGetInfo");
  run_threads(workers, 200, false);
  cuda(cudaMemGetInfo(&after, &total), "cudaMemGetInfo");
  run_threads(workers, 200, true);
  for (const auto& worker : workers) {
    REQUIRE(worker->failure == "");
    REQUIRE(worker->wrong.read() == 0);
  }
  REQUIRE(before == after);
}
// Alone: it compares the free memory of the whole device.
GGM_GPU_CASE_IN_CHILD_TAGGED(110, "BR-054 eight threads on one handle with the first use included", "[gpu][serial]",
                             eight_threads)

}  // namespace
}  // namespace ggm_test::cases
