// SPDX-License-Identifier: Apache-2.0
// Tests what the SDK does itself: which slots are set, how exceptions become statuses, and the ABI's size rules. The
// tests call the C tables of a backend that has all of them and throws on demand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <system_error>
#include <thread>

#include "abi/testing/end_of_page.h"
#include "testing/sdk_fixture.h"

namespace backplane::sdk::testing {
namespace {

using ::testing::HasSubstr;

std::atomic<int> slow_counts{0};

// A backend that takes some time to count its devices.
class Slow : public All {
 public:
  using All::All;
  uint32_t device_count(std::string&) override {
    ++slow_counts;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return 1;
  }
};

TEST_F(Sdk, ADeviceReportsOperatorSetsOfItsOwn) {
  bp_opsets_t known{};
  known.size = sizeof known;
  ASSERT_EQ(plugin->coverage->opsets(device, &known, &detail.error), BP_OK);
  EXPECT_EQ(known.size, sizeof known);
  EXPECT_EQ(known.ir_version, 4u);
  ASSERT_EQ(known.opset_count, 1u);
  EXPECT_EQ(known.opsets->version, 9u);
}

TEST_F(Sdk, GroupsAreReportedWithAllTheirFields) {
  TinyGraph graph;
  graph.output(graph.node("Relu", 14, {graph.input("x", {2, 3})}, {2, 3}));
  bp_coverage_query_t query{};
  query.size = sizeof query;
  query.graph = graph.get();
  std::vector<bp_group_t> groups;
  bp_coverage_sink_t sink{};
  sink.size = sizeof sink;
  sink.self = &groups;
  sink.verdicts = [](void*, const bp_verdict_t*, uint32_t, uint32_t) {};
  sink.groups = [](void* self, const bp_group_t* given, uint32_t count, uint32_t stride) {
    auto& kept = *static_cast<std::vector<bp_group_t>*>(self);
    for (uint32_t i = 0; i < count; ++i) kept.push_back(element(given, i, stride));
    ASSERT_EQ(kept.size(), 1u);
    ASSERT_EQ(kept[0].node_count, 1u);
    EXPECT_EQ(*kept[0].nodes, 0u);
    EXPECT_EQ(text(kept[0].name), "alone");
  };
  ASSERT_EQ(plugin->coverage->query(device, &query, &sink, &detail.error), BP_OK) << detail.text();
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].flags, BP_GROUP_ATOMIC);
  EXPECT_EQ(groups[0].seconds, 2e-6);
  EXPECT_EQ(groups[0].bytes, 4096u);
  EXPECT_EQ(groups[0].compute_types, BP_COMPUTE_FP16);
  EXPECT_EQ(groups[0].confidence, 0.5f);
}

TEST_F(Sdk, RefusesAHostWithAnotherSanitizer) {
  const bp_host_offer_t offer{sizeof offer, BP_ABI_VERSION_MIN, BP_ABI_VERSION, kSanitizer + 1, {}};
  const bp_plugin_t* answer = Plugin<All>::query(&offer);
  EXPECT_EQ(answer->version, 0u);
  EXPECT_EQ(answer->refusal, BP_INCOMPATIBLE);
  EXPECT_EQ(answer->create, nullptr);
}

// Tests that the SDK detects this override: `noexcept` is part of a member's type.
class AbandonedDevice : public AllDevice {
 public:
  using AllDevice::AllDevice;
  void abandon() noexcept override {}
};
static_assert(overrides<Device>(&AbandonedDevice::abandon));
static_assert(overrides<Device>(&AllDevice::health) && !overrides<Device>(&AllDevice::abandon));
class WithNoexcept {
 public:
  virtual ~WithNoexcept() = default;
  virtual int asked() const noexcept { return 0; }
};
class Inherits : public WithNoexcept {};
static_assert(!overrides<WithNoexcept>(&Inherits::asked));

TEST_F(Sdk, OffersOnlyOverriddenSlots) {
  EXPECT_NE(plugin->device->health, nullptr);
  EXPECT_EQ(plugin->device->abandon, nullptr);
  EXPECT_NE(plugin->coverage->review, nullptr);
  EXPECT_NE(plugin->program->output_extents, nullptr);
  EXPECT_NE(plugin->weights, nullptr);
  EXPECT_NE(plugin->memory->fill, nullptr);
  EXPECT_EQ(plugin->memory->flush, nullptr);
  EXPECT_EQ(plugin->memory->import, nullptr);
  EXPECT_EQ(plugin->memory->export_, nullptr);
  EXPECT_NE(plugin->sync->stream_create, nullptr);
  EXPECT_EQ(plugin->sync->semaphore_create, nullptr);
  EXPECT_EQ(plugin->get_extension, nullptr);
}

