// SPDX-License-Identifier: Apache-2.0
// Invalid calls. Every backend of this build must refuse each of them with the same status and with a message, and its
// instance must still be able to run afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <sstream>

#include "abi/testing/plugin_under_test.h"

namespace {

using backplane::testing::Detail;
using backplane::testing::PluginUnderTest;
using backplane::testing::TinyGraph;

constexpr uint32_t kTooSmall = 4;  // bytes: less than the size of every struct

bp_text_t text(std::string_view s) {
  return backplane::view::text(s);
}

// A compiled y = Relu(x) on fp32 tensors of shape [2, 3], with an instance that has no bound slots, and calls whose
// arguments are valid until a case changes them.
class Subject {
 public:
  explicit Subject(PluginUnderTest& plugin) : plugin(plugin), table(*plugin.plugin) {
    graph.output(graph.node("Relu", 14, {graph.input("x", {2, 3})}, {2, 3}));
    reset();
    if (table.program->compile(plugin.device, &what, &program, &detail.error) != BP_OK ||
        table.instance->create(program, nullptr, &instance, &detail.error) != BP_OK)
      throw std::runtime_error(detail.text());
  }
  ~Subject() {
    table.program->destroy(weighted_);
    table.instance->destroy(instance);
    table.program->destroy(program);
  }
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  void reset() {
    info = {};
    info.size = sizeof info;
    host = {};
    host.size = sizeof host;
    host.version = BP_ABI_VERSION;
    how_created = {};
    how_created.size = sizeof how_created;
    how_created.host = &host;
    how_opened = {};
    how_opened.size = sizeof how_opened;
    how_opened.options = &unknown_option;
    how_opened.option_stride = sizeof unknown_option;
    query = {};
    query.size = sizeof query;
    query.graph = graph.get();
    sink = {};
    sink.size = sizeof sink;
    sink.verdicts = [](void*, const bp_verdict_t*, uint32_t, uint32_t) {};
    sink.groups = [](void*, const bp_group_t*, uint32_t, uint32_t) {};
    what = {};
    what.size = sizeof what;
    what.graph = query.graph;
    what.options = &unknown_option;
    what.option_stride = sizeof unknown_option;
    extents = {2, 3};
    tensor = {};
    tensor.size = sizeof tensor;
    tensor.dtype = BP_DTYPE_FLOAT;
    tensor.rank = 2;
    tensor.extents = extents.data();
    tensor.buffer.address = x.data();
    tensor.buffer.bytes = x.size() * sizeof x[0];
    binding = {};
    binding.size = sizeof binding;
    binding.tensor = &tensor;
    run = {};
    run.size = sizeof run;
    run.self = this;
    run.done = [](void* self, bp_status_t status, const bp_error_t*) { static_cast<Subject*>(self)->end(status); };
  }

