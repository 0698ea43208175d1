// SPDX-License-Identifier: Apache-2.0
// What holds after a lack of memory: in runs, in streams of the framework, and while weights are replaced.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backplane/client.hpp"
#include "backplane/sdk/async.hpp"
#include "testing/allocation_failure.h"
#include "testing/onnx_writer.h"
#include "testing/partial.h"

namespace backplane {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Ne;

// Makes a call of the API in which allocation `n`, counted from 0, fails. Sets `is_over` if the call made fewer.
template <class Call>
bp_status_t with_failure(int64_t n, bool& is_over, Call call) {
  until_failure = n;
  const bp_status_t status = call();
  is_over = until_failure >= 0;
  until_failure = -1;
  return status;
}

class HostSemaphore {
 public:
  HostSemaphore() { detail::call(api().semaphore_create, uint64_t{0}, &semaphore_); }
  HostSemaphore(const HostSemaphore&) = delete;
  ~HostSemaphore() { api().semaphore_destroy(semaphore_); }
  bp_point_t point(uint64_t value) const { return bp_host_point(semaphore_, value); }
  void wait(uint64_t value) const { api().semaphore_wait(semaphore_, value, BP_FOREVER, nullptr, nullptr); }
  uint64_t value() const {
    uint64_t value = 0;
    api().semaphore_query(semaphore_, &value, nullptr);
    return value;
  }

 private:
  bp_semaphore_t* semaphore_ = nullptr;
};

bp_run_t run_in(bp_stream_t* stream, const std::vector<bp_point_t>& signals = {}) {
  bp_run_t run{};
  run.size = sizeof run;
  run.stream = stream;
  run.signals = signals.data();
  run.signal_count = static_cast<uint32_t>(signals.size());
  return run;
}

// A chain of nodes on an asynchronous device, bound to tensors, and a stream of the device. It has run once.
struct Streaming {
  explicit Streaming(std::map<std::string, std::string> options = {})
      : env(streaming(std::move(options))),
        session(env.compile(chain(2), pinned({{"*", "partial"}}))),
        exec(session.exec()),
        stream(env.stream(env.devices()[1].info.id)) {
    exec.bind("x", x);
    exec.bind_output(0u, y);
    const bp_run_t run = run_in(stream.get());
    detail::call(api().exec_run, exec.get(), &run);
    stream.wait();
  }

