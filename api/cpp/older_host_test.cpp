// SPDX-License-Identifier: Apache-2.0
// A plugin of the SDK whose headers are newer than its host's: this file is compiled with headers in which every struct
// that may grow has one more field, `grown` (api/abi/grow.awk). The host's structs are those of ABI 1.0 and end where
// their pages do, and so do those that other structs point to. The backend reads `grown` in each struct that it
// receives from the SDK: that crashes if the struct is the host's own instead of a copy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "abi/testing/end_of_page.h"
#include "abi/testing/plugin_under_test.h"
#include "backplane/sdk.hpp"

namespace {

using namespace backplane::sdk;
using backplane::kSize10;
using backplane::testing::Detail;
using backplane::testing::EndOfPage;
using backplane::testing::Older;
using backplane::testing::TinyGraph;
using ::testing::ElementsAre;

static_assert(sizeof(bp_run_t) > kSize10<bp_run_t>, "compile this file with grown headers");

std::vector<std::string> seen;  // the structs that the backend has read to their end

// Reads a struct as a vendor may, to the end of this build's version of it.
template <class T>
void look(const char* name, const T& given) {
  EXPECT_EQ(given.grown, 0u) << name;
  seen.emplace_back(name);
}

class NewInstance : public Instance {
 public:
  using Instance::Instance;
  void run(const bp_run_t&) override {}
  void submit(const bp_run_t& run) override {
    look("run", run);
    Instance::submit(run);
  }
  void bind(const bp_binding_t& binding) override {
    look("binding", binding);
    if (binding.tensor != nullptr) look("binding.tensor", *binding.tensor);
    Instance::bind(binding);
  }
  void extents(const Slots& slots) override {
    for (uint32_t i = 0; i < slots.size(); ++i) look("slots", slots[i]);
    Instance::extents(slots);
  }
};

class NewProgram : public Program, public Refit {
 public:
  using Program::Program;
  std::unique_ptr<Instance> instance() const override { return std::make_unique<NewInstance>(*this); }
  void output_extents(const std::vector<bp_tensor_t>& inputs, std::vector<bp_shape_t>&) const override {
    look("query.inputs", inputs.at(0));
  }
  void refit(const std::vector<bp_refit_weight_t>& weights) override {
    for (const bp_refit_weight_t& weight : weights) {
      look("weights", weight);
      look("weights.tensor", *weight.tensor);
      values.push_back(*static_cast<const float*>(weight.tensor->buffer.address));
    }
  }
  void read_weight(uint32_t, bp_tensor_t& tensor) const override { look("out_tensor", tensor); }
  std::vector<float> values;  // the first element of each weight that `refit` was given
};

class NewDevice : public Device, public Memory, public Sync, public Cache {
 public:
  using Device::Device;
  void cover(Coverage& coverage) override { coverage.answer(coverage.node(0), yes()); }
  std::unique_ptr<Program> compile(const Compile& what) override {
    look("compile", what.raw());
    return std::make_unique<NewProgram>(*this, what);
  }
  void review(const Compile& what, bp_review_t& out, std::string&) override {
    look("review", what.raw());
    look("out_review", out);
  }
  void infer(const Node&, const Types& types) override { types.output_of_unknown_rank(0, BP_DTYPE_FLOAT); }
  bp_opsets_t opsets() override { return {0, 4, nullptr, 0, 0}; }

  bp_space_t space(uint32_t) override { return {}; }
  bp_buffer_t allocate(const bp_allocate_t& what) override {
    look("allocate", what);
    return {};
  }
  void release(const bp_buffer_t&, bp_stream_t*) noexcept override { seen.emplace_back("release"); }
  void* map(const bp_buffer_t&, uint32_t) override { return nullptr; }
  void unmap(const bp_buffer_t&, void*) override {}
  void flush(const bp_buffer_t&, uint32_t) override {}
  void copy(const bp_copy_t& what) override {
    look("copy", what);
    look("copy.run", *what.run);
    static_cast<HostStream&>(*stream_of(what.run->stream)).submit(host(), *what.run, [](const RunSync& sync) {
      sync.wait();
    });
  }
  void fill(const bp_fill_t& what) override {
    look("fill", what);
    look("fill.run", *what.run);
  }
  bp_buffer_t import_memory(uint32_t, const bp_external_t& external) override {
    look("external", external);
    return {};
  }
  bp_external_t export_memory(const bp_buffer_t&, uint32_t kind) override {
    bp_external_t made{};
    made.kind = kind;
    return made;
  }

