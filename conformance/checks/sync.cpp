// SPDX-License-Identifier: Apache-2.0
// Cases of the group sync: streams, semaphores and asynchronous runs, on devices that have them.
#include <chrono>
#include <thread>

#include "checks/group.h"
#include "host/stream.h"

namespace backplane::conform {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;  // in nanoseconds
constexpr size_t kRuns = 8;

// A stream, and several instances of one program, each bound to its own memory.
struct Fixture {
  Bench& bench;
  std::unique_ptr<Subject> subject;
  std::unique_ptr<Program> program;
  std::vector<std::unique_ptr<Instance>> instances;
  std::unique_ptr<Stream> stream;

  const Device& device() const { return program->device(); }
  const bp_sync_api_t& sync() const { return *device().plugin().sync; }
  // Why the results of instance `i` are wrong; empty if they are right.
  std::string fault(size_t i) const { return subject->fault({instances[i]->output(0).read()}); }
  std::string faults() const {
    for (size_t i = 0; i < instances.size(); ++i) {
      if (const std::string text = fault(i); !text.empty()) return fmt::format("instance {}: {}", i, text);
    }
    return "";
  }
};

// The fault that a check found, or why it does not apply to the device. Both are empty if the check passes.
struct CheckResult {
  std::string fault = "";
  std::string not_offered = "";
};
CheckResult wrong(std::string text) {
  return {.fault = std::move(text)};
}
CheckResult wrong(const char* what, const Answer& answer) {
  return {.fault = fmt::format("{}: {}", what, answer.describe())};
}
CheckResult not_offered(std::string text) {
  return {.not_offered = std::move(text)};
}

bp_run_t in(const Stream* stream) {
  return {.size = sizeof(bp_run_t), .stream = stream == nullptr ? nullptr : stream->raw()};
}

// Without `done`, only stream_wait reports that the runs are complete.
CheckResult stream_wait(Fixture& fixture) {
  for (const auto& instance : fixture.instances) {
    instance->output(0).poison();
    if (const Answer answer = instance->start(in(fixture.stream.get())); !answer.ok())
      return wrong("in a stream", answer);
  }
  if (const Answer answer = fixture.stream->wait(); !answer.ok()) return wrong("stream_wait", answer);
  return wrong(fixture.faults());
}

// Each instance reads the output of the instance before it.
CheckResult stream_order(Fixture& fixture) {
  const GraphSpec& spec = fixture.program->graph().spec();
  if (spec.values[spec.inputs[0]].extents != spec.values[spec.outputs[0]].extents)
    return not_offered("no claimed call has an output of the extents of its input");
  for (size_t i = 1; i < fixture.instances.size(); ++i) {
    const Answer answer = fixture.instances[i]->bind(0, fixture.instances[i - 1]->output(0));
    if (!answer.ok()) return wrong("bind to another instance's output", answer);
  }
  const auto results = [&] {
    std::vector<std::vector<std::byte>> bytes;
    for (const auto& instance : fixture.instances) {
      bytes.push_back(instance->output(0).read().bytes);
      instance->output(0).poison();
    }
    return bytes;
  };
  for (const auto& instance : fixture.instances) {
    if (const Answer answer = instance->run(); !answer.ok()) return wrong("a run outside a stream", answer);
  }
  const auto expected = results();
  for (int round = 0; round < 20; ++round) {
    for (const auto& instance : fixture.instances) {
      if (const Answer answer = instance->start(in(fixture.stream.get())); !answer.ok())
        return wrong("in a stream", answer);
    }
    if (const Answer answer = fixture.stream->wait(); !answer.ok()) return wrong("stream_wait", answer);
    if (results() != expected) return wrong("runs in one stream, in order, end with wrong results");
  }
  for (size_t i = 1; i < fixture.instances.size(); ++i) {
    const Answer answer = fixture.instances[i]->bind(0, fixture.instances[i]->input(0));
    if (!answer.ok()) return wrong("bind", answer);
  }
  return {};
}

// A run is accepted before the host point that it waits for is reached. The point that it signals is reached after
// `done` was called.
CheckResult host_points(Fixture& fixture, const Stream* stream) {
  bp_semaphore_t start, finish;
  const bp_point_t waits = bp_host_point(&start, 1), signals = bp_host_point(&finish, 1);
  bp_run_t run = in(stream);
  run.waits = &waits;
  run.signals = &signals;
  run.wait_count = run.signal_count = 1;
  End end;
  end.expect(run);
  Instance& instance = *fixture.instances[0];
  instance.output(0).poison();
  if (const Answer answer = instance.start(run); !answer.ok()) return wrong("a run that waits", answer);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (end.calls() != 0) return wrong("the run ended before the point that it waits for was reached");
  start.signal(1, false);
  if (finish.wait(1, now_ns() + 10'000 * kMillisecond, nullptr) != BP_OK)
    return wrong("the run does not signal its point");
  if (end.calls() != 1)
    return wrong(fmt::format("when the run has signaled its point, `done` was called {} times", end.calls()));
  if (end.status() != BP_OK) return wrong(fmt::format("`done` reports {}", status_name(end.status())));
  return wrong(fixture.fault(0));
}
CheckResult points_in_stream(Fixture& fixture) {
  return host_points(fixture, fixture.stream.get());
}
CheckResult points_alone(Fixture& fixture) {
  return host_points(fixture, nullptr);
}

// A failed run of instance 0 has called `done`, so the device must no longer touch the memory bound to the instance.
// Returns a description of the fault if the device does, or an empty string.
std::string late_write(Fixture& fixture) {
  Memory& output = fixture.instances[0]->output(0);
  output.poison();
  const auto poisoned = output.read().bytes;
  std::this_thread::sleep_for(std::chrono::milliseconds(60));  // long enough for a kernel or a copy that is under way
  return output.read().bytes == poisoned ? "" : "an output changes after the failed run has called `done`";
}

// A run that waits for a failed point is either refused, or fails, which `done` and the run's own point report. The
// instance can run again.
CheckResult failed_wait(Fixture& fixture) {
  bp_semaphore_t start, finish;
  start.signal(1, true);
  const bp_point_t waits = bp_host_point(&start, 1), signals = bp_host_point(&finish, 3);
  bp_run_t run = in(fixture.stream.get());
  run.waits = &waits;
  run.signals = &signals;
  run.wait_count = run.signal_count = 1;
  End end;
  end.expect(run);
  const Answer answer = fixture.instances[0]->start(run);
  uint64_t value = 0;
  if (!answer.ok()) {
    if (answer.status != BP_DEPENDENCY_FAILED) return wrong("a run that waits for a failed point", answer);
    if (finish.query(&value) != BP_OK || value != 0 || end.calls() != 0)
      return wrong("a run that was not accepted touched `done` or its signals");
  } else {
    if (finish.wait(3, now_ns() + 10'000 * kMillisecond, nullptr) != BP_DEPENDENCY_FAILED)
      return wrong("the point of a failed run does not report the failure");
    if (end.calls() != 1 || end.status() != BP_DEPENDENCY_FAILED)
      return wrong(fmt::format("`done` was called {} times, with {}", end.calls(), status_name(end.status())));
  }
  const std::string fault = late_write(fixture);
  static_cast<void>(fixture.stream->wait());  // the failure was reported above
  return fault.empty() ? stream_wait(fixture) : wrong(fault);
}

// A run without `done` that waits for a failed point is either refused, or fails. If it fails, the next stream_wait
// reports its id, and does so only once.
CheckResult silent_failure(Fixture& fixture) {
  bp_semaphore_t start;
  start.signal(1, true);
  const bp_point_t waits = bp_host_point(&start, 1);
  bp_run_t run = in(fixture.stream.get());
  run.waits = &waits;
  run.wait_count = 1;
  run.id = 4711;
  if (const Answer answer = fixture.instances[0]->start(run); !answer.ok()) {
    if (answer.status != BP_DEPENDENCY_FAILED) return wrong("a run that waits for a failed point", answer);
    return stream_wait(fixture);
  }
  const Answer answer = fixture.stream->wait();
  if (answer.status != BP_DEPENDENCY_FAILED)
    return wrong(fmt::format("stream_wait after a failed run without `done` returns {}", status_name(answer.status)));
  if (answer.run != run.id)
    return wrong(fmt::format("stream_wait reports run {}, but the failed run is {}", answer.run, run.id));
  return stream_wait(fixture);
}

// A run without `done` fails. Its host point and that of the next run in the stream report the failure, and stream_wait
// still reports it once.
CheckResult failed_points(Fixture& fixture) {
  const CheckResult warm = stream_wait(fixture);  // the first run with new bindings may wait for other work
  if (!warm.fault.empty()) return warm;
  bp_semaphore_t start, finish;
  const bp_point_t waits = bp_host_point(&start, 1);
  const auto begin = [&](size_t instance, const bp_point_t& signals, bool fails) {
    bp_run_t run = in(fixture.stream.get());
    run.waits = &waits;
    run.wait_count = fails ? 1 : 0;
    run.signals = &signals;
    run.signal_count = 1;
    run.id = 4711 + instance;
    return fixture.instances[instance]->start(run);
  };
  if (const Answer answer = begin(0, bp_host_point(&finish, 1), true); !answer.ok())
    return wrong("a run that waits", answer);
  start.signal(1, true);
  if (const Answer answer = begin(1, bp_host_point(&finish, 2), false); !answer.ok()) {
    static_cast<void>(fixture.stream->wait());
    return wrong("the run after a failed one", answer);
  }
  const auto point = [&](uint64_t value) { return finish.wait(value, now_ns() + 10'000 * kMillisecond, nullptr); };
  if (point(1) != BP_DEPENDENCY_FAILED) return wrong("the point of a failed run without `done` reports no failure");
  if (point(2) != BP_DEPENDENCY_FAILED)
    return wrong("the point of the run after it in the stream reports no failure, though none was reported before");
  const Answer answer = fixture.stream->wait();
  if (answer.status != BP_DEPENDENCY_FAILED)
    return wrong(
        fmt::format("stream_wait after a failure that points have carried returns {}", status_name(answer.status)));
  if (answer.run != 4711)
    return wrong(fmt::format("stream_wait reports run {}, but the failed run is 4711", answer.run));
  if (const Answer after = begin(1, bp_host_point(&finish, 3), false); !after.ok())
    return wrong("a run after the failure was reported", after);
  if (point(3) != BP_OK) return wrong("a point reports a failure that stream_wait has reported before");
  return stream_wait(fixture);
}

// If a stream's work is held up, stream_wait returns at its deadline, and the work is completed later.
CheckResult late_stream(Fixture& fixture) {
  bp_semaphore_t start;
  const bp_point_t waits = bp_host_point(&start, 1);
  bp_run_t run = in(fixture.stream.get());
  run.waits = &waits;
  run.wait_count = 1;
  fixture.instances[0]->output(0).poison();
  if (const Answer answer = fixture.instances[0]->start(run); !answer.ok()) return wrong("a run that waits", answer);
  const uint64_t begin = now_ns();
  const Answer late = fixture.stream->wait(begin + 20 * kMillisecond);
  const uint64_t took = now_ns() - begin;
  start.signal(1, false);
  if (late.status != BP_TIMED_OUT)
    return wrong(fmt::format("stream_wait past its deadline returns {}, not BP_TIMED_OUT", status_name(late.status)));
  if (took > 5'000 * kMillisecond)
    return wrong(fmt::format("stream_wait returns {} ms after a deadline of 20 ms", took / kMillisecond));
  if (const Answer answer = fixture.stream->wait(); !answer.ok()) return wrong("stream_wait", answer);
  return wrong(fixture.fault(0));
}

// A run whose point is never reached ends when it is cancelled, and leaves its output alone from then on.
CheckResult cancelled(Fixture& fixture) {
  bp_semaphore_t start;
  bp_cancel_t token;
  const bp_point_t waits = bp_host_point(&start, 1);
  bp_run_t run = in(nullptr);
  run.waits = &waits;
  run.wait_count = 1;
  run.cancel = &token;
  End end;
  end.expect(run);
  if (const Answer answer = fixture.instances[0]->start(run); !answer.ok()) return wrong("a run that waits", answer);
  token.set = true;
  const bool ended = end.wait();
  start.signal(1, false);
  if (!ended) {
    end.wait();
    return wrong("a run cancelled during its wait keeps waiting");
  }
  if (end.status() != BP_CANCELLED)
    return wrong(fmt::format("a cancelled run ends with {}", status_name(end.status())));
  const std::string fault = late_write(fixture);
  return fault.empty() ? stream_wait(fixture) : wrong(fault);
}

// A run whose point is never reached ends when its deadline passes, and leaves its output alone from then on.
CheckResult deadline(Fixture& fixture) {
  bp_semaphore_t start;
  const bp_point_t waits = bp_host_point(&start, 1);
  bp_run_t run = in(nullptr);
  run.waits = &waits;
  run.wait_count = 1;
  run.deadline = now_ns() + 20 * kMillisecond;
  End end;
  end.expect(run);
  if (const Answer answer = fixture.instances[0]->start(run); !answer.ok()) return wrong("a run that waits", answer);
  const bool ended = end.wait();
  start.signal(1, false);
  if (!ended) {
    end.wait();
    return wrong("a waiting run keeps waiting after its deadline");
  }
  if (end.status() != BP_TIMED_OUT)
    return wrong(fmt::format("a run past its deadline ends with {}", status_name(end.status())));
  const std::string fault = late_write(fixture);
  return fault.empty() ? stream_wait(fixture) : wrong(fault);
}

// One stream waits for a native point that another stream signals.
CheckResult native_points(Fixture& fixture) {
  Answer answer;
  const auto other = Stream::create(fixture.device(), answer);
  if (other == nullptr) return wrong("a second stream", answer);
  const auto semaphore = NativeSemaphore::create(fixture.device(), 0, nullptr, answer);
  if (semaphore == nullptr) return wrong("semaphore_create", answer);
  bp_semaphore_t start;
  const bp_point_t first = bp_host_point(&start, 1), point = semaphore->at(1);
  bp_run_t before = in(fixture.stream.get()), after = in(other.get());
  before.waits = &first;
  before.signals = after.waits = &point;
  before.wait_count = before.signal_count = after.wait_count = 1;
  for (const size_t i : {0, 1}) fixture.instances[i]->output(0).poison();
  if (answer = fixture.instances[0]->start(before); !answer.ok()) return wrong("a run that signals", answer);
  if (answer = fixture.instances[1]->start(after); !answer.ok()) return wrong("a run that waits", answer);
  if (answer = other->wait(now_ns() + 10 * kMillisecond); answer.status != BP_TIMED_OUT)
    return wrong("a run did not wait for a native point");
  start.signal(1, false);
  if (answer = other->wait(); !answer.ok()) return wrong("stream_wait", answer);
  if (const std::string fault = fixture.fault(1); !fault.empty()) return wrong(fault);
  if (answer = fixture.stream->wait(); !answer.ok()) return wrong("stream_wait", answer);
  return wrong(fixture.fault(0));
}

// A run without `done` fails. The next run in its stream signals a native point, and a run that waits for the point in
// another stream reports the failure, because it may have read what the failed run did not write.
CheckResult native_failure(Fixture& fixture) {
  Answer answer;
  const auto other = Stream::create(fixture.device(), answer);
  if (other == nullptr) return wrong("a second stream", answer);
  const auto semaphore = NativeSemaphore::create(fixture.device(), 0, nullptr, answer);
  if (semaphore == nullptr) return wrong("semaphore_create", answer);
  const CheckResult warm = stream_wait(fixture);  // the first run with new bindings may wait for other work
  if (!warm.fault.empty()) return warm;
  bp_semaphore_t start;
  const bp_point_t first = bp_host_point(&start, 1), point = semaphore->at(1);
  bp_run_t fails = in(fixture.stream.get()), signals = in(fixture.stream.get()), waits = in(other.get());
  fails.waits = &first;
  signals.signals = waits.waits = &point;
  fails.wait_count = signals.signal_count = waits.wait_count = 1;
  End end;
  end.expect(waits);
  if (answer = fixture.instances[0]->start(fails); !answer.ok()) return wrong("a run that waits", answer);
  start.signal(1, true);
  if (answer = fixture.instances[1]->start(signals); !answer.ok()) {
    static_cast<void>(fixture.stream->wait());
    return wrong("the run after a failed one", answer);
  }
  answer = fixture.instances[2]->start(waits);
  const bp_status_t seen = answer.ok() ? (end.wait(), end.status()) : answer.status;
  static_cast<void>(other->wait());
  if (answer = fixture.stream->wait(); answer.status != BP_DEPENDENCY_FAILED)
    return wrong(fmt::format("stream_wait after a failed run returns {}", status_name(answer.status)));
  if (seen != BP_DEPENDENCY_FAILED)
    return wrong(fmt::format("a run that waits for a native point after a failed run ends with {}", status_name(seen)));
  return stream_wait(fixture);
}

// Signals a semaphore for which a faulty device still waits, so that the run ends before what it uses is destroyed.
void release(const Fixture& fixture, const NativeSemaphore& semaphore, End& end) {
  Detail detail;
  if (fixture.sync().semaphore_signal == nullptr) return;
  if (fixture.sync().semaphore_signal(semaphore.raw(), 1, detail.error()) == BP_OK) end.wait();
}

// A run that waits for a native point that is never signaled ends when it is cancelled.
CheckResult native_cancel(Fixture& fixture) {
  Answer answer;
  const auto semaphore = NativeSemaphore::create(fixture.device(), 0, nullptr, answer);
  if (semaphore == nullptr) return wrong("semaphore_create", answer);
  bp_cancel_t token;
  const bp_point_t waits = semaphore->at(1);
  bp_run_t run = in(nullptr);
  run.waits = &waits;
  run.wait_count = 1;
  run.cancel = &token;
  End end;
  end.expect(run);
  if (answer = fixture.instances[0]->start(run); !answer.ok()) return wrong("a run that waits", answer);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const bool early = end.calls() != 0;
  token.set = true;
  if (!end.wait()) {
    release(fixture, *semaphore, end);
    return wrong("a run cancelled while it waits for a native point keeps waiting");
  }
  if (early) return wrong("a run ended before the native point that it waits for was reached");
  if (end.status() != BP_CANCELLED)
    return wrong(fmt::format("a cancelled run ends with {}", status_name(end.status())));
  return stream_wait(fixture);
}

// The host queries, waits for and signals a semaphore of the device.
CheckResult native_slots(Fixture& fixture) {
  const bp_sync_api_t& api = fixture.sync();
  Answer answer;
  const auto semaphore = NativeSemaphore::create(fixture.device(), 3, nullptr, answer);
  if (semaphore == nullptr) return wrong("semaphore_create", answer);
  Detail detail;
  uint64_t value = 0;
  if (api.semaphore_query != nullptr) {
    if (api.semaphore_query(semaphore->raw(), &value, detail.error()) != BP_OK || value != 3)
      return wrong(fmt::format("a semaphore created with value 3 has {}", value));
  }
  if (api.semaphore_wait != nullptr) {
    if (api.semaphore_wait(semaphore->raw(), 2, now_ns() + 10'000 * kMillisecond, detail.error()) != BP_OK)
      return wrong("a wait for a value that the semaphore has already reached fails: " + detail.text());
    const bp_status_t status = api.semaphore_wait(semaphore->raw(), 4, now_ns() + 10 * kMillisecond, detail.error());
    if (status != BP_TIMED_OUT) return wrong(fmt::format("a wait past its deadline returns {}", status_name(status)));
  }
  if (api.semaphore_signal != nullptr) {
    if (api.semaphore_signal(semaphore->raw(), 5, detail.error()) != BP_OK) return wrong("signal: " + detail.text());
    if (api.semaphore_query != nullptr &&
        (api.semaphore_query(semaphore->raw(), &value, detail.error()) != BP_OK || value != 5))
      return wrong(fmt::format("a semaphore signaled with 5 has {}", value));
    const bp_point_t point = semaphore->at(5);
    bp_run_t run = in(fixture.stream.get());
    run.waits = &point;
    run.wait_count = 1;
    fixture.instances[0]->output(0).poison();
    if (answer = fixture.instances[0]->start(run); !answer.ok()) return wrong("a run that waits", answer);
    if (answer = fixture.stream->wait(now_ns() + 10'000 * kMillisecond); !answer.ok())
      return wrong("stream_wait", answer);
    return wrong(fixture.fault(0));
  }
  return {};
}

// A semaphore that is exported and imported again is still the same semaphore.
CheckResult native_export(Fixture& fixture) {
  const bp_sync_api_t& api = fixture.sync();
  if (api.semaphore_export == nullptr) return not_offered("the device exports no semaphores");
  Answer answer;
  const auto ours = NativeSemaphore::create(fixture.device(), 0, nullptr, answer);
  if (ours == nullptr) return wrong("semaphore_create", answer);
  Detail detail;
  bp_native_t native = {.size = sizeof native};
  bp_semaphore_export_t what = {.size = sizeof what, .value = 1};
  if (const bp_status_t status = api.semaphore_export(ours->raw(), &what, &native, detail.error()); status != BP_OK) {
    if (status == BP_UNSUPPORTED) return not_offered(detail.text());
    return wrong(fmt::format("semaphore_export returns {}: {}", status_name(status), detail.text()));
  }
  if (native.kind == 0) return wrong("semaphore_export returns no kind");
  what.kind = BP_VENDOR - 1;
  bp_native_t none = {.size = sizeof none};
  if (api.semaphore_export(ours->raw(), &what, &none, detail.error()) != BP_UNSUPPORTED)
    return wrong("semaphore_export of a kind that does not exist does not return BP_UNSUPPORTED");
  const auto theirs = NativeSemaphore::create(fixture.device(), 0, &native, answer);
  if (theirs == nullptr) return wrong("import of what was exported", answer);
  const bp_point_t signals = ours->at(1), waits = theirs->at(1);
  bp_run_t before = in(fixture.stream.get()), after = in(nullptr);
  before.signals = &signals;
  after.waits = &waits;
  before.signal_count = after.wait_count = 1;
  End end;
  end.expect(after);
  fixture.instances[1]->output(0).poison();
  if (answer = fixture.instances[1]->start(after); !answer.ok()) return wrong("a run that waits", answer);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const bool early = end.calls() != 0;
  if (answer = fixture.instances[0]->start(before); !answer.ok()) return wrong("a run that signals", answer);
  if (!end.wait()) {
    release(fixture, *theirs, end);
    return wrong("an imported semaphore does not see the signal of the exported one");
  }
  if (early) return wrong("a run did not wait for an imported semaphore");
  if (answer = fixture.stream->wait(); !answer.ok()) return wrong("stream_wait", answer);
  return wrong(fixture.fault(1));
}

CheckResult stream_export(Fixture& fixture) {
  const bp_sync_api_t& api = fixture.sync();
  if (api.stream_export == nullptr) return not_offered("the device exports no streams");
  Detail detail;
  bp_native_t native = {.size = sizeof native};
  const bp_status_t status = api.stream_export(fixture.stream->raw(), &native, detail.error());
  if (status == BP_UNSUPPORTED) return not_offered(detail.text());
  if (status != BP_OK) return wrong(fmt::format("stream_export returns {}: {}", status_name(status), detail.text()));
  if (native.kind == 0) return wrong("stream_export returns no kind");
  // An exported stream can be imported like a framework's stream. The two are the same queue.
  Answer answer;
  const auto same = Stream::create(fixture.device(), answer, &native);
  if (same == nullptr) return wrong("import of what was exported", answer);
  fixture.instances[0]->output(0).poison();
  if (answer = fixture.instances[0]->start(in(same.get())); !answer.ok()) return wrong("in an imported stream", answer);
  if (answer = same->wait(); !answer.ok()) return wrong("stream_wait", answer);
  return wrong(fixture.fault(0));
}

bool is_asynchronous(const Device& device) {
  return device.plugin().sync != nullptr && (device.info().flags & BP_DEVICE_SYNCHRONOUS) == 0;
}

Result with_fixture(Bench& bench, const Device& device, CheckResult (*check)(Fixture&)) {
  if (!is_asynchronous(device)) return not_supported("the device has no streams: every run is synchronous");
  Result result;
  Fixture fixture{bench, nullptr, nullptr, {}, nullptr};
  for (const char* name : {"Add/float/same", "Relu/float/block", "MatMul/float/small_positive"}) {
    fixture.subject = make_subject(device, problem_of(name, bench.seed(), name), result);
    if (fixture.subject != nullptr) break;
  }
  if (fixture.subject == nullptr) return result;
  Answer answer;
  fixture.program = Program::compile(device, *fixture.subject->graph, answer);
  if (fixture.program == nullptr) return failed(answer.describe());
  for (size_t i = 0; i < kRuns; ++i) {
    fixture.instances.push_back(Instance::create(*fixture.program, answer));
    if (fixture.instances.back() == nullptr) return failed(answer.describe());
    if (answer = fixture.instances.back()->bind_all(fixture.subject->inputs); !answer.ok())
      return failed(answer.describe());
  }
  fixture.stream = Stream::create(device, answer);
  if (fixture.stream == nullptr) return failed(answer.describe());
  const CheckResult verdict = check(fixture);
  if (!verdict.fault.empty()) return failed(verdict.fault);
  if (!verdict.not_offered.empty()) return not_supported(verdict.not_offered);
  return passed(1);
}

Result with_semaphores(Bench& bench, CheckResult (*check)(Fixture&)) {
  const Device& device = bench.device();
  if (!is_asynchronous(device) || device.plugin().sync->semaphore_create == nullptr)
    return not_supported("the device has no semaphores of its own");
  return with_fixture(bench, device, check);
}

// Abandons a device whose run does not end. Its objects must not be destroyed afterwards, so this check has its own
// backend, which is never destroyed.
Result abandon(Bench& bench) {
  const bp_plugin_t& plugin = bench.device().plugin();
  if (!is_asynchronous(bench.device())) return not_supported("the device has no streams: every run is synchronous");
  if (plugin.device->abandon == nullptr) return not_supported("the device has nothing to stop");
  struct Kept {
    Host host;
    std::unique_ptr<Backend> backend;
    std::unique_ptr<Device> device;
    std::unique_ptr<Subject> subject;
    std::unique_ptr<Program> program;
    std::unique_ptr<Instance> instance;
    bp_semaphore_t never;
  };
  static auto& all = *new std::vector<Kept*>;
  Kept& kept = *all.emplace_back(new Kept);
  kept.backend = std::make_unique<Backend>(bench.library(), kept.host);
  kept.device = std::make_unique<Device>(*kept.backend, bench.device_index());
  Result result;
  kept.subject = make_subject(*kept.device, problem_of("Add/float/same", bench.seed(), "abandon"), result);
  if (kept.subject == nullptr) return result;
  Answer answer;
  kept.program = Program::compile(*kept.device, *kept.subject->graph, answer);
  if (kept.program == nullptr) return failed(answer.describe());
  kept.instance = Instance::create(*kept.program, answer);
  if (kept.instance == nullptr) return failed(answer.describe());
  if (answer = kept.instance->bind_all(kept.subject->inputs); !answer.ok()) return failed(answer.describe());
  const bp_point_t waits = bp_host_point(&kept.never, 1);
  bp_run_t run = in(nullptr);
  run.waits = &waits;
  run.wait_count = 1;
  run.done = [](void*, bp_status_t, const bp_error_t*) {};
  if (answer = kept.instance->start(run); !answer.ok()) return failed(answer.describe());
  bench.library().keep_loaded();  // threads of the abandoned device may still run the library's code
  const uint64_t begin = now_ns();
  plugin.device->abandon(kept.device->raw());
  if (const uint64_t took = now_ns() - begin; took > 1'000 * kMillisecond)
    return failed(fmt::format("abandon takes {} ms: it must not wait for the device", took / kMillisecond));
  return passed(1);
}

struct Row {
  const char* name;
  CheckResult (*check)(Fixture& fixture);
};
constexpr Row kStreams[] = {
    {"stream_wait", stream_wait},     {"stream_order", stream_order},  {"points_in_stream", points_in_stream},
    {"points_alone", points_alone},   {"failed_wait", failed_wait},    {"silent_failure", silent_failure},
    {"failed_points", failed_points}, {"late_stream", late_stream},    {"cancelled", cancelled},
    {"deadline", deadline},           {"stream_export", stream_export}};
constexpr Row kSemaphores[] = {{"native_points", native_points},
                               {"native_failure", native_failure},
                               {"native_cancel", native_cancel},
                               {"native_slots", native_slots},
                               {"native_export", native_export}};

}  // namespace

void add_sync(const Selection&, std::vector<Case>& out_cases) {
  for (const Row& row : kStreams) {
    out_cases.push_back({fmt::format("sync/{}", row.name),
                         [check = row.check](Bench& bench) { return with_fixture(bench, bench.device(), check); }});
  }
  for (const Row& row : kSemaphores) {
    out_cases.push_back({fmt::format("sync/{}", row.name),
                         [check = row.check](Bench& bench) { return with_semaphores(bench, check); }});
  }
  out_cases.push_back({"sync/abandon", abandon});
}

}  // namespace backplane::conform