  Environment env;
  Session session;
  Exec exec;
  Stream stream;
  const Tensor x = Tensor::of<float>({3}, {1, -2, 3}), y = Tensor::of<float>({3}, {0, 0, 0});
};

// The semaphores of a run that was refused are not signaled by a later run.
TEST(AllocationInAStream, ARefusedRunSignalsNothing) {
  const Streaming on;
  uint64_t refused = 0;
  bool is_over = false;
  for (int64_t n = 0; !is_over; ++n) {
    const HostSemaphore failed, later;
    // More points than in earlier runs: the loader reuses the records of those runs, which have room for their points.
    std::vector<bp_point_t> points;
    for (uint64_t value = 1; value <= 3 + static_cast<uint64_t>(n); ++value) points.push_back(failed.point(value));
    bp_run_t run = run_in(on.stream.get(), points);
    const bp_status_t status = with_failure(n, is_over, [&] { return api().exec_run(on.exec.get(), &run, nullptr); });
    const std::vector<bp_point_t> one{later.point(1)};
    run = run_in(on.stream.get(), one);
    detail::call(api().exec_run, on.exec.get(), static_cast<const bp_run_t*>(&run));
    later.wait(1);
    static_cast<void>(api().stream_wait(on.stream.get(), BP_FOREVER, nullptr));
    EXPECT_EQ(failed.value(), status == BP_OK ? points.size() : 0) << "allocation " << n;
    refused += status != BP_OK;
  }
  EXPECT_GT(refused, 0u);
}

// A failure that the device reported is not forgotten.
TEST(AllocationInAStream, AFailureIsReportedByTheNextWait) {
  const Streaming on;
  bp_cancel_t* cancel = nullptr;
  detail::call(api().cancel_create, &cancel);
  api().cancel_set(cancel);
  uint64_t later = 0;
  bool is_over = false;
  for (int64_t n = 0; !is_over; ++n) {
    bp_run_t run = run_in(on.stream.get());
    run.cancel = cancel;  // the device ends the run with BP_CANCELLED
    detail::call(api().exec_run, on.exec.get(), static_cast<const bp_run_t*>(&run));
    while (counters(on.env).in_streams != 0) std::this_thread::yield();
    bp_error_t error{};
    error.size = sizeof error;
    const bp_status_t status =
        with_failure(n, is_over, [&] { return api().stream_wait(on.stream.get(), BP_FOREVER, &error); });
    if (status == BP_CANCELLED) continue;
    EXPECT_EQ(status, BP_RESOURCE_EXHAUSTED);
    if (error.text_size != 0) continue;  // it was the device that had no memory for its failure
    EXPECT_THAT(api().stream_wait(on.stream.get(), BP_FOREVER, nullptr), AnyOf(BP_CANCELLED, BP_RESOURCE_EXHAUSTED))
        << "allocation " << n;
    ++later;
  }
  EXPECT_GT(later, 0u);
  api().cancel_destroy(cancel);
}

// Even the first failure in the process is kept without memory.
TEST(AllocationInAStream, WithoutAnyMemoryAFailureIsKept) {
  const Streaming on;
  bp_cancel_t* cancel = nullptr;
  detail::call(api().cancel_create, &cancel);
  api().cancel_set(cancel);
  bp_run_t run = run_in(on.stream.get());
  run.cancel = cancel;
  detail::call(api().exec_run, on.exec.get(), static_cast<const bp_run_t*>(&run));
  while (counters(on.env).in_streams != 0) std::this_thread::yield();
  no_memory = true;
  const bp_status_t status = api().stream_wait(on.stream.get(), BP_FOREVER, nullptr);
  no_memory = false;
  EXPECT_EQ(status, BP_RESOURCE_EXHAUSTED);
  EXPECT_THAT(api().stream_wait(on.stream.get(), BP_FOREVER, nullptr), AnyOf(BP_CANCELLED, BP_RESOURCE_EXHAUSTED));
  api().cancel_destroy(cancel);
}

// The thread of the device's stream has no memory from the end of the first run to that of the second.
TEST(AllocationInAStream, ARunThatFailsInAThreadWithoutMemoryIsReported) {
  const Streaming on;
  Exec other = on.session.exec();
  other.bind("x", on.x);
  bp_run_t run = run_in(on.stream.get());
  run.done = [](void*, bp_status_t, const bp_error_t*) { no_memory = true; };
  detail::call(api().exec_run, on.exec.get(), static_cast<const bp_run_t*>(&run));
  bp_cancel_t* cancel = nullptr;
  detail::call(api().cancel_create, &cancel);
  api().cancel_set(cancel);
  const HostSemaphore failed;
  const std::vector<bp_point_t> points{failed.point(1)};
  bp_status_t seen = BP_OK;
  run = run_in(on.stream.get(), points);
  run.cancel = cancel;  // the device has no memory for the text of the error
  run.self = &seen;
  run.done = [](void* self, bp_status_t status, const bp_error_t*) {
    no_memory = false;
    *static_cast<bp_status_t*>(self) = status;
  };
  detail::call(api().exec_run, other.get(), static_cast<const bp_run_t*>(&run));
  const bp_status_t waited =
      api().semaphore_wait(reinterpret_cast<bp_semaphore_t*>(points[0].handle), 1, BP_FOREVER, nullptr, nullptr);
  EXPECT_EQ(waited, BP_DEPENDENCY_FAILED);
  EXPECT_THAT(seen, AnyOf(BP_CANCELLED, BP_RESOURCE_EXHAUSTED));
  static_cast<void>(api().stream_wait(on.stream.get(), BP_FOREVER, nullptr));
  other.run();
  api().cancel_destroy(cancel);
}

TEST(AllocationInAStream, FailuresAreKeptAndPassedOnWithoutMemory) {
  const sdk::Error cause(BP_CANCELLED, "a text that is too long to be stored without an allocation", 7);
  sdk::HostTimeline timeline;
  sdk::Unreported unreported;
  unreported.add(cause, 3);
  no_memory = true;
  for (uint64_t value = 1; value <= 40; ++value) timeline.signal(value, &cause);
  const auto of_timeline = timeline.failure(40);
  const auto of_stream = unreported.get();
  const auto thrown = sdk::caught([&] { throw sdk::Error(cause); });
  const auto lack = sdk::caught([] { static_cast<void>(std::vector<int>(1000)); });
  no_memory = false;
  for (const auto& failure : {of_timeline, of_stream, thrown}) {
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->status, BP_CANCELLED);
    EXPECT_EQ(failure->node, 7u);
  }
  EXPECT_EQ(of_stream->run, 3u);
  ASSERT_TRUE(lack.has_value());
  EXPECT_EQ(lack->status, BP_RESOURCE_EXHAUSTED);
}