TEST_F(Sdk, TurnsEveryExceptionIntoACode) {
  const auto health = [&] { return plugin->device->health(device, &detail.error); };
  EXPECT_EQ(health(), BP_OK);
  on_health = [] { throw Error(BP_TIMED_OUT, "late", 7, -42); };
  EXPECT_EQ(health(), BP_TIMED_OUT);
  EXPECT_EQ(detail.text(), "late");
  EXPECT_EQ(detail.error.node, 7u);
  EXPECT_EQ(detail.error.vendor_code, -42);
  on_health = [] { throw Error::device_lost("gone"); };
  EXPECT_EQ(health(), BP_DEVICE_LOST);
  EXPECT_EQ(detail.error.flags, BP_ERROR_DEVICE_LOST);
  on_health = [] { throw std::bad_alloc(); };
  EXPECT_EQ(health(), BP_RESOURCE_EXHAUSTED);
  on_health = [] { throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)); };
  EXPECT_EQ(health(), BP_RESOURCE_EXHAUSTED);  // as std::thread throws if the process may start no further thread
  EXPECT_EQ(caught(on_health)->status, BP_RESOURCE_EXHAUSTED);
  on_health = [] { throw std::system_error(std::make_error_code(std::errc::permission_denied)); };
  EXPECT_EQ(health(), BP_INTERNAL);
  on_health = [] { throw std::out_of_range("beyond"); };
  EXPECT_EQ(health(), BP_INTERNAL);
  EXPECT_EQ(detail.text(), "beyond");
  on_health = [] { throw 1; };
  EXPECT_EQ(health(), BP_INTERNAL);
  EXPECT_EQ(plugin->device->health(device, nullptr), BP_INTERNAL);
  EXPECT_EQ(plugin->device->health(nullptr, nullptr), BP_INVALID_ARGUMENT);
}

TEST_F(Sdk, TruncatesErrorsToTheCallersRoom) {
  on_health = [] { throw Error(BP_IO_ERROR, "0123456789", 7); };
  detail.error.text_capacity = 4;
  detail.buffer[4] = '#';
  EXPECT_EQ(plugin->device->health(device, &detail.error), BP_IO_ERROR);
  EXPECT_EQ(std::string(detail.buffer, 5), "0123#");
  EXPECT_EQ(detail.error.text_size, 10u);
  bp_error_t old{};  // from a caller built when the struct ended with `node`
  old.size = offsetof(bp_error_t, vendor_code);
  old.vendor_code = 5;
  EXPECT_EQ(plugin->device->health(device, &old), BP_IO_ERROR);
  EXPECT_EQ(old.node, 7u);
  EXPECT_EQ(old.vendor_code, 5);
}

TEST_F(Sdk, RespectsTheSizesOfStructs) {
  bp_device_info_t info{};
  info.size = 8;
  EXPECT_EQ(plugin->device->info(backend, 0, &info, &detail.error), BP_INVALID_ARGUMENT);
  EXPECT_THAT(detail.text(), HasSubstr("out_info.size is 8; it must be at least"));
  struct {
    bp_device_info_t info;
    uint64_t newer = 99;
  } larger{};
  larger.info.size = sizeof larger;
  EXPECT_EQ(plugin->device->info(backend, 0, &larger.info, &detail.error), BP_OK);
  EXPECT_EQ(larger.info.size, sizeof larger);
  EXPECT_EQ(larger.newer, 99u);
  EXPECT_EQ(plugin->device->info(backend, 1, &info, &detail.error), BP_NOT_FOUND);
}

// The elements of an older host lack the last field, and the array ends where the host's memory ends.
TEST_F(Sdk, ReadsElementsInTheirStride) {
  struct Grown {
    uint64_t known, added;
  };
  const uint64_t older[] = {7, 9};
  const backplane::testing::EndOfPage memory(sizeof older);
  std::memcpy(memory.get(), older, sizeof older);
  const auto* const array = static_cast<const Grown*>(memory.get());
  for (uint32_t i = 0; i < 2; ++i) {
    const Grown copy = element(array, i, sizeof *older);
    EXPECT_EQ(copy.known, older[i]);
    EXPECT_EQ(copy.added, 0u);
  }
}

TEST_F(Sdk, ReportsWhyThereIsNoDevice) {
  on_health = nullptr;
  bp_backend_t* const without = create(plugin);
  for (int again = 0; again < 2; ++again) {
    uint32_t count = 9;
    Detail why;
    EXPECT_EQ(plugin->device->count(without, &count, &why.error), BP_OK);
    EXPECT_EQ(count, 0u);
    EXPECT_EQ(why.text(), "the device is switched off");
  }
  plugin->destroy(without);
}

