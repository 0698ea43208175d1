// SPDX-License-Identifier: Apache-2.0
#include "partial_backend/instance.h"

#include <chrono>
#include <cstring>

#include "partial_backend/memory.h"

namespace backplane::partial {
namespace {

using sdk::Error;

uint64_t now() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

// The tensor with a pointer as its buffer, as the CPU backend needs it.
bp_tensor_t reached(const Device& device, const bp_tensor_t& tensor) {
  bp_tensor_t host = tensor;
  host.buffer = bp_buffer_t{0, 0, 0, nullptr, reach(device, tensor.buffer), 0, tensor.buffer.bytes};
  return host;
}

// Implements bp_run_t.output for the CPU backend: converts the framework's buffer to a pointer.
struct Outputs {
  const Device& device;
  const bp_run_t& run;

  static bp_status_t BP_CALL provide(void* self, uint32_t slot, uint32_t rank, const int64_t* extents, uint64_t bytes,
                                     bp_tensor_t* out) {
    const auto& outputs = *static_cast<Outputs*>(self);
    bp_tensor_t tensor{};
    tensor.size = sizeof tensor;
    ++outputs.device.counters().outputs_asked;
    const bp_status_t status = outputs.run.output(outputs.run.self, slot, rank, extents, bytes, &tensor);
    if (status != BP_OK) return status;
    return sdk::fence(nullptr, [&] { write(out, reached(outputs.device, tensor)); });
  }
};

}  // namespace

Instance::~Instance() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !in_flight_; });
  }
  own_.reset();
  if (inner != nullptr) cpu->instance->destroy(inner);
}

void Instance::bind(const bp_binding_t& binding, bp_error_t* error) {
  program_.device->called();
  ++program_.device->counters().binds;
  bp_binding_t passed = binding;
  bp_tensor_t tensor{};
  if (binding.tensor != nullptr) {
    tensor = reached(*program_.device, sdk::read(binding.tensor, "binding.tensor"));
    passed.tensor = &tensor;
    bound_[binding.slot] = static_cast<const char*>(tensor.buffer.address);
  }
  if (binding.slot == BP_SLOT_SCRATCH) {
    if (tensor.buffer.bytes < program_.device->script().scratch)
      throw Error(BP_BUFFER_TOO_SMALL, "the scratch memory has " + std::to_string(tensor.buffer.bytes) + " bytes; " +
                                           std::to_string(program_.device->script().scratch) + " are needed");
    scratch_ = static_cast<char*>(tensor.buffer.address) + tensor.buffer.offset;
    return;
  }
  pass(cpu->instance->bind(inner, &passed, error));
}

bool Instance::is_faulty() const {
  return program_.fault_node != BP_NO_NODE && number_ == program_.device->script().fault->run;
}