// The copy of the input is in the stream when the island's instance is found to be busy.
TEST(AllocationInAStream, ARefusedRunLeavesNoWorkThere) {
  const Streaming on(std::map<std::string, std::string>{{"partial.run_us", "20000"}});
  const partial::Counters& counted = counters(on.env);
  uint64_t refused = 0;
  int repeated = 0;
  bool is_over = false;
  for (int64_t n = 0; !is_over; ++n) {
    const bp_run_t run = run_in(on.stream.get());
    detail::call(api().exec_run, on.exec.get(), &run);
    const uint64_t copies = counted.stream_copies, busy = counted.busy;
    const bp_status_t status = with_failure(n, is_over, [&] { return api().exec_run(on.exec.get(), &run, nullptr); });
    if (is_over && counted.busy == busy) {  // the previous run had already ended
      ASSERT_LT(++repeated, 20);
      is_over = false;
      --n;
    }
    if (status != BP_OK && counted.stream_copies != copies) {
      EXPECT_EQ(counted.in_streams, 0u) << "allocation " << n;
      ++refused;
    }
    static_cast<void>(api().stream_wait(on.stream.get(), BP_FOREVER, nullptr));
  }
  EXPECT_GT(refused, 0u);
}

TEST(AllocationInAStream, ADeviceIsGivenUpInAllItsStreams) {
  const Environment env = streaming({{"partial.fault", "hang@n0#1"}});
  const uint64_t id = env.devices()[1].info.id;
  // The device hangs in the first run of each program.
  const Session session = env.compile(chain(1), pinned({{"*", "partial"}}));
  const Session another = env.compile(chain(1), pinned({{"*", "partial"}}));
  Exec first = session.exec(), second = another.exec();
  const Stream stream = env.stream(id), other = env.stream(id);
  std::array<bp_status_t, 2> seen{};
  static const Tensor& x = *new Tensor(Tensor::of<float>({3}, {1, -2, 3}));  // the device still reads it after the test
  const auto start = [&](Exec& exec, const Stream& where, bp_status_t& end) {
    exec.bind("x", x);
    bp_run_t run = run_in(where.get());
    run.self = &end;
    run.done = [](void* self, bp_status_t status, const bp_error_t*) { *static_cast<bp_status_t*>(self) = status; };
    detail::call(api().exec_run, exec.get(), static_cast<const bp_run_t*>(&run));
  };
  start(first, stream, seen[0]);
  start(second, other, seen[1]);
  no_memory = true;
  static_cast<void>(api().env_abandon_device(env.get(), id, nullptr));
  no_memory = false;
  EXPECT_THAT(seen, Each(Ne(BP_OK)));
}