  // ---- the calls, with the arguments that the case prepared ----
  bp_status_t look(uint32_t device) { return table.device->info(plugin.backend, device, &info, &detail.error); }
  bp_status_t create() {
    bp_backend_t* made = plugin.backend;
    const bp_status_t status = table.create(&how_created, &made, &detail.error);
    EXPECT_EQ(made, nullptr);
    return status;
  }
  bp_status_t open(uint32_t device) {
    bp_device_t* made = plugin.device;
    const bp_status_t status = table.device->open(plugin.backend, device, &how_opened, &made, &detail.error);
    EXPECT_EQ(made, nullptr);
    return status;
  }
  bp_status_t cover() { return table.coverage->query(plugin.device, &query, &sink, &detail.error); }
  bp_status_t compile() {
    bp_program_t* made = program;
    const bp_status_t status = table.program->compile(plugin.device, &what, &made, &detail.error);
    EXPECT_EQ(made, nullptr);
    return status;
  }
  bp_status_t output_extents(uint32_t input_count, uint32_t output_stride = sizeof(bp_shape_t),
                             uint32_t input_stride = sizeof(bp_tensor_t)) {
    bp_shape_t shape{};
    const bp_shape_query_t query{sizeof query, input_count, &tensor, input_stride, output_stride};
    return table.program->output_extents(program, &query, &shape, &detail.error);
  }
  bp_status_t bind(uint32_t slot) {
    binding.slot = slot;
    return table.instance->bind(instance, &binding, &detail.error);
  }
  bp_status_t set_extents(uint32_t slot) {
    const bp_slot_extents_t given{slot, tensor.rank, tensor.extents};
    return table.instance->extents(instance, &given, 1, sizeof given, &detail.error);
  }
  bp_status_t start() { return table.instance->run(instance, &run, &detail.error); }
  bp_status_t refit(uint32_t weight) {
    const bp_refit_weight_t one{weight, 0, &tensor};
    const bp_refit_t all{sizeof all, 1, &one, sizeof one, 0};
    return table.weights->refit(weighted(), &all, &detail.error);
  }
  bp_status_t read_weight(uint32_t weight) { return table.weights->read(weighted(), weight, &tensor, &detail.error); }
  // The slots `refit` and `read` must refuse an invalid `tensor` or `weight` with the same status.
  bp_status_t replace_and_read(uint32_t weight = 0) {
    const bp_status_t status = refit(weight);
    EXPECT_EQ(read_weight(weight), status) << detail.text();
    return status;
  }

  void bind_all() {
    ASSERT_EQ(bind(0), BP_OK) << detail.text();
    tensor.buffer.address = y.data();
    ASSERT_EQ(bind(BP_SLOT_OUTPUT), BP_OK) << detail.text();
  }
  void end(bp_status_t status) {
    const std::lock_guard lock(mutex_);
    ended_ = status;
    changed_.notify_all();
  }
  bp_status_t wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_.has_value(); });
    return *std::exchange(ended_, std::nullopt);
  }

  PluginUnderTest& plugin;
  const bp_plugin_t& table;
  Detail detail;
  TinyGraph graph;
  std::vector<float> x{-3, -2, -1, 1, 2, 3}, y = std::vector<float>(6);
  std::vector<int64_t> extents;
  const bp_option_t unknown_option{text("no_such_option"), text("1")};
  const bp_chain_t required{sizeof required, 1, text("org.example.unknown"), 1, 0, nullptr};

  bp_device_info_t info;
  bp_host_t host;  // for creating another backend
  bp_backend_create_t how_created;
  bp_device_open_t how_opened;
  bp_coverage_query_t query;
  bp_coverage_sink_t sink;
  bp_compile_t what;
  bp_tensor_t tensor;
  bp_binding_t binding;
  bp_run_t run;
  bp_program_t* program = nullptr;
  bp_instance_t* instance = nullptr;
  bp_status_t second = BP_OK;  // status of the second, concurrent run

 private:
  // A compiled y = Add(x, w), where w has the shape of `tensor` and can be replaced.
  bp_program_t* weighted() {
    if (weighted_ != nullptr) return weighted_;
    const uint32_t w = weighted_graph_.weight("w", {2, 3}, {1, 2, 3, 4, 5, 6});
    weighted_graph_.output(weighted_graph_.node("Add", 14, {weighted_graph_.input("x", {2, 3}), w}, {2, 3}));
    bp_compile_t how{};
    how.size = sizeof how;
    how.graph = weighted_graph_.get();
    how.flags = BP_COMPILE_REFIT;
    if (table.program->compile(plugin.device, &how, &weighted_, &detail.error) != BP_OK)
      throw std::runtime_error(detail.text());
    return weighted_;
  }

  TinyGraph weighted_graph_;
  bp_program_t* weighted_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<bp_status_t> ended_;
};

struct Case {
  const char* name;
  bp_status_t expected;
  bp_status_t (*call)(Subject& s);
  bool needs_output_extents = false;  // whether `call` calls output_extents, which not every backend has
  bool has_weights = false;           // whether `call` calls a slot of bp_weights_api_t, which not every backend has
};

