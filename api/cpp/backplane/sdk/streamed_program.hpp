// SPDX-License-Identifier: Apache-2.0
// Asynchronous programs for devices whose driver runs an island in one blocking call, on host memory. A stream's thread
// makes these calls in order. The vendor derives the device from HostStreams and the program from StreamedProgram.
#pragma once

#include "backplane/sdk/async.hpp"

namespace backplane::sdk {

// A Device with streams and timelines implemented on the host.
class HostStreams : public Sync {
 public:
  std::unique_ptr<Stream> stream(const bp_stream_create_t& how) override {
    if (how.native != nullptr) throw Error(BP_UNSUPPORTED, "this device cannot import streams");
    return std::make_unique<HostStream>();
  }
  std::unique_ptr<NativeSemaphore> semaphore(const bp_semaphore_create_t& how) override {
    if (how.native != nullptr) throw Error(BP_UNSUPPORTED, "this device cannot import semaphores");
    return std::make_unique<HostTimeline>(how.value);
  }
};

class StreamedProgram : public Program {
 public:
  using Program::Program;

  // Executes one run and returns when it is done. Inputs and outputs are in the island's order, dense and in host
  // memory, and the run's waits have ended. Throws Error on failure. Many threads may call it concurrently, for
  // different instances.
  virtual void launch(const std::vector<const void*>& inputs, const std::vector<void*>& outputs,
                      const RunSync& sync) const = 0;

  std::unique_ptr<Instance> instance() const final;
  class Run;  // the backend's `Instance`
};

// Runs may follow each other in one stream, so each has its own copy of the addresses.
class StreamedProgram::Run final : public Instance {
 public:
  explicit Run(const StreamedProgram& program)
      : Instance(program),
        program_(program),
        is_bound_(program.graph().input_count() + size_t{program.graph().output_count()}) {}
  ~Run() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return flights_.empty(); });
  }

  void bind(const bp_binding_t& binding) override {
    Instance::bind(binding);
    if (binding.slot != BP_SLOT_SCRATCH) is_bound_[place_of(binding.slot)] = true;
  }
  void run(const bp_run_t&) override {}  // not used: `submit` does all the work
  void submit(const bp_run_t& run) override {
    check_bound();
    host().check(run.cancel, run.deadline);
    Flight& flight = take_off(run.stream);
    try {
      for (uint32_t i = 0; i < flight.inputs.size(); ++i) flight.inputs[i] = address(input(i));
      for (uint32_t i = 0; i < flight.outputs.size(); ++i) flight.outputs[i] = address(output(i));
      stream_for(run).submit(host(), run, [this, &flight](const RunSync& sync) {
        const Ended ended{*this};  // before `done` is called, which may wake a thread that starts the next run
        sync.wait();
        program_.launch(flight.inputs, flight.outputs, sync);
      });
    } catch (...) {
      const std::lock_guard lock(mutex_);
      land(std::prev(flights_.end()));
      throw;
    }
  }

 private:
  // A run that was submitted and has not ended.
  struct Flight {
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
  };
  using Flights = std::list<Flight>;
  // Its destructor removes the instance's oldest run from those in flight.
  struct Ended {
    Run& instance;
    ~Ended() {
      const std::lock_guard lock(instance.mutex_);
      instance.land(instance.flights_.begin());
    }
  };

  // Adds a run in flight. Throws BP_BUSY if other runs are in flight, unless all of them are in the same stream.
  Flight& take_off(bp_stream_t* stream) {
    const std::lock_guard lock(mutex_);
    if (!flights_.empty() && (stream == nullptr || stream != stream_))
      throw Error(BP_BUSY, "this instance still has a run in flight: wait until it ends, or use another instance");
    if (spare_.empty()) {
      spare_.push_back({std::vector<const void*>(program_.graph().input_count()),
                        std::vector<void*>(program_.graph().output_count())});
    }
    flights_.splice(flights_.end(), spare_, spare_.begin());
    stream_ = stream;
    return flights_.back();
  }
  // Requires that the mutex is held.
  void land(Flights::iterator flight) {
    spare_.splice(spare_.end(), flights_, flight);
    changed_.notify_all();
  }

  size_t place_of(uint32_t slot) const {
    return slot < BP_SLOT_OUTPUT ? slot : program_.graph().input_count() + size_t{slot - BP_SLOT_OUTPUT};
  }
  void check_bound() const {
    const size_t inputs = program_.graph().input_count();
    for (size_t i = 0; i < is_bound_.size(); ++i) {
      if (is_bound_[i]) continue;
      const bool is_input = i < inputs;
      const auto slot = static_cast<uint32_t>(is_input ? i : i - inputs);
      const Value value = is_input ? program_.graph().input(slot) : program_.graph().output(slot);
      throw Error(BP_BAD_STATE, (is_input ? "input '" : "output '") + std::string(value.name()) +
                                    "' is not bound; call bind before run");
    }
  }
  HostStream& stream_for(const bp_run_t& run) {
    if (run.stream != nullptr) return *static_cast<HostStream*>(stream_of(run.stream));
    if (!own_) own_ = std::make_unique<HostStream>();
    return *own_;
  }

  const StreamedProgram& program_;
  std::vector<bool> is_bound_;  // inputs, then outputs
  std::mutex mutex_;
  std::condition_variable changed_;
  Flights flights_, spare_;          // oldest first; one stream executes them in order
  bp_stream_t* stream_ = nullptr;    // the stream of the latest run in flight
  std::unique_ptr<HostStream> own_;  // for runs without a stream
};

inline std::unique_ptr<Instance> StreamedProgram::instance() const {
  return std::make_unique<Run>(*this);
}

}  // namespace backplane::sdk