// The previous run does not end until the call has returned.
TEST(AllocationInAStream, ADeadlineHolds) {
  uint64_t abandoned = 0;
  std::chrono::nanoseconds fastest = std::chrono::hours(1);
  bool is_over = false;
  for (int64_t n = 0; !is_over; n += 2) {  // only every second one, because each takes a tenth of a second
    const Streaming on(std::map<std::string, std::string>{{"partial.fault", "held@n0#2"}});
    const partial::Counters& counted = counters(on.env);
    const auto submitted = [&] { return counted.stream_copies + counted.stream_runs; };
    const uint64_t earlier = submitted();
    bp_run_t run = run_in(on.stream.get());
    detail::call(api().exec_run, on.exec.get(), static_cast<const bp_run_t*>(&run));
    const uint64_t before = submitted() - earlier - 1;
    while (counted.held != 1) std::this_thread::yield();  // the input has been copied
    const auto begin = std::chrono::steady_clock::now();
    const auto deadline = begin + std::chrono::milliseconds(10);
    run.deadline = static_cast<uint64_t>(std::chrono::nanoseconds(deadline.time_since_epoch()).count());
    bp_error_t error{};
    error.size = sizeof error;
    const bp_status_t status = with_failure(n, is_over, [&] { return api().exec_run(on.exec.get(), &run, &error); });
    EXPECT_NE(status, BP_OK);
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(took, std::chrono::seconds(2)) << "allocation " << n;
    fastest = std::min(fastest, took);
    const bool is_abandoned = (error.flags & BP_ERROR_ABANDONED) != 0;
    EXPECT_TRUE(is_abandoned || counted.in_streams <= before) << "allocation " << n;
    abandoned += is_abandoned;
    counted.let_go = true;
    wait_until_idle(counted);
  }
  EXPECT_GT(abandoned, 1u);
  // A tenth of a second beyond the deadline the device is abandoned; the rest is for a busy machine.
  EXPECT_LT(fastest, std::chrono::milliseconds(440));
}

// What an abandoned device may still use is kept, even if no memory is left.
TEST(AllocationInAStream, ObjectsOfAnAbandonedDeviceCanBeDestroyed) {
  std::optional<Environment> env(streaming({}));
  std::optional<Session> session(env->compile(chain(2), pinned({{"*", "partial"}})));
  std::optional<Stream> stream(std::in_place, env->get(), env->devices()[1].info.id);
  const partial::Counters& counted = counters(*env);
  env->abandon_device(env->devices()[1].info.id);
  no_memory = true;
  stream.reset();
  session.reset();
  env.reset();
  no_memory = false;
  EXPECT_EQ(counted.abandoned, 1u);
}

// If a run is not reported as abandoned, the device no longer uses the bound memory.
TEST(AllocationInARun, AnAbandonedRunIsReported) {
  uint64_t abandoned = 0;
  bool is_over = false;
  auto timeout = std::chrono::milliseconds(10);
  for (int64_t n = 0; !is_over; ++n) {
    const Environment env = streaming({{"partial.fault", "held@n0#2"}});
    const partial::Counters& counted = counters(env);
    Exec exec = env.compile(chain(1), pinned({{"*", "partial"}})).exec();
    const Tensor x = Tensor::of<float>({3}, {1, -2, 3}), y = Tensor::of<float>({3}, {0, 0, 0});
    exec.bind("x", x);
    exec.bind_output(0u, y);
    exec.run();
    bp_run_t run = run_in(nullptr);
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    run.deadline = static_cast<uint64_t>(std::chrono::nanoseconds(deadline.time_since_epoch()).count());
    bp_error_t error{};
    error.size = sizeof error;
    const bp_status_t status = with_failure(n, is_over, [&] { return api().exec_run(exec.get(), &run, &error); });
    EXPECT_NE(status, BP_OK);
    const bool is_abandoned = (error.flags & BP_ERROR_ABANDONED) != 0;
    EXPECT_TRUE(is_abandoned || counted.in_streams == 0) << "allocation " << n;
    counted.let_go = true;
    if (status == BP_TIMED_OUT && !is_abandoned) {  // the deadline passed before the device ran
      ASSERT_EQ(counted.held, 0u) << "allocation " << n;
      ASSERT_LT(timeout, std::chrono::seconds(20));
      is_over = false;
      --n;
      timeout *= 2;
    }
    if (!is_abandoned) continue;
    ++abandoned;
    EXPECT_EQ(status, BP_TIMED_OUT);
    const Error lost = failure([&] { exec.run(); });
    EXPECT_EQ(lost.status(), BP_DEVICE_LOST);
    EXPECT_THAT(lost.text(), HasSubstr("create another exec"));
    wait_until_idle(counted);
  }
  EXPECT_GT(abandoned, 1u);  // one of them without memory for the text
}

