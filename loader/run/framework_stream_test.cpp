// SPDX-License-Identifier: Apache-2.0
// Runs in the framework's streams, and native semaphores.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "testing/partial.h"

namespace backplane {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

uint64_t partial_id(const Environment& env) {
  for (const Device& device : env.devices())
    if (device.name == "partial") return device.info.id;
  return 0;
}

RunOptions in(const Stream& stream) {
  RunOptions how;
  how.stream = &stream;
  return how;
}

// A framework's allocator of host memory, which partial devices import.
struct Pool {
  std::atomic<int> allocations{0}, releases{0};

  static bp_status_t BP_CALL allocate(void* self, const bp_allocate_t* what, bp_external_t* out) {
    ++static_cast<Pool*>(self)->allocations;
    struct Piece {
      Pool* pool;
      void* memory;
    };
    const uint64_t bytes = (what->bytes + 63) / 64 * 64;
    auto* const piece = new Piece{static_cast<Pool*>(self), std::aligned_alloc(64, bytes)};
    out->kind = BP_EXTERNAL_HOST_POINTER;
    out->handle = reinterpret_cast<uintptr_t>(piece->memory);
    out->bytes = bytes;
    out->self = piece;
    out->release = [](void* mine) {
      auto* const done = static_cast<Piece*>(mine);
      ++done->pool->releases;
      std::free(done->memory);
      delete done;
    };
    return BP_OK;
  }
};

TEST(FrameworkMemory, IsUsedByDevicesDirectly) {
  Pool pool;
  {
    const Environment env = streaming({});
    bp_device_open_t how{};
    how.size = sizeof how;
    how.self = &pool;
    how.allocate = Pool::allocate;
    ASSERT_EQ(api().env_open_device(env.get(), partial_id(env), &how, nullptr), BP_OK);
    Exec exec = env.compile(chain(3), pinned({{"*", "partial"}})).exec();
    const Tensor x = Tensor::of<float>({3}, {1, -2, 3});
    exec.bind("x", x);
    exec.run();
    EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(-1, 2, -3));
    EXPECT_GT(pool.allocations, 0);
    EXPECT_EQ(counters(env).allocations, 0u);
  }
  EXPECT_EQ(pool.allocations, pool.releases);
}

TEST(FrameworkOptions, OfABackendThatItDoesNotKnowRefuseIt) {
  const Environment env = environment({kCpuFile}, {{"cpu.thredas", "2"}});
  const auto candidates = env.candidates();
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_EQ(candidates[0].refusal, BP_REFUSED_CREATE);
  EXPECT_THAT(std::string(candidates[0].text.data, candidates[0].text.size),
              HasSubstr("there is no option 'thredas'; there are: threads"));
}

TEST(FrameworkStream, TakesRunsAndReturnsBeforeTheyEnd) {
  const Environment env = streaming({{"partial.run_us", "100000"}});
  Exec exec = env.compile(chain(3), pinned({{"*", "partial"}})).exec();
  const Stream stream = env.stream(partial_id(env));
  const Tensor x = Tensor::of<float>({3}, {1, -2, 3}), y = Tensor::of<float>({3}, {0, 0, 0});
  exec.bind("x", x);
  exec.bind_output(0u, y);
  const Semaphore go;
  RunOptions how = in(stream);
  how.waits = {go.at(1)};
  exec.run(how);
  EXPECT_EQ(counters(env).runs, 0u);
  go.signal(1);
  stream.wait();
  EXPECT_THAT(y.values<float>(), ElementsAre(-1, 2, -3));
  const partial::Counters& counted = counters(env);
  EXPECT_EQ(counted.stream_runs, 3u);
  EXPECT_EQ(counted.stream_copies, 2u);
  EXPECT_EQ(counted.reports, 0u);  // no run had a `done`
  // Binding other memory waits for the stream.
  exec.run(in(stream));
  const Tensor other = Tensor::of<float>({3}, {4, 5, 6});
  exec.bind("x", other);
  EXPECT_THAT(y.values<float>(), ElementsAre(-1, 2, -3));
  exec.run(in(stream));
  exec.run(in(stream));
  stream.wait();
  EXPECT_THAT(y.values<float>(), ElementsAre(-4, -5, -6));
  exec.run();  // this run uses no stream
  EXPECT_THAT(y.values<float>(), ElementsAre(-4, -5, -6));
}