// Returns the status with which the plugin refuses the offer. The refusal's message goes to s.detail.
bp_status_t offer(Subject& s, const bp_host_offer_t* offer) {
  const bp_plugin_t* answer = s.plugin.query(offer);
  EXPECT_EQ(answer->version, 0u);
  EXPECT_EQ(answer->create, nullptr);
  return backplane::sdk::report(&s.detail.error, answer->refusal, backplane::view::text(answer->refusal_text));
}

bp_status_t run_with(Subject& s, uint32_t slot) {
  EXPECT_EQ(s.bind(slot), BP_OK) << s.detail.text();
  return s.start();
}

// Starts the second run from the host's semaphore_wait, because the first run is certainly in progress then.
bp_status_t run_twice(Subject& s) {
  s.bind_all();
  const bp_point_t point = bp_host_point(reinterpret_cast<bp_semaphore_t*>(&s), 1);
  s.run.waits = &point;
  s.run.wait_count = 1;
  EXPECT_EQ(s.start(), BP_OK) << s.detail.text();
  EXPECT_EQ(s.wait(), BP_OK);
  return s.second;
}
bp_status_t BP_CALL wait_by_running(const bp_host_t*, bp_semaphore_t* semaphore, uint64_t, uint64_t, const bp_cancel_t*,
                                    bp_error_t*) {
  auto& s = *reinterpret_cast<Subject*>(semaphore);
  bp_run_t run{};
  run.size = sizeof run;
  s.second = s.table.instance->run(s.instance, &run, &s.detail.error);
  return BP_OK;
}