// `info` is [thread-safe], but `device_count` need not be.
TEST_F(Sdk, CountsDevicesOnceForAllThreads) {
  const bp_host_offer_t offer{sizeof offer, BP_ABI_VERSION_MIN, BP_ABI_VERSION, kSanitizer, {}};
  const bp_plugin_t* const slow = Plugin<Slow>::query(&offer);
  bp_backend_t* const counted = create(slow);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      bp_device_info_t info{};
      info.size = sizeof info;
      EXPECT_EQ(slow->device->info(counted, 0, &info, nullptr), BP_OK);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(slow_counts, 1);
  slow->destroy(counted);
}

// The number of forks that the SDK counts in a child that was forked before this process used the SDK; -1 on failure.
const int kForksOfEarlyChild = [] {
  const pid_t child = fork();
  if (child == 0) _exit(static_cast<int>(fork_generation()));
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}();

TEST(Forks, AreCountedFromTheLoadOfThePlugin) {
  EXPECT_EQ(kForksOfEarlyChild, 1);
}

#if !defined(__SANITIZE_THREAD__)  // ThreadSanitizer does not support forking a multithreaded process
TEST_F(Sdk, AForkedChildUsesNoBackendOfItsParent) {
  bp_backend_t* const unopened = create(plugin);
  const pid_t child = fork();
  if (child == 0) {
    bool refused = true;
    for (bp_backend_t* const each : {backend, unopened}) {
      plugin->destroy(each);  // does nothing
      uint32_t count = 0;
      bp_device_t* opened = device;
      refused = refused && plugin->device->count(each, &count, nullptr) == BP_FORKED &&
                plugin->device->open(each, 0, nullptr, &opened, nullptr) == BP_FORKED && opened == nullptr;
    }
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  plugin->destroy(unopened);
}
#endif

TEST_F(Sdk, WithoutAHandleNothingIsCreated) {
  bp_device_t* opened = device;
  EXPECT_EQ(plugin->device->open(nullptr, 0, nullptr, &opened, nullptr), BP_INVALID_ARGUMENT);
  EXPECT_EQ(opened, nullptr);
  bp_compile_t what{};
  what.size = sizeof what;
  int other = 0;  // what the caller's variables point to before the calls
  auto* program = reinterpret_cast<bp_program_t*>(&other);
  EXPECT_EQ(plugin->program->compile(nullptr, &what, &program, nullptr), BP_INVALID_ARGUMENT);
  EXPECT_EQ(program, nullptr);
  program = reinterpret_cast<bp_program_t*>(&other);
  EXPECT_EQ(plugin->cache->deserialize(nullptr, &what, {}, &program, nullptr), BP_INVALID_ARGUMENT);
  EXPECT_EQ(program, nullptr);
  auto* instance = reinterpret_cast<bp_instance_t*>(&other);
  EXPECT_EQ(plugin->instance->create(nullptr, nullptr, &instance, nullptr), BP_INVALID_ARGUMENT);
  EXPECT_EQ(instance, nullptr);
  bp_stream_create_t how{};
  how.size = sizeof how;
  auto* stream = reinterpret_cast<bp_stream_t*>(&other);
  EXPECT_EQ(plugin->sync->stream_create(nullptr, &how, &stream, nullptr), BP_INVALID_ARGUMENT);
  EXPECT_EQ(stream, nullptr);
}

TEST_F(Sdk, RefusesUnknownSettings) {
  const bp_option_t options[] = {{text("speed"), text("1")}, {text("color"), text("red")}};
  bp_device_open_t how{};
  how.size = sizeof how;
  how.options = options;
  how.option_count = 2;
  how.option_stride = sizeof *options;
  bp_device_t* other = device;
  EXPECT_EQ(plugin->device->open(backend, 0, &how, &other, &detail.error), BP_NOT_FOUND);
  EXPECT_EQ(other, nullptr);
  EXPECT_EQ(detail.text(), "no setting is named 'color'; known: speed");
}

TEST_F(Sdk, StoresProgramsMemoryAndStreams) {
  TinyGraph graph;
  bp_program_t* program = compile(graph);
  std::string blob;
  const bp_text_sink_t append = [](void* out, bp_text_t piece) {
    static_cast<std::string*>(out)->append(piece.data, piece.size);
  };
  EXPECT_EQ(plugin->cache->serialize(program, append, &blob, &detail.error), BP_OK);
  uint32_t answer = 9;
  EXPECT_EQ(plugin->cache->validate(device, {blob.data(), blob.size()}, &answer, &detail.error), BP_OK);
  EXPECT_EQ(answer, BP_CACHE_EXACT);
  EXPECT_EQ(detail.text(), "looked at 4 bytes");
  const int64_t six[] = {6};
  bp_tensor_t tensor{sizeof tensor, BP_DTYPE_FLOAT, 1, 0, six, nullptr, {}};
  bp_refit_weight_t weight{3, 0, &tensor};
  const bp_refit_t refit{sizeof refit, 1, &weight, sizeof weight, 0};
  EXPECT_EQ(plugin->weights->refit(program, &refit, &detail.error), BP_NOT_FOUND);
  EXPECT_THAT(detail.text(), HasSubstr("no weight 3"));
  weight.tensor = nullptr;
  EXPECT_EQ(plugin->weights->refit(program, &refit, &detail.error), BP_INVALID_ARGUMENT);

  bp_buffer_t buffer{};
  bp_allocate_t allocate{sizeof allocate, 0, 64, nullptr, nullptr};
  EXPECT_EQ(plugin->memory->allocate(device, &allocate, &buffer, &detail.error), BP_OK);
  EXPECT_NE(buffer.memory, nullptr);
  const bp_release_t release{sizeof release, 0, &buffer, nullptr};
  plugin->memory->release(device, &release);
  EXPECT_EQ(reinterpret_cast<AllDevice*>(device)->released, 1);
  EXPECT_EQ(plugin->memory->map, nullptr);  // AllDevice does not override it
  const bp_fill_t fill{sizeof fill, 3, 0, &buffer, nullptr};
  EXPECT_EQ(plugin->memory->fill(device, &fill, &detail.error), BP_INVALID_ARGUMENT);
  bp_run_t order{};
  order.size = sizeof order;
  const bp_copy_t copy{sizeof copy, 0, &buffer, &buffer, 0, &order};
  EXPECT_EQ(plugin->memory->copy(device, &copy, &detail.error), BP_INVALID_ARGUMENT);
  EXPECT_THAT(detail.text(), ::testing::HasSubstr("what.run.stream is NULL"));
  order.stream = reinterpret_cast<bp_stream_t*>(&order);  // AllDevice does not look at it
  EXPECT_EQ(plugin->memory->copy(device, &copy, &detail.error), BP_OK);
  order.flags = 0x80000000u;
  EXPECT_EQ(plugin->memory->copy(device, &copy, &detail.error), BP_UNSUPPORTED);
  order.flags = 1;  // an unknown hint is ignored
  EXPECT_EQ(plugin->memory->copy(device, &copy, &detail.error), BP_OK);
  order.output = [](void*, uint32_t, uint32_t, const int64_t*, uint64_t, bp_tensor_t*) -> bp_status_t { return BP_OK; };
  EXPECT_EQ(plugin->memory->copy(device, &copy, &detail.error), BP_INVALID_ARGUMENT);
  order.output = nullptr;
  buffer.reserved = 1;
  EXPECT_EQ(plugin->memory->copy(device, &copy, &detail.error), BP_UNSUPPORTED);
  EXPECT_THAT(detail.text(), HasSubstr("what.from.reserved is 1"));
  bp_space_t space{};
  space.size = sizeof space;
  EXPECT_EQ(plugin->memory->space(device, 0, &space, &detail.error), BP_OK);
  EXPECT_EQ(space.flags, BP_SPACE_DEVICE);
  EXPECT_EQ(plugin->memory->space(device, 1, &space, &detail.error), BP_NOT_FOUND);

  bp_stream_t* stream = nullptr;
  const bp_stream_create_t how{sizeof how, 0, nullptr, nullptr};
  EXPECT_EQ(plugin->sync->stream_create(device, &how, &stream, &detail.error), BP_OK);
  EXPECT_EQ(plugin->sync->stream_wait(stream, BP_FOREVER, &detail.error), BP_OK);
  plugin->sync->stream_destroy(stream);
  plugin->sync->stream_destroy(nullptr);
  plugin->program->destroy(program);
}

TEST_F(Sdk, ParallelLoopsCarryTheFirstExceptionOut) {
  host.parallel_for = [](const bp_host_t*, const bp_loop_t* loop) {
    for (uint64_t i = 0; i < loop->count; ++i) loop->body(loop->context, 0, i, i + 1);
  };
  uint64_t sum = 0;
  const auto add = [&](uint64_t begin, uint64_t) {
    if (begin == 2) throw Error(BP_INTERNAL, "two");
    sum += begin;
  };
  EXPECT_THROW(Host(&host).parallel_for(4, 1, add), Error);
  EXPECT_EQ(sum, 4u);
}

}  // namespace
}  // namespace backplane::sdk::testing
