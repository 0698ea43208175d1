// SPDX-License-Identifier: Apache-2.0
// A model compiled for a backend, the memory for its inputs and outputs, and its runs in flight.
#pragma once

#include <atomic>
#include <deque>

#include "onnxifi/backend.h"
#include "onnxifi/descriptor.h"
#include "onnxifi/event.h"

namespace backplane::onnxifi {

class Graph {
 public:
  Graph(const Backend& backend, const Model& model);
  ~Graph();  // calls wait_for_runs

  // Waits for the runs in flight and in the queue.
  void wait_for_runs();

  // Sets the memory for later runs. If this throws, no memory is set.
  void set_io(const std::vector<Described>& inputs, const std::vector<Described>& outputs);
  void unset_io();
  // Submits a run that starts when `before` is signalled, or at once if `before` is null. Returns the event that is
  // signalled when the run ends. Throws UNIDENTIFIED_NAME if no memory is set.
  std::shared_ptr<Event> run(std::shared_ptr<const Event> before);
  // set_io and run in one step: the run uses this memory, whatever other threads set.
  std::shared_ptr<Event> set_io_and_run(const std::vector<Described>& inputs, const std::vector<Described>& outputs);

 private:
  // Temporary memory for an output that overlaps an input, because a run may read inputs after it has written outputs.
  // The run writes `from`, which is copied to `to` when the run has ended without an error.
  struct Copy {
    std::unique_ptr<char[]> from;
    char* to;
    uint64_t bytes;
  };
  // Memory for every input and output. The runs that use it keep it alive.
  struct Bindings {
    std::vector<Described> inputs, outputs;  // in the order of the model's values
    std::vector<Buffer> imported;            // memory imported from a driver
    std::vector<bp_tensor_t> tensors;        // of the inputs, then of the outputs
    std::vector<Copy> copies;

    // Whether a run with these bindings and one with `other` must not overlap in time: one writes what the other uses.
    bool conflicts(const Bindings& other) const;
  };
  // A run that the program requested.
  struct Order {
    std::shared_ptr<const Bindings> bindings;
    std::shared_ptr<const Event> before;
    std::shared_ptr<Event> after;
  };
  // An exec and the state of its run. The exec is the last member: its destructor waits for the run, which uses the
  // other members.
  struct Flight {
    Flight(Graph& owner, Exec made) : graph(owner), exec(std::move(made)) {}

    bool is_free() const;

    Graph& graph;
    std::shared_ptr<const Bindings> bound;
    std::shared_ptr<const Event> before;
    // `after` is the event of the latest run, `last` that of the run before it, which may still be in the act of being
    // signalled when the exec accepts the next run.
    std::shared_ptr<Event> after, last;
    uint64_t runs = 0;   // number of runs started
    Semaphore ended;     // counts the runs that have ended or failed
    Semaphore finished;  // counts the runs after which the exec is free; the value of a failed run fails
    Exec exec;
  };

  std::shared_ptr<const Bindings> bindings(const std::vector<Described>& inputs,
                                           const std::vector<Described>& outputs) const;
  bp_tensor_t tensor(Bindings& bindings, const Described& described) const;
  bp_tensor_t output(Bindings& bindings, const Described& described) const;
  // The caller of these functions holds mutex_.
  void set(const std::vector<Described>& inputs, const std::vector<Described>& outputs);
  std::shared_ptr<Event> start(std::shared_ptr<const Event> before);
  void submit(Flight& flight, Order order);
  void submit_queued();
  // Returns an idle flight, or a new one if all are busy. With kMostInFlight or more, a new one is made only if it is
  // `needed`; otherwise the result is null.
  Flight* free_flight(bool needed = false);
  void bind(Flight& flight, const std::shared_ptr<const Bindings>& bindings) const;
  static void ended(void* flight, bp_status_t status, const bp_error_t* error);

  const Environment environment_;
  const Device device_;
  const Session session_;
  // Each flight has a thread, so their number is limited. Further runs wait in the queue until one in flight ends.
  static constexpr size_t kMostInFlight = 32;

  // `ended` takes this lock only if runs are queued: the thread that submitted the run often still holds the lock.
  std::mutex mutex_;
  std::shared_ptr<const Bindings> bindings_;
  std::deque<Order> queue_;
  std::atomic<size_t> queued_{0};     // the length of the queue
  std::atomic<size_t> in_flight_{0};  // number of runs submitted that have not ended
  std::atomic<size_t> pending_{0};    // number of runs in flight or queued; the graph lives until it is 0
  std::vector<std::unique_ptr<Flight>> flights_;
  std::unique_ptr<Flight> spare_;  // set_io checks memory with it while all other flights are busy
  std::vector<bp_point_t> waits_;  // of the run that is being submitted
};

}  // namespace backplane::onnxifi
