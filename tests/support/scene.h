// A test's tensors on one backend, and running an operation on them with every check that each test wants:
// the workspace is queried and allocated to the byte with canaries and poison; outputs start as poison; after the call no guard
// and no gap is touched and every input is unchanged in every byte. Tests fill inputs, call run() and compare outputs.
//
//   Scene scene(handle);
//   Tensor& x = scene.input("x", GGM_TYPE_FLOAT32, {1, tokens, features});
//   Tensor& y = scene.output("y", GGM_TYPE_FLOAT32, {1, tokens, features});
//   x.fill([](auto, auto r, auto c) { return P(r, c); });
//   scene.run_twice(op::permute, problem, tensors);        // problem and tensors as in ggm.h
#pragma once

#include <deque>
#include <optional>

#include "support/operation.h"
#include "support/tensor.h"
#include "support/test.h"

namespace ggm_test {

// Told right before and right after each call of an operation, when inputs are on the backend and nothing else is running.
struct CallObserver {
  virtual ~CallObserver() = default;
  virtual void before_call() = 0;
  virtual void after_call() = 0;
};

class Scene {
 public:
  explicit Scene(const Handle& handle) : handle_(handle) {}

  Tensor& input(std::string name, std::int32_t type, Shape shape, std::int64_t misalign = 0) {
    entries_.push_back({Tensor(handle_.backend(), std::move(name), type, shape, misalign), false});
    return entries_.back().tensor;
  }
  // Starts as poison, or as what the test fills in when the operation adds to it.
  Tensor& output(std::string name, std::int32_t type, Shape shape, std::int64_t misalign = 0) {
    Tensor& tensor = input(std::move(name), type, shape, misalign);
    entries_.back().written = true;
    return tensor;
  }
  // The eight fault words, zero at first.
  Tensor& faults() {
    return output("faults", kUint32, {1, 1, GGM_FAULT_WORDS}).fill([](auto, auto, auto) { return 0; });
  }

  const Handle& handle() const { return handle_; }
  const Backend& backend() const { return handle_.backend(); }
  void set_stream(ggm_stream_t stream) { stream_ = stream; }
  void set_observer(CallObserver* observer) { observer_ = observer; }
  // A workspace of the test's own, at least as large as the calls need, instead of one to the byte for each call.
  void set_workspace(Buffer* workspace) { own_workspace_ = workspace; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }  // of the last run
  void set_extra_workspace(std::size_t bytes) { extra_workspace_ = bytes; }

  // Uploads every tensor, calls, downloads outputs. Returns the status; everything else that is wrong fails the test.
  template <typename P, typename T>
  ggm_status_t try_run(const Operation<P, T>& operation, const P& problem, const T& tensors) {
    std::size_t bytes = 0;
    const ggm_status_t query = operation.workspace_size(handle_, &problem, &bytes);
    if (query != GGM_STATUS_SUCCESS) return query;
    workspace_bytes_ = bytes;
    std::optional<Buffer> to_the_byte;
    if (!own_workspace_) to_the_byte.emplace(backend(), bytes + extra_workspace_);
    const Buffer& workspace = own_workspace_ ? *own_workspace_ : *to_the_byte;
    return call(operation, problem, tensors, workspace,
                {handle_, workspace.bytes() ? workspace.data() : nullptr, workspace.bytes(), stream_});
  }

  // What a call takes besides its structs.
  struct Arguments {
    ggm_handle_t handle;
    void* workspace;
    std::size_t workspace_bytes;
    ggm_stream_t stream;
  };
  // The call of try_run alone, with any arguments, wrong ones too. `workspace` is what must stay whole around its body.
  template <typename P, typename T>
  ggm_status_t call(const Operation<P, T>& operation, const P& problem, const T& tensors, const Buffer& workspace,
                    const Arguments& arguments) {
    for (Entry& entry : entries_) entry.tensor.upload();
    if (observer_) observer_->before_call();
    const ggm_status_t status =
        operation.call(arguments.handle, &problem, &tensors, arguments.workspace, arguments.workspace_bytes, arguments.stream);
    if (observer_) observer_->after_call();
    synchronize(backend());
    finish(operation.name, workspace);
    return status;
  }
  // The first output that the last call wrote to, or "".
  std::string written_output() const {
    for (const Entry& entry : entries_)
      if (!entry.tensor.unchanged()) return entry.tensor.name();
    return "";
  }

  template <typename P, typename T>
  void run(const Operation<P, T>& operation, const P& problem, const T& tensors) {
    GGM_REQUIRE_OK(try_run(operation, problem, tensors));
  }

  // Runs twice from the same start and requires equal bits of every output.
  template <typename P, typename T>
  void run_twice(const Operation<P, T>& operation, const P& problem, const T& tensors) {
    run(operation, problem, tensors);
    std::vector<std::vector<std::uint64_t>> first;
    for (const Entry& entry : entries_)
      if (entry.written) first.push_back(entry.tensor.all_bits());
    run(operation, problem, tensors);
    std::size_t i = 0;
    for (const Entry& entry : entries_)
      if (entry.written) {
        INFO("second run of " << operation.name << ", output " << entry.tensor.name());
        REQUIRE((entry.tensor.all_bits() == first[i++]));  // doubled parentheses: no printing of whole tensors
      }
  }

 private:
  struct Entry {
    Tensor tensor;
    bool written;
  };

  void finish(const char* operation, const Buffer& workspace) {
    std::string damage = workspace.damage();
    if (!damage.empty()) damage = "workspace: " + damage;
    for (Entry& entry : entries_) {
      entry.tensor.download();
      if (damage.empty()) damage = entry.tensor.damage();
      if (damage.empty() && !entry.written && !entry.tensor.unchanged()) damage = entry.tensor.name() + ": input was changed";
    }
    if (!damage.empty()) FAIL(operation << ": " << damage);
  }

  const Handle& handle_;
  std::deque<Entry> entries_;  // a deque: references stay good
  ggm_stream_t stream_ = nullptr;
  CallObserver* observer_ = nullptr;
  Buffer* own_workspace_ = nullptr;
  std::size_t workspace_bytes_ = 0, extra_workspace_ = 0;
};

}  // namespace ggm_test