// Calls `run` in a forked child, which reports the result by its exit code. Unused with ThreadSanitizer.
[[maybe_unused]] bp_status_t run_in_child(Subject& s) {
  s.bind_all();
  const pid_t child = fork();
  if (child == 0) _exit(s.start() == BP_FORKED && !s.detail.text().empty() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return backplane::sdk::report(&s.detail.error, status == 0 ? BP_FORKED : BP_INTERNAL,
                                "the exit status of the child process shows this result");
}

constexpr Case kCases[] = {
    {"offer_null", BP_INVALID_ARGUMENT, [](Subject& s) { return offer(s, nullptr); }},
    {"offer_too_small", BP_INVALID_ARGUMENT,
     [](Subject& s) {
       const bp_host_offer_t small{kTooSmall, BP_ABI_VERSION_MIN, BP_ABI_VERSION, s.table.sanitizer, {}};
       return offer(s, &small);
     }},
    {"offer_of_another_version", BP_INCOMPATIBLE,
     [](Subject& s) {
       const uint32_t other = BP_MAKE_VERSION(99, 0);
       const bp_host_offer_t newer{sizeof newer, other, other, s.table.sanitizer, {}};
       return offer(s, &newer);
     }},
    {"offer_of_an_older_version", BP_INCOMPATIBLE,
     [](Subject& s) {
       const bp_host_offer_t older{sizeof older, 0, BP_ABI_VERSION_MIN - 1, s.table.sanitizer, {}};
       return offer(s, &older);
     }},
    {"offer_of_another_sanitizer", BP_INCOMPATIBLE,
     [](Subject& s) {
       const bp_host_offer_t other{sizeof other, BP_ABI_VERSION_MIN, BP_ABI_VERSION, s.table.sanitizer + 1, {}};
       return offer(s, &other);
     }},

    {"null_backend", BP_INVALID_ARGUMENT,
     [](Subject& s) { return s.table.device->info(nullptr, 0, &s.info, &s.detail.error); }},
    {"null_device", BP_INVALID_ARGUMENT,
     [](Subject& s) { return s.table.coverage->query(nullptr, &s.query, &s.sink, &s.detail.error); }},
    {"null_program", BP_INVALID_ARGUMENT,
     [](Subject& s) {
       bp_instance_t* made = nullptr;
       return s.table.instance->create(nullptr, nullptr, &made, &s.detail.error);
     }},
    {"null_instance_in_bind", BP_INVALID_ARGUMENT,
     [](Subject& s) { return s.table.instance->bind(nullptr, &s.binding, &s.detail.error); }},
    {"null_instance_in_run", BP_INVALID_ARGUMENT,
     [](Subject& s) { return s.table.instance->run(nullptr, &s.run, &s.detail.error); }},
    {"null_binding", BP_INVALID_ARGUMENT,
     [](Subject& s) { return s.table.instance->bind(s.instance, nullptr, &s.detail.error); }},
    {"null_run", BP_INVALID_ARGUMENT,
     [](Subject& s) { return s.table.instance->run(s.instance, nullptr, &s.detail.error); }},
    {"null_graph", BP_INVALID_ARGUMENT, [](Subject& s) { return s.what.graph = nullptr, s.compile(); }},

    {"small_create", BP_INVALID_ARGUMENT, [](Subject& s) { return s.how_created.size = kTooSmall, s.create(); }},
    {"small_host", BP_INVALID_ARGUMENT, [](Subject& s) { return s.host.size = kTooSmall, s.create(); }},
    {"small_device_info", BP_INVALID_ARGUMENT, [](Subject& s) { return s.info.size = kTooSmall, s.look(0); }},
    {"small_open", BP_INVALID_ARGUMENT, [](Subject& s) { return s.how_opened.size = kTooSmall, s.open(0); }},
    {"small_query", BP_INVALID_ARGUMENT, [](Subject& s) { return s.query.size = kTooSmall, s.cover(); }},
    {"small_sink", BP_INVALID_ARGUMENT, [](Subject& s) { return s.sink.size = kTooSmall, s.cover(); }},
    {"small_compile", BP_INVALID_ARGUMENT, [](Subject& s) { return s.what.size = kTooSmall, s.compile(); }},
    {"small_graph", BP_INVALID_ARGUMENT,
     [](Subject& s) {
       bp_graph_t small = *s.what.graph;
       small.size = kTooSmall;
       s.what.graph = &small;
       return s.compile();
     }},
    {"small_binding", BP_INVALID_ARGUMENT, [](Subject& s) { return s.binding.size = kTooSmall, s.bind(0); }},
    {"small_tensor", BP_INVALID_ARGUMENT, [](Subject& s) { return s.tensor.size = kTooSmall, s.bind(0); }},
    {"small_run", BP_INVALID_ARGUMENT, [](Subject& s) { return s.bind_all(), s.run.size = kTooSmall, s.start(); }},

    {"unknown_device", BP_NOT_FOUND, [](Subject& s) { return s.look(9999); }},
    {"unknown_device_opened", BP_NOT_FOUND, [](Subject& s) { return s.open(9999); }},
    {"unknown_option_of_a_device", BP_NOT_FOUND, [](Subject& s) { return s.how_opened.option_count = 1, s.open(0); }},
    {"unknown_option_of_a_program", BP_NOT_FOUND, [](Subject& s) { return s.what.option_count = 1, s.compile(); }},
    {"context_of_an_unknown_kind", BP_UNSUPPORTED,
     [](Subject& s) {
       const bp_native_t context{sizeof context, 0x7fff, 1};
       s.how_opened.native = &context;
       return s.open(0);
     }},
    {"node_beyond_the_last_in_a_query", BP_INVALID_ARGUMENT,
     [](Subject& s) {
       const uint32_t node = 7;
       s.query.nodes = &node;
       s.query.node_count = 1;
       return s.cover();
     }},
    {"sink_without_verdicts", BP_INVALID_ARGUMENT, [](Subject& s) { return s.sink.verdicts = nullptr, s.cover(); }},
    {"required_chain_of_a_backend", BP_UNSUPPORTED,
     [](Subject& s) { return s.how_created.chain = &s.required, s.create(); }},
    {"required_chain_of_a_device", BP_UNSUPPORTED,
     [](Subject& s) { return s.how_opened.chain = &s.required, s.open(0); }},
    {"required_chain_of_a_query", BP_UNSUPPORTED, [](Subject& s) { return s.query.chain = &s.required, s.cover(); }},
    {"required_chain_of_a_program", BP_UNSUPPORTED, [](Subject& s) { return s.what.chain = &s.required, s.compile(); }},
    {"unknown_operator", BP_UNSUPPORTED,
     [](Subject& s) {
       TinyGraph graph;
       graph.output(graph.node("NoSuchThing", 1, {graph.input("x", {2})}, {2}));
       s.what.graph = graph.get();
       return s.compile();
     }},
    {"small_shapes", BP_INVALID_ARGUMENT, [](Subject& s) { return s.output_extents(1, kTooSmall); }, true},
    {"small_inputs_of_a_shape_query", BP_INVALID_ARGUMENT,
     [](Subject& s) { return s.output_extents(1, sizeof(bp_shape_t), kTooSmall); }, true},
    {"too_few_inputs", BP_INVALID_ARGUMENT, [](Subject& s) { return s.output_extents(0); }, true},
    {"extents_that_an_input_cannot_have", BP_TYPE_MISMATCH,
     [](Subject& s) { return s.extents[1] = 4, s.output_extents(1); }, true},
    {"extents_of_too_small_a_stride", BP_INVALID_ARGUMENT,
     [](Subject& s) {
       s.bind_all();
       const bp_slot_extents_t given{0, 2, s.extents.data()};
       return s.table.instance->extents(s.instance, &given, 1, kTooSmall, &s.detail.error);
     }},

    {"input_beyond_the_last", BP_INVALID_ARGUMENT, [](Subject& s) { return s.bind(1); }},
    {"output_slot_beyond_the_last", BP_INVALID_ARGUMENT, [](Subject& s) { return s.bind(BP_SLOT_OUTPUT + 1); }},
    {"scratch_that_is_not_wanted", BP_INVALID_ARGUMENT, [](Subject& s) { return s.bind(BP_SLOT_SCRATCH); }},
    {"slot_beyond_all", BP_INVALID_ARGUMENT, [](Subject& s) { return s.bind(UINT32_MAX); }},
    {"nothing_to_bind", BP_INVALID_ARGUMENT, [](Subject& s) { return s.binding.tensor = nullptr, s.bind(0); }},
    {"container_for_a_tensor", BP_TYPE_MISMATCH,
     [](Subject& s) {
       s.binding.tensor = nullptr;
       s.binding.container = reinterpret_cast<bp_container_t*>(&s);
       return s.bind(0);
     }},
    {"other_dtype", BP_TYPE_MISMATCH, [](Subject& s) { return s.tensor.dtype = BP_DTYPE_INT32, s.bind(0); }},
    {"other_rank", BP_TYPE_MISMATCH, [](Subject& s) { return s.tensor.rank = 1, s.bind(0); }},
    {"other_extents", BP_TYPE_MISMATCH, [](Subject& s) { return s.extents[1] = 2, s.bind(0); }},
    {"other_extents_of_an_output", BP_TYPE_MISMATCH,
     [](Subject& s) { return s.extents[1] = 4, s.bind(BP_SLOT_OUTPUT); }},
    {"negative_extent", BP_TYPE_MISMATCH, [](Subject& s) { return s.extents[1] = -3, s.bind(0); }},
    {"rank_beyond_all", BP_INVALID_ARGUMENT, [](Subject& s) { return s.tensor.rank = BP_MAX_RANK + 1, s.bind(0); }},
    {"null_extents", BP_INVALID_ARGUMENT, [](Subject& s) { return s.tensor.extents = nullptr, s.bind(0); }},
    {"small_buffer", BP_BUFFER_TOO_SMALL, [](Subject& s) { return --s.tensor.buffer.bytes, s.bind(0); }},
    {"small_buffer_of_an_output", BP_BUFFER_TOO_SMALL,
     [](Subject& s) { return --s.tensor.buffer.bytes, s.bind(BP_SLOT_OUTPUT); }},
    {"null_address", BP_BUFFER_TOO_SMALL, [](Subject& s) { return s.tensor.buffer.address = nullptr, s.bind(0); }},
    {"unknown_layout", BP_UNSUPPORTED, [](Subject& s) { return s.tensor.layout = BP_LAYOUT_VENDOR, s.bind(0); }},
    {"memory_of_another_device", BP_UNSUPPORTED,
     [](Subject& s) {
       s.tensor.buffer.memory = reinterpret_cast<bp_memory_t*>(&s);
       s.tensor.buffer.space = 99;
       return s.bind(0);
     }},
    {"reserve_of_a_buffer", BP_UNSUPPORTED, [](Subject& s) { return s.tensor.buffer.reserved = 1, s.bind(0); }},
    {"output_in_read_only_memory", BP_INVALID_ARGUMENT,
     [](Subject& s) { return s.tensor.buffer.flags = BP_BUFFER_READ_ONLY, s.bind(BP_SLOT_OUTPUT); }},
    {"unknown_flag_of_a_buffer", BP_UNSUPPORTED,
     [](Subject& s) { return s.tensor.buffer.flags = 0x80000000u, s.bind(0); }},

    {"weight_beyond_the_last", BP_NOT_FOUND, [](Subject& s) { return s.replace_and_read(1); }, false, true},
    {"small_tensor_of_a_weight", BP_INVALID_ARGUMENT,
     [](Subject& s) { return s.tensor.size = kTooSmall, s.replace_and_read(); }, false, true},
    {"null_extents_of_a_weight", BP_INVALID_ARGUMENT,
     [](Subject& s) { return s.tensor.extents = nullptr, s.replace_and_read(); }, false, true},
    {"rank_beyond_all_of_a_weight", BP_INVALID_ARGUMENT,
     [](Subject& s) { return s.tensor.rank = BP_MAX_RANK + 1, s.replace_and_read(); }, false, true},
    {"null_strides_of_a_weight", BP_INVALID_ARGUMENT,
     [](Subject& s) { return s.tensor.layout = BP_LAYOUT_STRIDED, s.replace_and_read(); }, false, true},
    {"other_extents_of_a_weight", BP_TYPE_MISMATCH, [](Subject& s) { return s.extents[1] = 2, s.replace_and_read(); },
     false, true},
    {"small_buffer_of_a_weight", BP_BUFFER_TOO_SMALL,
     [](Subject& s) { return --s.tensor.buffer.bytes, s.replace_and_read(); }, false, true},
    {"reserve_of_a_buffer_of_a_weight", BP_UNSUPPORTED,
     [](Subject& s) { return s.tensor.buffer.reserved = 1, s.replace_and_read(); }, false, true},
    {"unknown_flag_of_a_buffer_of_a_weight", BP_UNSUPPORTED,
     [](Subject& s) { return s.tensor.buffer.flags = 0x20000, s.replace_and_read(); }, false, true},
    {"weight_in_memory_of_another_device", BP_UNSUPPORTED,
     [](Subject& s) {
       s.tensor.buffer.memory = reinterpret_cast<bp_memory_t*>(&s);
       s.tensor.buffer.space = 99;
       return s.replace_and_read();
     },
     false, true},
    {"weight_read_into_read_only_memory", BP_INVALID_ARGUMENT,
     [](Subject& s) {
       EXPECT_EQ(s.replace_and_read(), BP_OK) << s.detail.text();
       s.tensor.buffer.flags = BP_BUFFER_READ_ONLY;
       EXPECT_EQ(s.refit(0), BP_OK) << s.detail.text();
       return s.read_weight(0);
     },
     false, true},

    {"extents_before_bind", BP_BAD_STATE, [](Subject& s) { return s.set_extents(0); }},
    {"other_extents_later", BP_TYPE_MISMATCH,
     [](Subject& s) { return s.bind_all(), s.extents[1] = 2, s.set_extents(0); }},

    {"nothing_bound", BP_BAD_STATE, [](Subject& s) { return s.start(); }},
    {"output_not_bound", BP_BAD_STATE, [](Subject& s) { return run_with(s, 0); }},
    {"input_not_bound", BP_BAD_STATE, [](Subject& s) { return run_with(s, BP_SLOT_OUTPUT); }},
    {"null_points", BP_INVALID_ARGUMENT, [](Subject& s) { return s.bind_all(), s.run.wait_count = 1, s.start(); }},
    {"point_without_a_semaphore", BP_INVALID_ARGUMENT,
     [](Subject& s) {
       s.bind_all();
       const bp_point_t point = bp_host_point(nullptr, 1);
       s.run.signals = &point;
       s.run.signal_count = 1;
       return s.start();
     }},
    {"deadline_long_past", BP_TIMED_OUT, [](Subject& s) { return s.bind_all(), s.run.deadline = 1, s.start(); }},
    {"cancelled", BP_CANCELLED,
     [](Subject& s) {
       s.bind_all();
       s.run.cancel = reinterpret_cast<const bp_cancel_t*>(&s);
       return s.start();
     }},
    {"second_run", BP_BUSY, run_twice},
#if !defined(__SANITIZE_THREAD__)  // ThreadSanitizer does not support forking a multithreaded process
    {"forked", BP_FORKED, run_in_child},
#endif
};

std::vector<std::string> backends() {
  std::istringstream list(BACKPLANE_BACKENDS);
  std::vector<std::string> names;
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  return names;
}

class Refusals : public ::testing::TestWithParam<std::tuple<std::string, Case>> {};

TEST_P(Refusals, AreTheSame) {
  const auto& [backend, wrong] = GetParam();
  bp_host_t host{};  // a host that reports every cancel token as set
  host.cancelled = [](const bp_host_t*, const bp_cancel_t* token) -> uint32_t { return token != nullptr ? 1 : 0; };
  host.semaphore_wait = wait_by_running;
  setenv("BACKPLANE_ONNXIFI_PATH", BACKPLANE_BUILD_DIR "/tests/onnxifi/plain", 1);  // a library for the backend onnxifi
  PluginUnderTest plugin(BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_" + backend + ".so", host);
  if (plugin.device == nullptr) GTEST_SKIP() << backend << " finds no device here";
  Subject subject(plugin);
  if (wrong.needs_output_extents && plugin.plugin->program->output_extents == nullptr)
    GTEST_SKIP() << backend << " lacks the slot output_extents";
  if (wrong.has_weights && plugin.plugin->weights == nullptr) GTEST_SKIP() << backend << " replaces no weights";
  EXPECT_EQ(wrong.call(subject), wrong.expected) << std::hex << wrong.expected << ": " << subject.detail.text();
  EXPECT_FALSE(subject.detail.text().empty());
  EXPECT_EQ(subject.detail.error.status, wrong.expected);

  subject.reset();
  subject.bind_all();
  ASSERT_EQ(subject.start(), BP_OK) << subject.detail.text();
  EXPECT_EQ(subject.wait(), BP_OK);
  EXPECT_THAT(subject.y, ::testing::ElementsAre(0, 0, 0, 1, 2, 3));
}

INSTANTIATE_TEST_SUITE_P(Each, Refusals,
                         ::testing::Combine(::testing::ValuesIn(backends()), ::testing::ValuesIn(kCases)),
                         [](const auto& info) { return std::get<0>(info.param) + "_" + std::get<1>(info.param).name; });

}  // namespace