TEST(FrameworkStream, DoneAndSignalsComeAfterTheRun) {
  const Environment env = streaming({{"partial.run_us", "1000"}});
  Exec exec = env.compile(chain(2), pinned({{"*", "partial"}})).exec();
  const Stream stream = env.stream(partial_id(env));
  const Tensor x = Tensor::of<float>({3}, {1, -2, 3}), y = Tensor::of<float>({3}, {0, 0, 0});
  exec.bind("x", x);
  exec.bind_output(0u, y);
  const Semaphore go, done;
  RunOptions how = in(stream);
  how.waits = {go.at(1)};
  how.signals = {done.at(1)};
  exec.run(how);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(done.value(), 0u);
  EXPECT_EQ(counters(env).runs, 0u);
  go.signal(1);
  done.wait(1);
  EXPECT_THAT(y.values<float>(), ElementsAre(1, -2, 3));
}

// If a device cannot replace weights, a refit compiles new programs. It does not wait for a run in flight, which keeps
// the old program. Later runs use the new program.
TEST(FrameworkStream, ARunInFlightEndsWithTheOldWeights) {
  const Environment env = streaming({});
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {3});
  const uint32_t w = graph.weight("w", Tensor::of<float>({1}, {2}));
  const Model model = graph.finish({graph.node("Mul", "y", {graph.node("Neg", "n", {x}), w})});
  SessionOptions options = pinned({{"*", "partial"}});
  options.flags = BP_SESSION_REFIT;
  const Session session = env.compile(model, options);
  const Stream stream = env.stream(partial_id(env));
  Exec exec = session.exec();
  const Tensor given = Tensor::of<float>({3}, {1, -2, 3}), y = Tensor::of<float>({3}, {0, 0, 0});
  exec.bind("x", given);
  exec.bind_output(0u, y);
  const Semaphore go, done;
  RunOptions how = in(stream);
  how.waits = {go.at(1)};
  how.signals = {done.at(1)};
  exec.run(how);
  session.refit("w", Tensor::of<float>({1}, {5}));
  EXPECT_EQ(done.value(), 0u);
  Exec later = session.exec();
  later.bind("x", given);
  later.run();
  EXPECT_THAT(later.output(0u).values<float>(), ElementsAre(-5, 10, -15));
  session.refit("w", Tensor::of<float>({1}, {7}));
  go.signal(1);
  stream.wait();
  EXPECT_THAT(y.values<float>(), ElementsAre(-2, 4, -6));
  exec.run();
  EXPECT_THAT(y.values<float>(), ElementsAre(-7, 14, -21));
}

// With shared memory nothing is copied before the first island or after the last, so the islands must report the end.
TEST(FrameworkStream, ReportsCompletionIfMemoryIsShared) {
  const Environment env = streaming({{"partial.memory", "shared"}, {"partial.run_us", "1000"}});
  Exec exec = env.compile(chain(2), pinned({{"*", "partial"}})).exec();
  const Stream stream = env.stream(partial_id(env));
  alignas(64) float x[16] = {1, -2, 3}, y[16] = {};
  const int64_t extents[] = {3};
  bp_tensor_t tensor{};
  tensor.size = sizeof tensor;
  tensor.dtype = BP_DTYPE_FLOAT;
  tensor.rank = 1;
  tensor.extents = extents;
  tensor.buffer.bytes = sizeof x;
  tensor.buffer.address = x;
  exec.bind_memory(0, tensor);
  tensor.buffer.address = y;
  exec.bind_memory(BP_SLOT_OUTPUT, tensor);
  const Semaphore go, done;
  RunOptions how = in(stream);
  how.waits = {go.at(1)};
  how.signals = {done.at(1)};
  exec.run(how);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(done.value(), 0u);
  go.signal(1);
  done.wait(1);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], -2);
  EXPECT_EQ(counters(env).copies, 0u);
  // A run is refused if the host would have to flush memory, which it cannot do in the middle of a stream.
  const Environment flushed = streaming({{"partial.memory", "flushed"}});
  Exec other = flushed.compile(chain(2), pinned({{"*", "partial"}})).exec();
  const Stream its = flushed.stream(partial_id(flushed));
  other.bind_memory(BP_SLOT_OUTPUT, tensor);
  tensor.buffer.address = x;
  other.bind_memory(0, tensor);
  const Error refused = failure([&] { other.run(in(its)); });
  EXPECT_EQ(refused.status(), BP_UNSUPPORTED);
  EXPECT_THAT(refused.text(), HasSubstr("bind device memory"));
}

