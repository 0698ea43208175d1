// SPDX-License-Identifier: Apache-2.0
// The judge's view of the device under test. Another process loads the plugin and returns device properties and
// outputs. It has no expected values, and the judge's process does not load the plugin.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checks/group.h"
#include "journal/header.h"

namespace backplane::conform {

// The inputs of one run. One instance executes several runs in order.
struct RemoteRun {
  const std::vector<onnx::Tensor>& inputs;
  std::vector<std::vector<int64_t>> extents = {};  // of the outputs, if the graph leaves some extents unknown
};

// The device under test in the other process. Its functions throw Breach if the plugin breaks the ABI,
// std::runtime_error if the other process reports an error or its reply is malformed, and the exceptions of `call`.
// [one at a time]
class RemoteDevice {
 public:
  // Returns the reply to a request, and throws if it has more than `most` bytes.
  using Call = std::function<std::string(const std::string& request, uint64_t most)>;
  RemoteDevice(Call call, uint64_t seed) : call_(std::move(call)), seed_(seed) {}

  uint64_t seed() const { return seed_; }
  Identity identity();
  uint32_t newest_opset() { return properties().newest_opset; }
  bool flushes() { return (properties().flags & BP_DEVICE_FLUSHES_SUBNORMALS) != 0; }
  bool is_deterministic() { return (properties().flags & BP_DEVICE_DETERMINISTIC) != 0; }
  // Makes newest_opset(), flushes() and is_deterministic() throw Breach if the device does not report these flags
  // (BP_DEVICE_*). Bounds depend on the flags, so they must be the same in all processes that run cases.
  void expect_flags(uint32_t flags) { expected_flags_ = flags; }

  // Sets `out_claims` to one claim for each node.
  Answer coverage(const GraphSpec& spec, std::vector<Claim>& out_claims);
  Answer review(const GraphSpec& spec);
  Answer compile(const GraphSpec& spec);
  // Compiles the graph and executes the runs up to the first that fails, with poisoned outputs and with canaries around
  // all host memory. Sets `out_outputs` to the outputs of the runs that succeeded.
  Answer run(const GraphSpec& spec, const std::vector<RemoteRun>& runs,
             std::vector<std::vector<onnx::Tensor>>& out_outputs);
  Answer compute(const GraphSpec& spec, const std::vector<onnx::Tensor>& inputs,
                 std::vector<onnx::Tensor>& out_outputs);
  // How the plugin misused the host's services up to the last run, in one line; empty if it did not.
  const std::string& misuse() const { return misuse_; }

 private:
  struct DeviceProperties {
    uint32_t newest_opset = 0, flags = 0;
  };
  const DeviceProperties& properties();

  Call call_;
  uint64_t seed_;
  std::optional<DeviceProperties> properties_;
  std::optional<uint32_t> expected_flags_;
  std::string misuse_;
};

// Handles a request in the process that loads the plugin. Returns the reply, in which an exception becomes an error.
std::string serve(Bench& bench, const std::string& request);
// A device in this process, for the minimizer, which judges a graph where it runs. `bench` must outlive the device.
RemoteDevice local_device(Bench& bench);

// An operator call that the device claims, with its expected results.
struct Question {
  Problem problem;
  References references;
  GraphSpec spec;
  std::vector<onnx::Tensor> inputs;
};
// nullopt, with the reason in `out_result`, if the device does not claim the problem's graph or coverage fails.
std::optional<Question> make_question(RemoteDevice& device, Problem problem, Result& out_result);

}  // namespace backplane::conform
