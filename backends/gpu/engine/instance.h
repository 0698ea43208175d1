// SPDX-License-Identifier: Apache-2.0
// A program's run state: kernels with their arguments, intermediate memory, a queue, bound memory, and the run in
// flight.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>

#include "engine/bound_memory.h"
#include "engine/captures.h"
#include "engine/island.h"
#include "engine/stream.h"

namespace backplane::gpu {

class Instance final : public sdk::Instance {
 public:
  explicit Instance(const Island& island);
  ~Instance() override;  // waits for a run in flight

  void bind(const bp_binding_t& binding) override;
  void extents(const sdk::Slots& slots) override;
  // Starts a run and returns; another thread may report its end.
  void submit(const bp_run_t& what) override;

 protected:
  bool reaches(const bp_tensor_t& tensor) const override;

 private:
  // A kernel argument whose memory the framework binds.
  struct External {
    uint32_t launch, argument;
    Storage::Place place;
    uint32_t slot;
  };

  // The commands of a run. In a stream, the next run may start before this one has ended.
  struct Work {
    std::shared_ptr<const sdk::RunSync> sync;
    std::shared_ptr<const Plan> plan;
    std::vector<Event> begun;           // of the commands before the kernels
    std::vector<Event> launched;        // of the kernels started so far, indexed by launch
    std::vector<Event> ended;           // of the commands after the kernels
    std::optional<sdk::Error> failure;  // why further commands could not be started while others were in flight
    bool tracing = false;
    uint64_t begin_time = 0, copied = 0;  // for the trace: nanoseconds; bytes
    bool replays = false;                 // a capture is replayed instead of enqueuing its commands
    // Read from the device at the end: 0, or 1 + the index of a failed node. NULL until it is needed.
    std::shared_ptr<int32_t> found_fault;
  };

  // Which copies of bound memory to enqueue: those that a capture contains, the others, or all.
  enum class Copies { kCaptured, kOthers, kAll };

  // ---- plan and bindings (instance.cpp) ----
  void prepare();                  // before a run: makes the plan and the bindings current
  bool binds_host_memory() const;  // whether a new binding is in host memory
  // Calls `wait` before the first call of `read`; `wait` returns when `read` need not wait for the device.
  void replan(const ReadInput& read, const std::function<void()>& wait);
  std::vector<std::byte> read_input(uint32_t slot) const;
  void create_kernels(const Plan& plan);
  void map_bound_memory();
  void unmap_bound_memory();
  void check_outputs() const;
  const Buffer& bound(Storage::Place place, uint32_t slot) const;
  // The input that is bound to the same memory as `output`, or NULL.
  const BoundMemory* input_in(const bp_tensor_t& output) const;
  bool copies_to_itself(const Launch& launch) const;
  void identify_bindings();
  static bool takes(Copies which, const BoundMemory& memory);
  // Enqueue the copies before and after the kernels; return the number of bytes copied.
  uint64_t begin_bindings(CommandQueue& queue, Copies which, std::vector<Event>& events);
  uint64_t end_bindings(CommandQueue& queue, Copies which, std::vector<Event>& events);

  // ---- the run in flight (run.cpp) ----
  void run(const bp_run_t& without_sync) override;  // called by `submit` once all slots are known to be bound
  void start();
  void start_in(Stream& stream);
  void add_to_capture();
  void keep_for_graph();
  void abort_start();
  void begin();
  void proceed();
  const DeviceCapture* capture();
  void enqueue_captured(CommandQueue& queue);
  bool replay(const DeviceCapture& capture);
  bool must_check() const;
  void forgo_captures(const sdk::Error& failure);
  void launch(size_t end);
  void finish_work();
  void call_back();
  void reached(const sdk::Error* failure);
  void check_work(const Work& work) const;
  std::optional<sdk::Error> conclude(const Work& work);
  void report_end(std::optional<sdk::Error> failure);
  void forget_run(bool failed);
  void trace(const Work& work) const;
  void begin_callback();
  void end_callback();

  const Island& island_;
  Queue queue_;
  std::shared_ptr<const Plan> plan_;
  Buffer arena_, fault_;
  uint64_t arena_bytes_ = 0;
  std::vector<Buffer> parts_;    // of the arena, indexed by storage; kept because kernels do not retain their arguments
  std::vector<Kernel> kernels_;  // indexed by launch
  std::vector<External> externals_;
  std::vector<std::optional<BoundMemory>> inputs_, outputs_;
  Captures captures_;  // of runs of plan_; refer to arena_, fault_, kernels_ and the buffers of inputs_ and outputs_
  // Objects that the framework's captures refer to. Kept as long as the instance, since their end is not reported.
  std::set<std::shared_ptr<const void>> kept_;
  Captures::Key bindings_key_;  // identifies the present bindings
  size_t captured_commands_ = 0;
  bool shapes_changed_ = true;
  bool bindings_changed_ = true;

  // The run in flight, accessed by one thread at a time: the one that starts it, then threads of the driver.
  std::shared_ptr<const sdk::RunSync> sync_;
  std::shared_ptr<Work> work_;
  std::deque<std::shared_ptr<Flight>> flights_;  // runs in streams, the oldest first; some have ended
  Queue stream_queue_;                           // the queue of the stream that the last flight is in
  Queue run_queue_;                              // the current run's queue: stream_queue_ or queue_

  std::mutex mutex_;
  std::condition_variable changed_;
  bool running_ = false;        // from `submit` until the end is reported; in a stream, until `submit` returns
  uint32_t in_stream_ = 0;      // runs in a stream whose outcome is not determined yet
  bool stream_failed_ = false;  // a run in the stream failed
  uint32_t callbacks_ = 0;      // pending callbacks of the driver, and threads that wait for a run's points
};

}  // namespace backplane::gpu