// A run that is refused puts nothing into the stream.
TEST(FrameworkStream, RefusesObjectsOfOtherDevices) {
  const Environment env = streaming({});
  const Stream stream = env.stream(partial_id(env));
  Exec exec = env.compile(chain(3), pinned({{"n1", "cpu"}, {"n0", "partial"}, {"n2", "partial"}})).exec();
  exec.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
  const Error refused = failure([&] { exec.run(in(stream)); });
  EXPECT_EQ(refused.status(), BP_UNSUPPORTED);
  EXPECT_THAT(refused.text(), HasSubstr("runs on device 'cpu'"));
  EXPECT_EQ(counters(env).runs, 0u);
  // The first device is the CPU, which has no streams.
  EXPECT_EQ(failure([&] { env.stream(env.devices().front().info.id); }).status(), BP_UNSUPPORTED);
  bp_run_t run{};
  run.size = sizeof run;
  run.stream = stream.get();
  EXPECT_EQ(failure([&] { exec.submit(run); }).status(), BP_INVALID_ARGUMENT);
}

TEST(FrameworkStream, MayBeDestroyedBeforeTheExec) {
  const Environment env = streaming({{"partial.run_us", "2000"}});
  Exec exec = env.compile(chain(2), pinned({{"*", "partial"}})).exec();
  const Tensor x = Tensor::of<float>({3}, {1, -2, 3}), y = Tensor::of<float>({3}, {0, 0, 0});
  exec.bind("x", x);
  exec.bind_output(0u, y);
  for (int i = 0; i < 2; ++i) {
    const Stream stream = env.stream(partial_id(env));
    exec.run(in(stream));
  }  // the stream's destructor waits
  EXPECT_THAT(y.values<float>(), ElementsAre(1, -2, 3));
  exec.run();
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(1, -2, 3));
}

// The first device writes to the run's memory after it was abandoned, so that memory must still exist. The second never
// returns, so nothing may wait for it.
TEST(FrameworkStream, OfADeviceThatHangsIsAbandoned) {
  const Tensor x = Tensor::of<float>({3}, {1, -2, 3});
  std::vector<Tensor> results;
  const partial::Counters* held = nullptr;
  for (const std::string fault : {"held@n1#2", "hang@n1#2"}) {
    const Environment env = streaming({{"partial.fault", fault}});
    if (held == nullptr) held = &counters(env);
    const Tensor& y = results.emplace_back(Tensor::of<float>({3}, {0, 0, 0}));
    Exec exec = env.compile(chain(3), pinned({{"*", "partial"}})).exec();
    exec.bind("x", x);
    exec.bind_output(0u, y);
    const Stream stream = env.stream(partial_id(env)), idle = env.stream(partial_id(env)),
                 ended = env.stream(partial_id(env));
    exec.run(in(ended));
    ended.wait();
    exec.run(in(stream));
    const uint64_t soon = static_cast<uint64_t>(
        std::chrono::nanoseconds((std::chrono::steady_clock::now() + std::chrono::milliseconds(50)).time_since_epoch())
            .count());
    EXPECT_EQ(failure([&] { stream.wait(soon); }).status(), BP_TIMED_OUT);
    env.abandon_device(partial_id(env));
    env.abandon_device(partial_id(env));
    EXPECT_EQ(counters(env).abandoned, 1u);
    const auto is_lost = [](const Error& error, bool with_work) {
      EXPECT_EQ(error.status(), BP_DEVICE_LOST) << error.text();
      EXPECT_EQ(error.abandoned(), with_work) << error.text();
    };
    // The device may still use the memory of what is in flight there, and of nothing else.
    is_lost(failure([&] { stream.wait(); }), true);
    is_lost(failure([&] { stream.wait(); }), true);
    is_lost(failure([&] { idle.wait(); }), false);
    is_lost(failure([&] { ended.wait(); }), false);
    is_lost(failure([&] { exec.run(in(stream)); }), false);
    is_lost(failure([&] { env.stream(partial_id(env)); }), false);
    EXPECT_EQ(failure([&] { env.abandon_device(12345); }).status(), BP_NOT_FOUND);
  }
  held->let_go = true;
  wait_until_idle(*held);
}