  std::unique_ptr<Stream> stream(const bp_stream_create_t& how) override {
    look("stream_create", how);
    if (how.native != nullptr) look("stream_create.native", *how.native);
    return std::make_unique<HostStream>();
  }
  std::unique_ptr<NativeSemaphore> semaphore(const bp_semaphore_create_t& how) override {
    look("semaphore_create", how);
    if (how.native != nullptr) look("semaphore_create.native", *how.native);
    return std::make_unique<HostTimeline>();
  }
  static bp_native_t export_semaphore(NativeSemaphore&, const bp_semaphore_export_t& what) {
    look("semaphore_export", what);
    return {0, BP_VENDOR, 1, nullptr};
  }

  std::string serialize(const Program&) override { return "blob"; }
  uint32_t validate(std::string_view, std::string&) override { return BP_CACHE_EXACT; }
  std::unique_ptr<Program> deserialize(const Compile& what, std::string_view) override { return compile(what); }
};

class New : public Backend {
 public:
  static constexpr About kAbout{"new", "New", "Backplane", "1.0"};
  static constexpr bool kNativeContexts = true;
  static constexpr bp_opset_t kOpsets[] = {{{"", 0}, 27, 0}};
  using Device = NewDevice;
  using Program = NewProgram;
  using Instance = NewInstance;
  explicit New(const bp_backend_create_t& how) : Backend(how) {
    look("create", how);
    look("host.containers", *host().containers());
  }
  uint32_t device_count(std::string&) override { return 1; }
  bp_device_info_t device_info(uint32_t) override { return {}; }
  std::unique_ptr<backplane::sdk::Device> open(uint32_t, const Options&, const bp_device_open_t& how) override {
    look("open", how);
    if (how.native != nullptr) look("open.native", *how.native);
    return std::make_unique<NewDevice>(*this);
  }
};

class OlderHost : public ::testing::Test {
 protected:
  void SetUp() override {
    host->containers = containers.get();
    const Older<bp_host_offer_t> offer;
    offer->version_min = BP_ABI_VERSION_MIN;
    offer->version_max = BP_ABI_VERSION;
    offer->sanitizer = kSanitizer;
    plugin = Plugin<New>::query(offer.get());
    ASSERT_EQ(plugin->version, BP_ABI_VERSION);
    const Older<bp_backend_create_t> created;
    created->host = host.get();
    ASSERT_EQ(plugin->create(created.get(), &backend, &detail.error), BP_OK) << detail.text();
    const Older<bp_device_open_t> opened;
    opened->native = native.get();
    ASSERT_EQ(plugin->device->open(backend, 0, opened.get(), &device, &detail.error), BP_OK) << detail.text();
    graph.output(graph.node("Add", 14, {graph.input("x", {2}), graph.weight("w", {2}, {1, 2})}, {2}));
    graph_ = std::make_unique<Older<bp_graph_t>>(*graph.get());
    what->graph = graph_->get();
    tensor->dtype = BP_DTYPE_FLOAT;
    tensor->rank = 1;
    tensor->extents = extents;
    tensor->buffer.address = data;
    tensor->buffer.bytes = sizeof data;
    ASSERT_EQ(plugin->program->compile(device, what.get(), &program, &detail.error), BP_OK) << detail.text();
  }
  void TearDown() override {
    plugin->program->destroy(program);
    plugin->device->close(device);
    plugin->destroy(backend);
    seen.clear();
  }

