// SPDX-License-Identifier: Apache-2.0
// A backend that has all the SDK's tables and throws on demand, and a device of it for each test, called through the C
// tables.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "abi/testing/plugin_under_test.h"
#include "backplane/sdk.hpp"

namespace backplane::sdk::testing {

using backplane::testing::Detail;
using backplane::testing::TinyGraph;

inline std::function<void()> on_health;  // called by the device's `health`

class AllInstance : public Instance {
 public:
  using Instance::Instance;
  void run(const bp_run_t&) override {
    if (on_health) on_health();
  }
  // Dense tensors, and matrices with strides that make them dense.
  bool reaches(const bp_tensor_t& tensor) const override {
    if (tensor.layout != BP_LAYOUT_STRIDED) return Instance::reaches(tensor);
    return tensor.rank == 2 && tensor.strides[0] == tensor.extents[1] && tensor.strides[1] == 1;
  }
};

class AllProgram : public Program, public Refit {
 public:
  using Program::Program;
  std::unique_ptr<Instance> instance() const override { return std::make_unique<AllInstance>(*this); }
  void output_extents(const std::vector<bp_tensor_t>& inputs, std::vector<bp_shape_t>& outputs) const override {
    outputs[0].rank = inputs[0].rank;
    std::copy_n(inputs[0].extents, inputs[0].rank, outputs[0].extents);
  }
  void refit(const std::vector<bp_refit_weight_t>& weights) override {
    throw Error(BP_UNSUPPORTED, std::to_string(weights.size()) + " weights");
  }
  void read_weight(uint32_t, bp_tensor_t& tensor) const override { tensor.rank = 1; }
};

class AllStream : public Stream {
 public:
  void wait(uint64_t) override {}
};

class AllDevice : public Device, public Memory, public Sync, public Cache {
 public:
  using Device::Device;
  void cover(Coverage& coverage) override {
    coverage.answer(coverage.node(0), yes(1e-6));
    coverage.group({{0}, "alone", 2e-6, BP_GROUP_ATOMIC, 0.5f, BP_COMPUTE_FP16, 4096});
  }
  std::unique_ptr<Program> compile(const Compile& what) override { return std::make_unique<AllProgram>(*this, what); }
  void health() override { on_health(); }
  void review(const Compile&, bp_review_t& out, std::string&) override { out.answer = BP_REVIEW_REJECT; }
  bp_opsets_t opsets() override {
    static const bp_opset_t kOld{{"", 0}, 9, 0};
    return {0, 4, &kOld, 1, sizeof kOld};
  }

  bp_space_t space(uint32_t index) override {
    if (index != 0) throw Error(BP_NOT_FOUND, "the only space is 0");
    bp_space_t space{};
    space.name = text("device");
    space.flags = BP_SPACE_DEVICE;
    space.alignment = 256;
    return space;
  }
  bp_buffer_t allocate(const bp_allocate_t& what) override {
    if (what.bytes > 1000) throw Error(BP_RESOURCE_EXHAUSTED, "at most 1000 bytes can be allocated");
    return {0, 0, 0, reinterpret_cast<bp_memory_t*>(this), nullptr, 0, 0};
  }
  void release(const bp_buffer_t&, bp_stream_t*) noexcept override { ++released; }
  void copy(const bp_copy_t&) override {}
  void fill(const bp_fill_t&) override {}
  int released = 0;

  std::unique_ptr<Stream> stream(const bp_stream_create_t&) override { return std::make_unique<AllStream>(); }

  std::string serialize(const Program&) override { return "blob"; }
  uint32_t validate(std::string_view blob, std::string& why) override {
    why = "looked at " + std::to_string(blob.size()) + " bytes";
    return blob == "blob" ? BP_CACHE_EXACT : BP_CACHE_UNUSABLE;
  }
  std::unique_ptr<Program> deserialize(const Compile& what, std::string_view) override { return compile(what); }
};

class All : public Backend {
 public:
  static constexpr About kAbout{"all", "All", "Backplane", "1.0"};
  static constexpr bp_opset_t kOpsets[] = {{{"", 0}, 27, 0}};
  using Device = AllDevice;
  using Program = AllProgram;
  using Instance = AllInstance;
  using Backend::Backend;
  uint32_t device_count(std::string& why_none) override {
    why_none = "the device is switched off";
    return on_health ? 1 : 0;
  }
  bp_device_info_t device_info(uint32_t) override { return {}; }
  std::unique_ptr<backplane::sdk::Device> open(uint32_t, const Options& options, const bp_device_open_t&) override {
    options.allow({"speed"});
    return std::make_unique<AllDevice>(*this);
  }
};

class Sdk : public ::testing::Test {
 protected:
  void SetUp() override {
    on_health = [] {};
    bp_host_offer_t offer{sizeof offer, BP_ABI_VERSION_MIN, BP_ABI_VERSION, kSanitizer, {}};
    plugin = Plugin<All>::query(&offer);
    host.size = sizeof host;
    backend = create(plugin);
    ASSERT_EQ(plugin->device->open(backend, 0, nullptr, &device, &detail.error), BP_OK);
  }
  void TearDown() override {
    plugin->device->close(device);
    plugin->destroy(backend);
  }
  bp_backend_t* create(const bp_plugin_t* of) {
    bp_backend_create_t how{};
    how.size = sizeof how;
    how.host = &host;
    bp_backend_t* created = nullptr;
    EXPECT_EQ(of->create(&how, &created, &detail.error), BP_OK);
    return created;
  }
  bp_program_t* compile(TinyGraph& graph) {
    graph.output(graph.node("Relu", 14, {graph.input("x", {2, 3})}, {2, 3}));
    bp_compile_t what{};
    what.size = sizeof what;
    what.graph = graph.get();
    bp_program_t* program = nullptr;
    EXPECT_EQ(plugin->program->compile(device, &what, &program, &detail.error), BP_OK);
    return program;
  }

  const bp_plugin_t* plugin = nullptr;
  bp_host_t host{};
  bp_backend_t* backend = nullptr;
  bp_device_t* device = nullptr;
  Detail detail;
};

}  // namespace backplane::sdk::testing