// Every block that the device has allocated reaches the framework, or is released.
TEST(AllocationOfMemory, ABlockIsNotLost) {
  const Environment env = streaming({});
  const uint64_t device = env.devices()[1].info.id;
  const bp_allocate_t what{sizeof what, 0, 12, nullptr, nullptr};
  uint64_t failed = 0;
  bool is_over = false;
  for (int64_t n = 0; !is_over; ++n) {
    bp_buffer_t buffer{};
    const bp_status_t status =
        with_failure(n, is_over, [&] { return api().memory_allocate(env.get(), device, &what, &buffer, nullptr); });
    failed += status != BP_OK;
    const bp_release_t release{sizeof release, 0, &buffer, nullptr};
    if (status == BP_OK) api().memory_release(env.get(), &release);
    EXPECT_EQ(counters(env).allocations, counters(env).releases) << "allocation " << n;
  }
  EXPECT_GT(failed, 0u);
}

// The first device is lost, and the second one is still working when the first one's failure is found.
TEST(AllocationInARun, AFailedRunLeavesNoWorkInAnyStream) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {3});
  std::vector<uint32_t> outputs;
  for (const std::string branch : {"a", "b"}) {
    uint32_t value = x;
    for (int i = 0; i < 12; ++i) value = graph.node("Neg", branch + std::to_string(i), {value});
    outputs.push_back(value);
  }
  const Model model = graph.finish(outputs);
  uint64_t failed = 0;
  bool is_over = false;
  for (int64_t n = 0; !is_over && n < 40; ++n) {  // later allocations belong to the failover
    const Environment env =
        streaming({{"partial.devices", "2"}, {"partial.0.fault", "lost@a0#2"}, {"partial.1.run_us", "5000"}});
    Exec exec = env.compile(model, pinned({{"a*", "partial:0"}, {"b*", "partial:1"}})).exec();
    exec.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
    exec.run();
    const bp_status_t status = with_failure(n, is_over, [&] { return api().exec_run(exec.get(), nullptr, nullptr); });
    EXPECT_EQ(counters(env, 0).in_streams + counters(env, 1).in_streams, 0u) << "allocation " << n;
    EXPECT_NE(status, BP_OK);
    failed += status == BP_RESOURCE_EXHAUSTED;
  }
  EXPECT_GT(failed, 0u);
}