  const Older<bp_container_api_t> containers;
  const Older<bp_host_t> host;
  const Older<bp_native_t> native{{0, BP_VENDOR, 1, nullptr}};
  const Older<bp_compile_t> what;
  const Older<bp_tensor_t> tensor;
  const int64_t extents[1] = {2};
  float data[2] = {5, 6};
  TinyGraph graph;
  std::unique_ptr<Older<bp_graph_t>> graph_;
  const bp_plugin_t* plugin = nullptr;
  bp_backend_t* backend = nullptr;
  bp_device_t* device = nullptr;
  bp_program_t* program = nullptr;
  Detail detail;
};

TEST_F(OlderHost, OpensAndCompiles) {
  EXPECT_THAT(seen, ElementsAre("create", "host.containers", "open", "open.native", "compile"));
  seen.clear();
  const Older<bp_review_t> review;
  EXPECT_EQ(plugin->coverage->review(device, what.get(), review.get(), &detail.error), BP_OK) << detail.text();
  bp_program_t* stored = nullptr;
  EXPECT_EQ(plugin->cache->deserialize(device, what.get(), {"blob", 4}, &stored, &detail.error), BP_OK);
  plugin->program->destroy(stored);
  EXPECT_THAT(seen, ElementsAre("review", "out_review", "compile"));
}

TEST_F(OlderHost, QueriesCoverageAndTypes) {
  uint32_t answers = 0;
  const Older<bp_coverage_query_t> query;
  query->graph = what->graph;
  const Older<bp_coverage_sink_t> sink;
  sink->self = &answers;
  sink->verdicts = [](void* self, const bp_verdict_t*, uint32_t count, uint32_t) {
    *static_cast<uint32_t*>(self) += count;
  };
  EXPECT_EQ(plugin->coverage->query(device, query.get(), sink.get(), &detail.error), BP_OK) << detail.text();
  EXPECT_EQ(answers, 1u);

  const Older<bp_infer_t> infer;
  infer->graph = what->graph;
  const Older<bp_infer_sink_t> types;
  types->self = &answers;
  types->output = [](void* self, uint32_t, bp_dtype_t, int32_t, const bp_dim_t*) { ++*static_cast<uint32_t*>(self); };
  EXPECT_EQ(plugin->coverage->infer(device, infer.get(), types.get(), &detail.error), BP_OK) << detail.text();
  EXPECT_EQ(answers, 2u);
  types->size = sizeof(uint64_t);
  EXPECT_EQ(plugin->coverage->infer(device, infer.get(), types.get(), &detail.error), BP_INVALID_ARGUMENT);
}

TEST_F(OlderHost, RunsAndReplacesWeights) {
  seen.clear();
  const Older<bp_shape_query_t> query;
  query->input_count = 1;
  query->inputs = tensor.get();
  query->input_stride = tensor->size;
  query->output_stride = sizeof(bp_shape_t);
  bp_shape_t shape{};
  EXPECT_EQ(plugin->program->output_extents(program, query.get(), &shape, &detail.error), BP_OK) << detail.text();
  const Older<bp_instance_create_t> how;
  bp_instance_t* instance = nullptr;
  ASSERT_EQ(plugin->instance->create(program, how.get(), &instance, &detail.error), BP_OK) << detail.text();
  for (const uint32_t slot : {0u, BP_SLOT_OUTPUT}) {
    const Older<bp_binding_t> binding;
    binding->slot = slot;
    binding->tensor = tensor.get();
    EXPECT_EQ(plugin->instance->bind(instance, binding.get(), &detail.error), BP_OK) << detail.text();
  }
  constexpr uint32_t kSlotBytes = kSize10<bp_slot_extents_t>;
  const EndOfPage slots(kSlotBytes);
  auto* const slot = static_cast<bp_slot_extents_t*>(slots.get());
  slot->rank = 1;
  slot->extents = extents;
  EXPECT_EQ(plugin->instance->extents(instance, slot, 1, kSlotBytes, &detail.error), BP_OK) << detail.text();
  const Older<bp_run_t> run;
  EXPECT_EQ(plugin->instance->run(instance, run.get(), &detail.error), BP_OK) << detail.text();
  plugin->instance->destroy(instance);

  constexpr uint32_t kWeightBytes = kSize10<bp_refit_weight_t>;
  const EndOfPage weights(size_t{2} * kWeightBytes);
  for (uint32_t i = 0; i < 2; ++i) {
    const bp_refit_weight_t weight{0, 0, tensor.get(), 0};
    std::memcpy(static_cast<char*>(weights.get()) + uint64_t{i} * kWeightBytes, &weight, kWeightBytes);
  }
  const Older<bp_refit_t> refit;
  refit->count = 2;
  refit->weights = static_cast<const bp_refit_weight_t*>(weights.get());
  refit->stride = kWeightBytes;
  EXPECT_EQ(plugin->weights->refit(program, refit.get(), &detail.error), BP_OK) << detail.text();
  EXPECT_THAT(reinterpret_cast<NewProgram*>(program)->values, ElementsAre(5, 5));
  EXPECT_EQ(plugin->weights->read(program, 0, tensor.get(), &detail.error), BP_OK) << detail.text();
  EXPECT_THAT(seen, ElementsAre("query.inputs", "binding", "binding.tensor", "binding", "binding.tensor", "slots",
                                "run", "weights", "weights.tensor", "weights", "weights.tensor", "out_tensor"));
}

TEST_F(OlderHost, MovesMemory) {
  seen.clear();
  const Older<bp_stream_create_t> how;
  how->native = native.get();
  bp_stream_t* stream = nullptr;
  ASSERT_EQ(plugin->sync->stream_create(device, how.get(), &stream, &detail.error), BP_OK) << detail.text();
  bp_buffer_t buffer{};
  const Older<bp_allocate_t> allocate;
  EXPECT_EQ(plugin->memory->allocate(device, allocate.get(), &buffer, &detail.error), BP_OK) << detail.text();
  const Older<bp_run_t> run;
  run->stream = stream;
  const Older<bp_copy_t> copy;
  copy->from = copy->to = &buffer;
  copy->run = run.get();
  EXPECT_EQ(plugin->memory->copy(device, copy.get(), &detail.error), BP_OK) << detail.text();
  EXPECT_EQ(plugin->sync->stream_wait(stream, BP_FOREVER, &detail.error), BP_OK) << detail.text();
  const Older<bp_fill_t> fill;
  fill->buffer = &buffer;
  fill->pattern_bytes = 1;
  fill->run = run.get();
  EXPECT_EQ(plugin->memory->fill(device, fill.get(), &detail.error), BP_OK) << detail.text();
  const Older<bp_external_t> external;
  const Older<bp_import_t> import;
  import->external = external.get();
  EXPECT_EQ(plugin->memory->import(device, import.get(), &buffer, &detail.error), BP_OK) << detail.text();
  const Older<bp_export_t> exported;
  exported->kind = BP_VENDOR;
  exported->buffer = &buffer;
  EXPECT_EQ(plugin->memory->export_(device, exported.get(), external.get(), &detail.error), BP_OK) << detail.text();
  EXPECT_EQ(external->kind, BP_VENDOR);
  const Older<bp_map_t> map;
  map->buffer = &buffer;
  void* pointer = nullptr;
  EXPECT_EQ(plugin->memory->map(device, map.get(), &pointer, &detail.error), BP_OK) << detail.text();
  EXPECT_EQ(plugin->memory->flush(device, map.get(), &detail.error), BP_OK) << detail.text();
  EXPECT_EQ(plugin->memory->unmap(device, map.get(), pointer, &detail.error), BP_OK) << detail.text();
  const Older<bp_release_t> release;
  release->buffer = &buffer;
  plugin->memory->release(device, release.get());

  const Older<bp_semaphore_create_t> created;
  created->native = native.get();
  bp_native_semaphore_t* semaphore = nullptr;
  ASSERT_EQ(plugin->sync->semaphore_create(device, created.get(), &semaphore, &detail.error), BP_OK) << detail.text();
  const Older<bp_semaphore_export_t> asked;
  const Older<bp_native_t> handle;
  EXPECT_EQ(plugin->sync->semaphore_export(semaphore, asked.get(), handle.get(), &detail.error), BP_OK);
  EXPECT_EQ(handle->kind, BP_VENDOR);
  plugin->sync->semaphore_destroy(semaphore);
  plugin->sync->stream_destroy(stream);
  EXPECT_THAT(seen,
              ElementsAre("stream_create", "stream_create.native", "allocate", "copy", "copy.run", "fill", "fill.run",
                          "external", "release", "semaphore_create", "semaphore_create.native", "semaphore_export"));
}

TEST_F(OlderHost, IsWrittenToWithinItsSizes) {
  const Older<bp_device_info_t> info;
  EXPECT_EQ(plugin->device->info(backend, 0, info.get(), &detail.error), BP_OK) << detail.text();
  EXPECT_EQ(info->size, kSize10<bp_device_info_t>);
  const Older<bp_opsets_t> opsets;
  EXPECT_EQ(plugin->coverage->opsets(device, opsets.get(), &detail.error), BP_OK) << detail.text();
  EXPECT_EQ(opsets->ir_version, 4u);
  const Older<bp_program_info_t> compiled;
  EXPECT_EQ(plugin->program->info(program, compiled.get(), &detail.error), BP_OK) << detail.text();
  EXPECT_EQ(compiled->input_count, 1u);
  const Older<bp_space_t> space;
  EXPECT_EQ(plugin->memory->space(device, 0, space.get(), &detail.error), BP_OK) << detail.text();
  const Older<bp_error_t> error;
  EXPECT_EQ(plugin->device->info(backend, 1, info.get(), error.get()), BP_NOT_FOUND);
  EXPECT_EQ(error->status, BP_NOT_FOUND);
}

}  // namespace
