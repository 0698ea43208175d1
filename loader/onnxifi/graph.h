// SPDX-License-Identifier: Apache-2.0
// A model compiled for a backend, the memory that is set for its inputs and outputs, and its runs in flight.
#pragma once

#include "onnxifi/backend.h"
#include "onnxifi/descriptor.h"
#include "onnxifi/event.h"

namespace backplane::onnxifi {

class Graph {
 public:
  Graph(const Backend& backend, const Model& model);
  ~Graph();  // waits for the runs in flight

  // Sets the memory for later runs. If it throws, no memory is set.
  void set_io(const std::vector<Described>& inputs, const std::vector<Described>& outputs);
  void unset_io();
  // Submits a run that starts when `before` (may be NULL) is signalled. Returns the event that its end signals.
  std::shared_ptr<Event> run(std::shared_ptr<const Event> before);

 private:
  // Memory for every input and output. Runs that use it keep it alive.
  struct Bindings {
    std::vector<Described> inputs, outputs;  // in the model's order
    std::vector<Buffer> imported;            // from a driver
    std::vector<bp_tensor_t> tensors;        // the inputs', then the outputs'
  };
  // A run state. The exec comes last: its destructor waits for a run that uses the others.
  struct Flight {
    explicit Flight(Exec made) : exec(std::move(made)) {}

    bool is_free() const;

    std::shared_ptr<const Bindings> bound;
    std::shared_ptr<const Event> before;
    std::shared_ptr<Event> after;
    uint64_t runs = 0;   // runs that were started
    Semaphore ended;     // counts runs that ended, failed or not
    Semaphore finished;  // counts runs after which the exec accepts the next one; carries failures
    Exec exec;
  };

  std::shared_ptr<const Bindings> bindings(const std::vector<Described>& inputs,
                                           const std::vector<Described>& outputs) const;
  bp_tensor_t tensor(Bindings& bindings, const Described& described) const;
  Flight& free_flight();
  void bind(Flight& flight, const std::shared_ptr<const Bindings>& bindings) const;
  static void ended(void* flight, bp_status_t status, const bp_error_t* error);

  const Environment environment_;
  const Device device_;
  const Session session_;
  std::mutex mutex_;
  std::shared_ptr<const Bindings> bindings_;
  std::vector<std::unique_ptr<Flight>> flights_;
  Flight* last_ = nullptr;  // the last run's
};

}  // namespace backplane::onnxifi
