// SPDX-License-Identifier: Apache-2.0
// The judge's view of the device under test. The plugin is loaded in another process, which returns device properties
// and outputs and has no expected values; the judge's process never loads the plugin.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checks/group.h"
#include "journal/header.h"

namespace backplane::conform {

// The inputs of one run; an instance executes several in order.
struct RemoteRun {
  const std::vector<onnx::Tensor>& inputs;
  std::vector<std::vector<int64_t>> extents = {};  // of the outputs, if the graph leaves some unknown
};

// Throws Breach for a breach of the ABI, std::runtime_error for a wrong reply, and what `call` throws. [one at a time]
class RemoteDevice {
 public:
  // The reply to a request; a reply of more than `most` bytes is refused.
  using Call = std::function<std::string(const std::string& request, uint64_t most)>;
  RemoteDevice(Call call, uint64_t seed) : call_(std::move(call)), seed_(seed) {}

  uint64_t seed() const { return seed_; }
  Identity identity();
  uint32_t newest_opset() { return properties().newest_opset; }
  bool flushes() { return (properties().flags & BP_DEVICE_FLUSHES_SUBNORMALS) != 0; }
  bool is_deterministic() { return (properties().flags & BP_DEVICE_DETERMINISTIC) != 0; }

  // One claim for each node.
  Answer coverage(const GraphSpec& spec, std::vector<Claim>& out_claims);
  Answer review(const GraphSpec& spec);
  Answer compile(const GraphSpec& spec);
  // Compiles and runs: with poisoned outputs and canaries around all memory. `out_outputs` has the outputs of the runs
  // that succeeded.
  Answer run(const GraphSpec& spec, const std::vector<RemoteRun>& runs,
             std::vector<std::vector<onnx::Tensor>>& out_outputs);
  Answer compute(const GraphSpec& spec, const std::vector<onnx::Tensor>& inputs,
                 std::vector<onnx::Tensor>& out_outputs);
  // The plugin's misuse of the host's services up to the last run, in one line, or empty.
  const std::string& misuse() const { return misuse_; }

 private:
  struct DeviceProperties {
    uint32_t newest_opset = 0, flags = 0;
  };
  const DeviceProperties& properties();

  Call call_;
  uint64_t seed_;
  std::optional<DeviceProperties> properties_;
  std::string misuse_;
};

// Returns the reply to a request, in the process that loads the plugin.
std::string serve(Bench& bench, const std::string& request);
// A device in this process, for cases that are judged where they run.
RemoteDevice local_device(Bench& bench);

// A claimed call of an operator, with its expected results.
struct Question {
  Problem problem;
  References references;
  GraphSpec spec;
  std::vector<onnx::Tensor> inputs;
};
// nullopt, with the reason in `out_result`, if the device does not claim the problem's graph.
std::optional<Question> make_question(RemoteDevice& device, Problem problem, Result& out_result);

}  // namespace backplane::conform
