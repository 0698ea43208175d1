// SPDX-License-Identifier: Apache-2.0
// An instance's runs. `submit` starts a run and returns. In a stream it enqueues all commands, and the stream reports
// the end. Without a stream, the driver calls `reached` when the commands started so far have ended; `reached` starts
// the next commands or reports the end, and does not wait for them.
#include <thread>

#include "engine/instance.h"
#include "engine/stream.h"

namespace backplane::gpu {
namespace {

// How many kernels are started between two checks for cancellation and the deadline.
constexpr size_t kLaunchesBetweenChecks = 16;

}  // namespace

// ---- the start ------------------------------------------------------------------------------------------------------

void Instance::submit(const bp_run_t& what) {
  {
    const std::lock_guard lock(mutex_);
    Stream* const stream = stream_of(what);
    const bool follows = stream != nullptr && stream_queue_ != nullptr && same(*stream->queue(), *stream_queue_);
    if (running_ || (in_stream_ != 0 && !follows))
      throw sdk::Error(BP_BUSY, "this instance still has a run in flight: wait until it ends, or use another instance");
    running_ = true;
  }
  try {
    if (!work_ || stream_of(what) != nullptr) work_ = std::make_shared<Work>();
    sync_ = std::make_shared<const sdk::RunSync>(host(), what);
    bp_run_t without_sync = what;
    without_sync.wait_count = without_sync.signal_count = 0;
    without_sync.done = nullptr;
    sdk::Instance::submit(without_sync);  // checks what is bound, and calls `run`
  } catch (...) {
    const std::lock_guard lock(mutex_);
    running_ = false;
    throw;
  }
}

void Instance::run(const bp_run_t&) {
  if (Stream* stream = stream_of(sync_->run())) return start_in(*stream);
  run_queue_ = queue_;
  if (!sync_->must_wait()) {
    sync_->wait();  // throws if a point has failed
    return start();
  }
  begin_callback();
  try {
    host().submit([this]() noexcept {
      const auto failure = sdk::caught([this] {
        sync_->wait();
        start();
      });
      if (failure) report_end(failure);
      end_callback();
    });
  } catch (...) {
    end_callback();
    throw;
  }
}

void Instance::start() {
  island_.gpu_device().abandonment()->check();
  prepare();
  try {
    begin();
    proceed();
  } catch (...) {
    abort_start();
    throw;
  }
}

// Enqueues the complete run: later work may be put into the stream as soon as this returns.
void Instance::start_in(Stream& stream) {
  island_.gpu_device().abandonment()->check();
  run_queue_ = stream_queue_ = stream.queue();
  if (run_queue_->is_captured()) return add_to_capture();
  prepare();
  std::shared_ptr<Flight> wait = stream.wait_for(sync_);
  while (!flights_.empty() && flights_.front()->concluded()) flights_.pop_front();
  flights_.emplace_back();
  try {
    const std::shared_ptr<Work> work = work_;
    Event last;
    work->failure = sdk::caught([&] {
      begin();
      launch(kernels_.size());
      finish_work();
      if (!work->ended.empty())
        last = work->ended.back();
      else if (!work->launched.empty())
        last = work->launched.back();  // NULL if the last launch was left out
      if (last == nullptr) last = run_queue_->mark();
    });
    // Commands that were enqueued before a failure may wait for points that this thread signals after the call, so the
    // failure is reported when they have ended, like one on the device.
    flights_.back() = std::make_shared<Flight>([this, work] { return conclude(*work); }, sync_->run().id, last);
  } catch (...) {
    flights_.pop_back();
    abort_start();
    throw;
  }
  work_ = nullptr;
  {
    const std::lock_guard lock(mutex_);
    ++in_stream_;
    running_ = false;  // the next run may follow in this stream
  }
  stream.follow(sync_, std::move(wait), flights_.back());
}

// The framework is capturing the stream: the run's commands become part of the framework's capture, which the framework
// executes when and as often as it wants. Nothing may be allocated or waited for. The run is reported as ended at once,
// because the backend does not notice when the capture is executed.
void Instance::add_to_capture() {
  const auto refuse = [](bp_status_t status, const std::string& text) {
    throw sdk::Error(status, "the framework is capturing the stream: " + text);
  };
  if (shapes_changed_ || bindings_changed_) refuse(BP_BAD_STATE, "run with these bindings once before the capture");
  if (!plan_->host_inputs.empty())
    refuse(BP_UNSUPPORTED, "the host reads an input in every run; make it a constant of the model");
  if (sync_->must_wait() || !sync_->signals().empty())
    refuse(BP_UNSUPPORTED, "a run cannot wait for semaphores or signal them");
  for (const auto* side : {&inputs_, &outputs_})
    for (const auto& memory : *side)
      if (!memory->is_on_device()) refuse(BP_UNSUPPORTED, "an input or output is in host memory: bind device memory");
  keep_for_graph();
  enqueue_captured(*run_queue_);
  const auto sync = std::move(sync_);
  {
    const std::lock_guard lock(mutex_);
    running_ = false;
    changed_.notify_all();
  }
  sync->end(nullptr);
}

// Keeps what the commands refer to besides bound memory, as bindings and extents may change while the capture exists.
void Instance::keep_for_graph() {
  kept_.insert(plan_);
  kept_.insert(arena_);
  kept_.insert(kernels_.begin(), kernels_.end());
  for (const auto* side : {&inputs_, &outputs_})
    for (const auto& memory : *side)
      if (!memory->is_direct()) kept_.insert(memory->buffer());
}

void Instance::abort_start() {
  run_queue_->finish_noexcept();  // so that no command of this run uses bound memory any more
  unmap_bound_memory();
}

void Instance::begin() {
  work_->sync = sync_;
  work_->plan = plan_;
  for (auto* events : {&work_->begun, &work_->launched, &work_->ended}) events->clear();
  work_->failure.reset();
  work_->copied = 0;
  work_->tracing = host().tracing();
  work_->begin_time = work_->tracing ? sdk::monotonic_now() : 0;
  if (plan_->may_fault && !work_->found_fault) work_->found_fault = island_.gpu_device().driver().host_word();
  const DeviceCapture* const capture = this->capture();
  work_->copied += begin_bindings(*run_queue_, capture != nullptr ? Copies::kOthers : Copies::kAll, work_->begun);
  work_->replays = capture != nullptr && replay(*capture);
  if (work_->replays) return;
  if (capture != nullptr) work_->copied += begin_bindings(*run_queue_, Copies::kCaptured, work_->begun);
  if (!plan_->may_fault) return;
  static constexpr int32_t kNone = 0;
  work_->begun.push_back(run_queue_->write({fault_.get(), 0}, &kNone, sizeof kNone, false, "run"));
}

// The capture of this run's commands, or NULL if they are enqueued one by one.
const DeviceCapture* Instance::capture() {
  Device& device = island_.gpu_device();
  if (!device.captures() || captured_commands_ < 2 || work_->tracing || must_check()) return nullptr;
  const DeviceCapture* found = nullptr;
  const auto failure = sdk::caught([&] {
    found = captures_.find(bindings_key_, [&] {
      return device.driver().capture([this](CommandQueue& queue) { enqueue_captured(queue); });
    });
  });
  if (failure) forgo_captures(*failure);
  return found;
}

// Enqueues a run's commands, except copies that cannot be captured and the read of the fault word, for which each run
// has its own memory.
void Instance::enqueue_captured(CommandQueue& queue) {
  std::vector<Event> events;
  begin_bindings(queue, Copies::kCaptured, events);
  if (plan_->may_fault) queue.fill({fault_.get(), 0}, 0, sizeof(int32_t), "run");
  for (size_t l = 0; l < kernels_.size(); ++l)
    if (const Launch& launch = plan_->launches[l]; !copies_to_itself(launch))
      queue.launch(*kernels_[l], {launch.global, launch.local}, false);
  end_bindings(queue, Copies::kCaptured, events);
}

bool Instance::replay(const DeviceCapture& capture) {
  const auto failure = sdk::caught([&] { run_queue_->replay(capture, "run"); });
  if (failure)
    forgo_captures(*failure);
  else
    work_->launched.resize(kernels_.size());
  return !failure;
}

// Makes the instance enqueue the commands of this run and all later ones one by one. Throws if the device is lost.
void Instance::forgo_captures(const sdk::Error& failure) {
  if (failure.status == BP_DEVICE_LOST) throw sdk::Error(failure);
  captures_.disable();
  island_.gpu_device().capture_failed(failure);
}

// Whether the host checks for cancellation or a deadline between the kernels.
bool Instance::must_check() const {
  const bool limited = sync_->run().cancel != nullptr || sync_->run().deadline != 0;
  return limited && run_queue_ == queue_ && kernels_.size() > kLaunchesBetweenChecks;
}

// Starts all kernels, or only a batch of them if the host must check for cancellation or a deadline.
void Instance::proceed() {
  launch(must_check() ? std::min(kernels_.size(), work_->launched.size() + kLaunchesBetweenChecks) : kernels_.size());
  if (work_->launched.size() == kernels_.size()) finish_work();
  call_back();
}

// Enqueues the kernels before index `end`.
void Instance::launch(size_t end) {
  for (size_t l = work_->launched.size(); l < end; ++l) {
    const Launch& launch = plan_->launches[l];
    work_->launched.push_back(copies_to_itself(launch)
                                  ? nullptr
                                  : run_queue_->launch(*kernels_[l], {launch.global, launch.local}, work_->tracing));
  }
}

// Enqueues the commands after the kernels.
void Instance::finish_work() {
  work_->copied += end_bindings(*run_queue_, work_->replays ? Copies::kOthers : Copies::kAll, work_->ended);
  if (!plan_->may_fault) return;
  work_->ended.push_back(
      run_queue_->read(work_->found_fault.get(), {fault_.get(), 0}, sizeof *work_->found_fault, false, "run"));
}

// Calls `reached` when everything started has ended, possibly before this returns.
void Instance::call_back() {
  begin_callback();
  try {
    run_queue_->when_done([this](const sdk::Error* failure) {
      reached(failure);
      end_callback();
    });
  } catch (...) {
    end_callback();
    throw;
  }
}

// ---- the end --------------------------------------------------------------------------------------------------------

void Instance::reached(const sdk::Error* ended) {
  bool goes_on = false;
  const auto failure = sdk::caught([&] {
    if (work_->failure) throw sdk::Error(*work_->failure);
    check_work(*work_);
    if (ended != nullptr) throw sdk::Error(*ended);
    if (work_->launched.size() < kernels_.size()) {
      host().check(sync_->run().cancel, sync_->run().deadline);
      island_.gpu_device().abandonment()->check();
      goes_on = true;  // set first: `proceed` may lead to a call of this function on another thread
      if (auto failure = sdk::caught([this] { proceed(); })) {
        goes_on = false;
        work_->failure = std::move(failure);
        call_back();  // reports the failure once the commands already enqueued have ended
        goes_on = true;
      }
      return;
    }
    trace(*work_);
  });
  if (!goes_on) report_end(failure);
}

// Throws if a command failed or a kernel found an index out of range.
void Instance::check_work(const Work& work) const {
  const auto check = [](const Event& event, std::string_view what) {
    if (event != nullptr) event->check(what);
  };
  for (const Event& event : work.begun) check(event, "making inputs accessible");
  for (size_t l = 0; l < work.launched.size(); ++l)
    check(work.launched[l], "kernel '" + work.plan->launches[l].source.entry + "'");
  for (const Event& event : work.ended) check(event, "making outputs accessible");
  if (!work.plan->may_fault || work.launched.size() < work.plan->launches.size() || *work.found_fault == 0) return;
  const sdk::Node node = island_.graph().node(static_cast<uint32_t>(*work.found_fault) - 1);
  throw sdk::Error(BP_INVALID_ARGUMENT,
                   std::string(node.op_type()) + " '" + std::string(node.name()) +
                       "': " + std::string(island_.gpu_device().table().find(node)->fault),
                   node.id());
}

// Returns the failure of a run in a stream, or nullopt. Called when the run's commands have ended; commands of later
// runs may be in flight.
std::optional<sdk::Error> Instance::conclude(const Work& work) {
  auto failure = sdk::caught([&] {
    if (work.failure) throw sdk::Error(*work.failure);
    check_work(work);
    trace(work);
  });
  const std::lock_guard lock(mutex_);
  --in_stream_;
  stream_failed_ = stream_failed_ || failure.has_value();
  changed_.notify_all();
  return failure;
}

void Instance::report_end(std::optional<sdk::Error> failure) {
  const auto sync = std::move(sync_);  // the next run may start as soon as this one's end is reported
  if (!failure) failure = sync->dependency();
  forget_run(failure.has_value());
  sync->end(failure ? &*failure : nullptr);
}

void Instance::forget_run(bool failed) {
  if (failed && !island_.gpu_device().abandonment()->is_set()) unmap_bound_memory();
  for (auto* events : {&work_->begun, &work_->launched, &work_->ended}) events->clear();
  const std::lock_guard lock(mutex_);
  running_ = false;
  changed_.notify_all();
}

// Converts device times to host times. The difference between the clocks follows from the last kernel, which has just
// ended.
void Instance::trace(const Work& work) const {
  if (!work.tracing) return;
  std::vector<DeviceEvent::Times> times;
  uint64_t last = 0;
  for (const Event& event : work.launched) {
    times.push_back(event != nullptr ? event->times() : DeviceEvent::Times{});
    last = std::max(last, times.back().end);
  }
  const uint64_t shift = sdk::monotonic_now() - last;
  bp_span_t span{};
  span.trace_id = work.sync->run().trace_id;
  span.device = island_.device().id();
  for (size_t l = 0; l < work.launched.size() && last != 0; ++l) {
    const Launch& launch = work.plan->launches[l];
    span.kind = BP_SPAN_COMPUTE;
    span.begin = times[l].begin + shift;
    span.end = times[l].end + shift;
    const bool known = launch.node < island_.graph().node_count();
    const uint64_t node = known ? island_.graph().node(launch.node).id() : BP_NO_NODE;
    span.nodes = &node;
    span.node_count = known ? 1 : 0;
    span.flags = BP_SPAN_DEVICE_CLOCK;
    span.name = sdk::text(launch.source.entry);
    host().trace(span);
  }
  if (work.copied == 0) return;
  span.kind = BP_SPAN_COPY;
  span.begin = work.begin_time;
  span.end = sdk::monotonic_now();
  span.node_count = 0;
  span.flags = 0;
  span.bytes = work.copied;
  span.name = sdk::text("copies of inputs and outputs");
  host().trace(span);
}

// Counts callbacks and waiting threads, which the instance must outlive.
void Instance::begin_callback() {
  const std::lock_guard lock(mutex_);
  ++callbacks_;
}

void Instance::end_callback() {
  const std::lock_guard lock(mutex_);
  --callbacks_;
  changed_.notify_all();  // under the lock: after it is released, the waiting thread may destroy `changed_`
}

}  // namespace backplane::gpu