// The run ends with `done` and its signals, although there is no memory even for the text of the error.
TEST(AllocationInARun, ASubmittedRunEnds) {
  static std::atomic<bool> armed{false};
  const std::string file = kCpuFile;
  const bp_text_t files = view::text(file);
  bp_env_desc_t desc{};
  desc.size = sizeof desc;
  desc.flags = BP_ENV_ONLY_GIVEN;
  desc.backend_files = &files;
  desc.backend_file_count = 1;
  desc.allocate = [](void*, uint64_t bytes, uint64_t alignment) -> void* {
    if (armed.exchange(false)) {
      no_memory = true;  // from now on, in the exec's own thread
      return nullptr;
    }
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  };
  desc.release = [](void*, void* memory, uint64_t, uint64_t) { std::free(memory); };
  bp_env_t* env = nullptr;
  detail::call(api().env_create, static_cast<const bp_env_desc_t*>(&desc), &env);
  bp_session_t* session = nullptr;
  const Model model = chain(1);
  detail::call(api().session_create, env, model.get(), static_cast<const bp_session_desc_t*>(nullptr), &session);
  bp_exec_t* exec = nullptr;
  detail::call(api().exec_create, session, static_cast<const bp_exec_desc_t*>(nullptr), &exec);
  const Tensor x = Tensor::of<float>({3}, {1, -2, 3});
  const bp_tensor_t tensor = x.abi();
  detail::call(api().exec_bind, exec, 0u, &tensor);
  const HostSemaphore ended;
  const std::vector<bp_point_t> signals{ended.point(1)}, next{ended.point(2)};
  bp_run_t run = run_in(nullptr, signals);
  bp_status_t seen = BP_OK;
  run.self = &seen;
  run.done = [](void* self, bp_status_t status, const bp_error_t*) { *static_cast<bp_status_t*>(self) = status; };
  armed = true;
  detail::call(api().exec_submit, exec, static_cast<const bp_run_t*>(&run));
  ended.wait(1);
  EXPECT_EQ(seen, BP_RESOURCE_EXHAUSTED);
  EXPECT_EQ(api().semaphore_query(reinterpret_cast<bp_semaphore_t*>(signals[0].handle), &run.id, nullptr),
            BP_DEPENDENCY_FAILED);
  api().exec_destroy(exec);
  api().session_destroy(session);
  api().env_destroy(env);
}

std::string value_of_any_shape(std::string_view name) {
  using namespace testing::onnx;
  std::string tensor, type, out = value(name);
  Writer(tensor).add_int32(field::tensor_type::kElemType, BP_DTYPE_FLOAT);
  Writer(type).add_message(field::type::kTensor, tensor);
  Writer(out).add_message(field::value_info::kType, type);
  return out;
}

TEST(AllocationInARun, ExtentsOfSeveralInputsAreAllOrNone) {
  using namespace testing::onnx;
  const Environment env = partial_environment({});
  const Model model = env.parse(
      model_bytes({{"", 17}}, graph({node("Neg", {"a"}, {"y"}), node("Neg", {"b"}, {"z"})},
                                    {value_of_any_shape("a"), value_of_any_shape("b")}, {value("y"), value("z")})));
  Exec exec = env.compile(model).exec();
  const Tensor a = Tensor::of<float>({2}, {1, 2}), b = Tensor::of<float>({2}, {3, 4});
  const int64_t wide[] = {1, 1, 2};
  const bp_slot_extents_t both[] = {{0, 3, wide}, {1, 3, wide}};
  uint64_t failed = 0;
  bool is_over = false;
  for (int64_t n = 0; !is_over; ++n) {
    exec.bind("a", a);
    exec.bind("b", b);
    const bp_status_t status =
        with_failure(n, is_over, [&] { return api().exec_extents(exec.get(), both, 2, sizeof *both, nullptr); });
    exec.run();
    const size_t rank = status == BP_OK ? 3 : 1;
    EXPECT_EQ(exec.output(0u).extents().size(), rank) << "allocation " << n;
    EXPECT_EQ(exec.output(1u).extents().size(), rank) << "allocation " << n;
    failed += status != BP_OK;
  }
  EXPECT_GT(failed, 0u);
}