TEST(FrameworkStream, WaitReportsFailures) {
  const Environment env = streaming({{"partial.fault", "internal@n1#1"}});
  SessionOptions how = pinned({{"*", "partial"}});
  Exec exec = env.compile(chain(3), how).exec();
  const Stream stream = env.stream(partial_id(env));
  const Tensor x = Tensor::of<float>({3}, {1, -2, 3});
  exec.bind("x", x);
  exec.run(in(stream));
  const Error failed = failure([&] { stream.wait(); });
  EXPECT_EQ(failed.status(), BP_INTERNAL);
  EXPECT_THAT(failed.text(), HasSubstr("a scripted defect"));
  stream.wait();  // the failure is reported only once
  // A `bind` that waits for the stream keeps the failure for `stream.wait`.
  const Environment again = streaming({{"partial.fault", "internal@n1#1"}});
  Exec second = again.compile(chain(3), how).exec();
  const Stream other = again.stream(partial_id(again));
  second.bind("x", x);
  second.run(in(other));
  second.bind("x", Tensor::of<float>({3}, {4, 5, 6}));
  EXPECT_EQ(failure([&] { other.wait(); }).status(), BP_INTERNAL);
}

// An earlier failure would let the framework conclude that all work has ended, and free memory that is still written.
TEST(FrameworkStream, AWaitThatTimesOutReportsNoEarlierFailure) {
  const Environment env = streaming({{"partial.fault", "internal@n1#1"}});
  Exec exec = env.compile(chain(3), pinned({{"*", "partial"}})).exec();
  const Stream stream = env.stream(partial_id(env));
  exec.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
  exec.run(in(stream));
  exec.bind("x", Tensor::of<float>({3}, {4, 5, 6}));  // waits for the stream, and keeps the failure for stream.wait
  const uint64_t runs = counters(env).runs;
  const Semaphore go;
  RunOptions how = in(stream);
  how.waits = {go.at(1)};
  exec.run(how);
  EXPECT_EQ(failure([&] { stream.wait(1); }).status(), BP_TIMED_OUT);
  EXPECT_EQ(counters(env).runs, runs);
  go.signal(1);
  EXPECT_EQ(failure([&] { stream.wait(); }).status(), BP_INTERNAL);
  EXPECT_EQ(counters(env).runs, runs + 3);
  stream.wait();
}

// The arguments that `done` received. `error` is separate: a bp_error_t with a text buffer, for calls that fill one.
struct Seen {
  char text[400] = {};
  bp_error_t error{sizeof error, BP_OK, BP_NO_NODE, 0, 0, 0, text, sizeof text, 0, 0};
  bp_status_t status = BP_OK;
  uint64_t run = 0;
  uint32_t flags = 0;

  static void done(void* self, bp_status_t status, const bp_error_t* error) {
    static_cast<Seen*>(self)->status = status;
    static_cast<Seen*>(self)->run = error ? error->run : 0;
    static_cast<Seen*>(self)->flags = error ? error->flags : 0;
  }
};