void Instance::fail(const bp_run_t& run) {
  const auto& fault = program_.device->script().fault;
  if (!is_faulty() || fault->kind == "held") return;
  if (fault->kind == "lost") {
    program_.device->lost = true;
    program_.device->check();
  }
  if (fault->kind == "internal") throw Error(BP_INTERNAL, "a scripted defect", program_.fault_node);
  if (fault->kind == "exhausted") throw Error(BP_RESOURCE_EXHAUSTED, "scripted scarcity", program_.fault_node);
  const bp_host_t* host = program_.device->backend->host;
  if (fault->kind == "late") return take_time(500'000);
  for (;;) {
    if (host->cancelled(host, run.cancel)) throw Error(BP_CANCELLED, "the run was cancelled during a scripted hang");
    if (run.deadline != 0 && now() >= run.deadline)
      throw Error(BP_TIMED_OUT, "the deadline passed during a scripted hang");
    take_time(200);
  }
}

void Instance::check_alignment() const {
  const Script& script = program_.device->script();
  for (const auto& [slot, address] : bound_)
    if (script.refuses_unaligned && reinterpret_cast<uintptr_t>(address) % script.align != 0)
      throw Error(BP_UNSUPPORTED, "the memory of slot " + std::to_string(slot) + " does not start at a multiple of " +
                                      std::to_string(script.align) + " bytes");
}

void Instance::work(const bp_run_t& run) {
  const Device& device = *program_.device;
  device.check();
  fail(run);
  const Span span(device, BP_SPAN_COMPUTE, "run of an island");
  const uint64_t begin = now();
  struct Running {
    std::atomic<uint64_t>& count;
    const uint64_t at_once = ++count;
    ~Running() { --count; }
  } running{device.backend->running};
  for (std::atomic<uint64_t>* most : {&device.backend->max_running, &device.counters().at_once}) {
    for (uint64_t seen = *most; seen < running.at_once && !most->compare_exchange_weak(seen, running.at_once);) {
    }
  }
  if (const uint64_t bytes = device.script().scratch; bytes != 0) {
    if (scratch_ == nullptr)
      throw Error(BP_BAD_STATE,
                  "no scratch memory is bound; bind " + std::to_string(bytes) + " bytes to BP_SLOT_SCRATCH");
    std::memset(scratch_, static_cast<int>(number_), bytes);
  }
  take_time(device.script().run_us);
  if (is_faulty() && device.script().fault->kind == "held") {
    ++device.counters().held;
    wait_for_test(device.counters());
  }
  constexpr int kPatience = 10'000;  // milliseconds
  for (int i = 0; i < kPatience && device.backend->max_running < device.script().meet; ++i) take_time(1000);
  Outputs outputs{device, run};
  bp_run_t passed{};
  passed.size = sizeof passed;
  const bool is_late =
      device.script().fault && (device.script().fault->kind == "late" || device.script().fault->kind == "held");
  passed.deadline = is_late ? 0 : run.deadline;
  passed.cancel = is_late ? nullptr : run.cancel;
  passed.trace_id = run.trace_id;
  passed.self = &outputs;
  passed.output = run.output == nullptr ? nullptr : Outputs::provide;
  sdk::Detail detail;
  detail.check(cpu->instance->run(inner, &passed, detail.get()), "the CPU backend failed");
  ++device.counters().runs;
  device.counters().busy_ns += now() - begin;
}

void Instance::run(const bp_run_t& run) {
  const Device& device = *program_.device;
  device.called();
  device.check();
  check_alignment();
  if (run.done != nullptr) ++device.counters().reports;
  if (!device.script().async) {
    number_ = ++program_.runs;
    const sdk::RunSync sync(*device.backend->sdk_host, run);
    sync.wait();
    work(run);
    return sync.end(nullptr);
  }
  if (run.stream == nullptr && !own_) own_.emplace();
  {
    const std::lock_guard lock(mutex_);
    if (in_flight_) {
      ++device.counters().busy;
      throw Error(BP_BUSY, "the instance runs already");
    }
    in_flight_ = true;
  }
  auto* stream = static_cast<sdk::HostStream*>(sdk::stream_of(run.stream));
  if (stream == nullptr) {
    stream = &*own_;
  } else {
    ++device.counters().stream_runs;
  }
  number_ = ++program_.runs;
  run_ = run;  // `work` reads it; the stream handles its points
  try {
    BeginInStream begun(device.counters().in_streams);
    stream->submit(*device.backend->sdk_host, run, [this](const sdk::RunSync& sync) {
      const EndInStream end{program_.device->counters().in_streams};
      // The caller may run the instance again as soon as the end is reported.
      struct Ended {
        Instance& instance;
        ~Ended() {
          const std::lock_guard lock(instance.mutex_);
          instance.in_flight_ = false;
          instance.changed_.notify_all();
        }
      } ended{*this};
      sync.wait();
      work(run_);
    });
    begun.keep();
  } catch (...) {  // the stream has not taken it
    const std::lock_guard lock(mutex_);
    in_flight_ = false;
    throw;
  }
}

namespace {

bp_status_t BP_CALL create(const bp_program_t* handle, const bp_instance_create_t* how, bp_instance_t** out,
                           bp_error_t* error) {
  *out = nullptr;
  return fence(error, [&] {
    const Program& program = partial::of(handle);
    program.device->called();
    program.device->check();
    auto instance = std::make_unique<Instance>(program);
    pass(cpu->instance->create(program.inner, how, &instance->inner, error));
    ++program.device->counters().instances;
    *out = reinterpret_cast<bp_instance_t*>(instance.release());
  });
}

void BP_CALL destroy(bp_instance_t* handle) {
  if (handle == nullptr) return;
  of(handle).program().device->called();
  --of(handle).program().device->counters().instances;
  delete &of(handle);
}

bp_status_t BP_CALL bind(bp_instance_t* handle, const bp_binding_t* binding, bp_error_t* error) {
  return fence(error, [&] { of(handle).bind(sdk::read(binding, "binding"), error); });
}

bp_status_t BP_CALL extents(bp_instance_t* handle, const bp_slot_extents_t* slots, uint32_t count, uint32_t stride,
                            bp_error_t* error) {
  of(handle).program().device->called();
  return cpu->instance->extents(of(handle).inner, slots, count, stride, error);
}

bp_status_t BP_CALL run(bp_instance_t* handle, const bp_run_t* run, bp_error_t* error) {
  return fence(error, [&] {
    const bp_run_t own = sdk::read(run, "run");
    sdk::check_run(own);
    of(handle).run(own);
  });
}

}  // namespace

const bp_instance_api_t kInstanceApi = {
    .size = sizeof(bp_instance_api_t),
    .create = create,
    .destroy = destroy,
    .bind = bind,
    .extents = extents,
    .run = run,
};

}  // namespace backplane::partial