// Two programs, each with one of the weights.
TEST(AllocationInARefit, AllWeightsAreReplacedOrNone) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2});
  const uint32_t s = graph.node("Add", "s", {x, graph.weight("b", Tensor::of<float>({2}, {0, 0}))});
  const Model model = graph.finish({graph.node("Add", "y", {s, graph.weight("c", Tensor::of<float>({2}, {0, 0}))})});
  const Environment env = environment({BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_null.so"});
  SessionOptions how;
  how.flags = BP_SESSION_REFIT;
  how.options = {{"loader.max_island_nodes", "1"}};
  const Session session = env.compile(model, how);
  ASSERT_NE(session.node(0).island, session.node(1).island);
  Exec exec = session.exec();
  exec.bind("x", Tensor::of<float>({2}, {0, 0}));
  float present = 0;
  uint64_t failed = 0;
  bool is_over = false;
  for (int64_t n = 0; !is_over; ++n) {
    const float next = static_cast<float>(n + 1);
    const Tensor weight = Tensor::of<float>({2}, {next, 100 * next});
    const bp_tensor_t tensor = weight.abi();
    const bp_named_tensor_t weights[] = {{view::text("b"), &tensor}, {view::text("c"), &tensor}};
    bp_session_refit_t what{};
    what.size = sizeof what;
    what.count = 2;
    what.weights = weights;
    what.stride = sizeof *weights;
    const bp_status_t status =
        with_failure(n, is_over, [&] { return api().session_refit(session.get(), &what, nullptr); });
    EXPECT_THAT(status, AnyOf(BP_OK, BP_RESOURCE_EXHAUSTED));
    if (status == BP_OK) present = next;
    failed += status != BP_OK;
    exec.run();
    EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(2 * present, 200 * present)) << "allocation " << n;
    Tensor back(BP_DTYPE_FLOAT, {2});
    session.read_weight("c", back);
    EXPECT_THAT(back.values<float>(), ElementsAre(present, 100 * present)) << "allocation " << n;
  }
  EXPECT_GT(failed, 0u);
}

// The null backend under a name so long that the text of an error with it needs an allocation. After the backend has
// replaced weights, the next allocation fails.
const bp_plugin_t* BP_CALL query_scarce_plugin(const bp_host_offer_t* offer) {
  static const auto kQuery = reinterpret_cast<bp_plugin_query_t>(::dlsym(
      ::dlopen(BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_null.so", RTLD_NOW | RTLD_NODELETE), BP_PLUGIN_SYMBOL));
  static bp_plugin_t scarce;
  static bp_weights_api_t weights;
  static decltype(weights.refit) inner;
  scarce = *kQuery(offer);
  scarce.id = view::text(std::string_view("null_with_a_long_name"));
  weights = *scarce.weights;
  inner = weights.refit;
  weights.refit = [](bp_program_t* program, const bp_refit_t* what, bp_error_t* error) {
    const bp_status_t status = inner(program, what, error);
    until_failure = 0;
    return status;
  };
  scarce.weights = &weights;
  return &scarce;
}

// If an allocation failed after the device has replaced its weights, the session would go on with the old weights.
TEST(AllocationInARefit, NothingIsAllocatedBetweenTheDeviceAndTheResult) {
  EnvironmentOptions only;
  only.only_given = true;
  only.plugins = {query_scarce_plugin};
  const Environment env(only);
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2});
  const Model model = graph.finish({graph.node("Add", "y", {x, graph.weight("w", Tensor::of<float>({2}, {0, 0}))})});
  SessionOptions how;
  how.flags = BP_SESSION_REFIT;
  const Session session = env.compile(model, how);
  const Tensor weight = Tensor::of<float>({2}, {1, 2});
  const bp_tensor_t tensor = weight.abi();
  const bp_named_tensor_t named{view::text("w"), &tensor};
  bp_session_refit_t what{};
  what.size = sizeof what;
  what.count = 1;
  what.weights = &named;
  what.stride = sizeof named;
  const bp_status_t status = api().session_refit(session.get(), &what, nullptr);
  const bool none_failed = until_failure == 0;
  until_failure = -1;
  EXPECT_EQ(status, BP_OK);
  EXPECT_TRUE(none_failed);
  Exec exec = session.exec();
  exec.bind("x", Tensor::of<float>({2}, {0, 0}));
  exec.run();
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(1, 2));
}

}  // namespace
}  // namespace backplane