// A time on the host's clock, as deadlines are.
uint64_t in_milliseconds(int n) {
  const auto time = std::chrono::steady_clock::now() + std::chrono::milliseconds(n);
  return static_cast<uint64_t>(std::chrono::nanoseconds(time.time_since_epoch()).count());
}

bp_run_t numbered(const Stream& stream, uint64_t id) {
  bp_run_t run{};
  run.size = sizeof run;
  run.stream = stream.get();
  run.id = id;
  return run;
}

// The loader waits for the stream when it binds other memory, and the plugin reports the failure to the loader. The
// framework must learn of the failure from the next run with `done`. Until then, host points fail with it.
TEST(FrameworkStream, AFailureThatTheLoaderHasSeenIsReportedByTheNextRun) {
  for (const bool by_done : {true, false}) {
    const Environment env = streaming({{"partial.fault", "internal@n0#1"}});
    Exec exec = env.compile(chain(1), pinned({{"*", "partial"}})).exec();
    const Stream stream = env.stream(partial_id(env));
    exec.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
    bp_run_t run = numbered(stream, 11);
    ASSERT_EQ(api().exec_run(exec.get(), &run, nullptr), BP_OK);
    exec.bind("x", Tensor::of<float>({3}, {4, 5, 6}));
    const Semaphore ended;
    Seen seen;
    const bp_point_t point = ended.at(1);
    run.id = 12;
    run.signals = &point;
    run.signal_count = 1;
    if (by_done) {
      run.self = &seen;
      run.done = Seen::done;
    }
    ASSERT_EQ(api().exec_run(exec.get(), &run, nullptr), BP_OK);
    const Error carried = failure([&] { ended.wait(1); });
    EXPECT_EQ(carried.status(), BP_DEPENDENCY_FAILED);
    EXPECT_THAT(carried.what(), HasSubstr("a scripted defect"));
    EXPECT_EQ(carried.run(), 11u);
    if (by_done) {
      EXPECT_EQ(seen.status, BP_INTERNAL);
      EXPECT_EQ(seen.run, 11u);
    }
    Seen wait;
    EXPECT_EQ(api().stream_wait(stream.get(), BP_FOREVER, &wait.error), by_done ? BP_OK : BP_INTERNAL);
    EXPECT_EQ(wait.error.run, by_done ? 0u : 11u);
  }
}

// If an instance is still busy, a run waits for the stream, and the wait may return the failure of another run. The run
// itself does not fail for that reason.
TEST(FrameworkStream, AFailureOfAnotherRunIsKeptForIt) {
  const Environment env = streaming({{"partial.fault", "internal@n0#1"}, {"partial.run_us", "50000"}});
  Exec first = env.compile(chain(3), pinned({{"*", "partial"}})).exec();
  const Stream stream = env.stream(partial_id(env));
  first.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
  bp_run_t run = numbered(stream, 21);
  const uint64_t runs = counters(env).runs;
  ASSERT_EQ(api().exec_run(first.get(), &run, nullptr), BP_OK);  // fails in its first island
  while (counters(env).runs < runs + 1) std::this_thread::yield();
  Seen seen;
  run.id = 22;
  run.self = &seen;
  run.done = Seen::done;
  const bp_status_t code = api().exec_run(first.get(), &run, nullptr);  // run 21 still uses the later islands
  EXPECT_EQ(code, BP_OK);
  stream.wait();
  EXPECT_EQ(seen.status, BP_INTERNAL);
  EXPECT_EQ(seen.run, 21u);
}

TEST(FrameworkStream, HostPointsOfADeviceThatIsGivenUpFail) {
  const Environment env = streaming({{"partial.fault", "hang@n0#1"}});
  Exec exec = env.compile(chain(1), pinned({{"*", "partial"}})).exec();
  const Stream stream = env.stream(partial_id(env));
  // Never destroyed: the device may read it as long as the process lives.
  static const Tensor& x = *new Tensor(Tensor::of<float>({3}, {1, -2, 3}));
  exec.bind("x", x);
  const Semaphore ended;
  Seen seen;
  const bp_point_t point = ended.at(1);
  bp_run_t run = numbered(stream, 31);
  run.signals = &point;
  run.signal_count = 1;
  run.self = &seen;
  run.done = Seen::done;
  ASSERT_EQ(api().exec_run(exec.get(), &run, nullptr), BP_OK);
  env.abandon_device(partial_id(env));
  const Error failed = failure([&] { ended.wait(1); });
  EXPECT_EQ(failed.status(), BP_DEPENDENCY_FAILED);
  EXPECT_TRUE(failed.abandoned());
  EXPECT_EQ(seen.status, BP_DEVICE_LOST);
  EXPECT_EQ(seen.flags, BP_ERROR_DEVICE_LOST | BP_ERROR_ABANDONED);
}

// The plugin ends the run, at its deadline, while the loader is in the framework's `done` because the device was
// abandoned.
TEST(FrameworkStream, HostPointsComeWhereBothEndTheRun) {
  const Environment env = streaming({{"partial.fault", "hang@n0#1"}});
  Exec exec = env.compile(chain(1), pinned({{"*", "partial"}})).exec();
  const Stream stream = env.stream(partial_id(env));
  static const Tensor& x = *new Tensor(Tensor::of<float>({3}, {1, -2, 3}));
  exec.bind("x", x);
  const Semaphore ended;
  const bp_point_t point = ended.at(1);
  std::atomic<int> calls{0};
  bp_run_t run = numbered(stream, 32);
  run.signals = &point;
  run.signal_count = 1;
  run.deadline = in_milliseconds(150);
  run.self = &calls;
  run.done = [](void* self, bp_status_t, const bp_error_t*) {
    ++*static_cast<std::atomic<int>*>(self);
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
  };
  ASSERT_EQ(api().exec_run(exec.get(), &run, nullptr), BP_OK);
  env.abandon_device(partial_id(env));
  EXPECT_EQ(failure([&] { ended.wait(1, in_milliseconds(20'000)); }).status(), BP_DEPENDENCY_FAILED);
  EXPECT_EQ(calls, 1);
}

// The second island is still busy with the previous run, so the loader waits in the middle of this run. If that wait
// reports a failure of this run's first island, this run must fail.
TEST(FrameworkStream, AnIslandThatFailsBeforeABusyOneFailsTheRun) {
  for (int run_us = 50'000; run_us < 4'000'000; run_us *= 2) {
    const Environment env = streaming({{"partial.fault", "internal@n0#2"}, {"partial.run_us", std::to_string(run_us)}});
    Exec exec = env.compile(chain(2), pinned({{"*", "partial"}})).exec();
    const Stream stream = env.stream(partial_id(env));
    exec.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
    exec.run(in(stream));
    // Waits until the first island has ended. It can then run again while the second is busy.
    while (counters(env).runs < 1) std::this_thread::yield();
    const Semaphore done;
    RunOptions how = in(stream);
    how.signals = {done.at(1)};
    const Error error = failure([&] {
      exec.run(how);
      done.wait(1);
    });
    EXPECT_THAT(error.what(), HasSubstr("a scripted defect"));
    EXPECT_TRUE(error.status() == BP_INTERNAL || error.status() == BP_DEPENDENCY_FAILED) << error.status();
    if (counters(env).busy == 0) {  // the second island had ended: it was too fast for this machine
      static_cast<void>(api().stream_wait(stream.get(), BP_FOREVER, nullptr));
      continue;
    }
    exec.run(in(stream));  // no failure is left in the stream
    return stream.wait();
  }
  FAIL() << "the second island never was busy";
}

TEST(FrameworkStream, ACancelledRunStopsWaitingForANativePoint) {
  const Environment env = streaming({{"partial.marks", "1"}});
  const uint64_t device = partial_id(env);
  const bp_semaphore_create_t how{sizeof how, 0, 0, nullptr, nullptr};
  bp_native_semaphore_t* semaphore = nullptr;
  detail::call(api().native_semaphore_create, env.get(), device, &how, &semaphore);
  {
    const Cancel cancel;
    const Semaphore ended;
    std::atomic<bp_status_t> seen{BP_OK};
    // Declared last: its destructor waits for the run, which uses the objects above.
    Exec exec = env.compile(chain(1), pinned({{"*", "partial"}})).exec();
    exec.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
    const bp_point_t wait = bp_native_point(semaphore, device, 1), signal = ended.at(1);
    bp_run_t run{};
    run.size = sizeof run;
    run.waits = &wait;
    run.signals = &signal;
    run.wait_count = run.signal_count = 1;
    run.cancel = cancel.get();
    run.self = &seen;
    run.done = [](void* self, bp_status_t status, const bp_error_t*) {
      *static_cast<std::atomic<bp_status_t>*>(self) = status;
    };
    exec.submit(run);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancel.set();
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (seen == BP_OK && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    EXPECT_EQ(seen, BP_CANCELLED);
    detail::call(api().native_semaphore_signal, semaphore, uint64_t{1});  // lets the run end if it still waits
  }
  api().native_semaphore_destroy(semaphore);
}

TEST(FrameworkStream, OrdersMemory) {
  const Environment env = streaming({});
  const uint64_t device = partial_id(env);
  const Stream stream = env.stream(device);
  const bp_allocate_t what{sizeof what, 0, 12, stream.get(), nullptr};
  bp_buffer_t buffer{};
  detail::call(api().memory_allocate, env.get(), device, &what, &buffer);
  std::vector<float> from = {1, 2, 3}, to(3);
  bp_buffer_t source{}, target{};
  source.address = from.data();
  target.address = to.data();
  source.bytes = target.bytes = 12;
  bp_run_t run{};
  run.size = sizeof run;
  run.stream = stream.get();
  const bp_copy_t in_copy{sizeof in_copy, 0, &source, &buffer, 12, &run},
      out{sizeof out, 0, &buffer, &target, 12, &run};
  const bp_release_t release{sizeof release, 0, &buffer, stream.get()};
  detail::call(api().memory_copy, env.get(), &in_copy);
  detail::call(api().memory_copy, env.get(), &out);
  api().memory_release(env.get(), &release);
  stream.wait();
  EXPECT_THAT(to, ElementsAre(1, 2, 3));
  EXPECT_EQ(counters(env).releases, 1u);
  EXPECT_EQ(counters(env).stream_copies, 2u);
  // A stream of one device cannot be used with another device.
  const Environment other = streaming({});
  EXPECT_EQ(failure([&] {
              detail::call(api().memory_allocate, other.get(), other.devices().front().info.id, &what, &buffer);
            }).status(),
            BP_INVALID_ARGUMENT);
}

TEST(FrameworkStream, NativePointsOrderRunsOfOneDevice) {
  const Environment env = streaming({{"partial.marks", "1"}, {"partial.run_us", "2000"}});
  const uint64_t device = partial_id(env);
  const Stream first = env.stream(device), second = env.stream(device);
  const bp_semaphore_create_t how{sizeof how, 0, 0, nullptr, nullptr};
  bp_native_semaphore_t* semaphore = nullptr;
  detail::call(api().native_semaphore_create, env.get(), device, &how, &semaphore);
  const Session session = env.compile(chain(1), pinned({{"*", "partial"}}));
  Exec one = session.exec(), two = session.exec();
  const Tensor x = Tensor::of<float>({3}, {1, -2, 3}), y = Tensor::of<float>({3}, {0, 0, 0}),
               z = Tensor::of<float>({3}, {0, 0, 0});
  one.bind("x", x);
  one.bind_output(0u, y);
  two.bind("x", y);
  two.bind_output(0u, z);
  RunOptions before = in(first), after = in(second);
  before.signals = {bp_native_point(semaphore, device, 1)};
  after.waits = {bp_native_point(semaphore, device, 1)};
  one.run(before);
  two.run(after);
  second.wait();
  EXPECT_THAT(z.values<float>(), ElementsAre(1, -2, 3));
  first.wait();
  api().native_semaphore_destroy(semaphore);
}

}  // namespace
}  // namespace backplane
