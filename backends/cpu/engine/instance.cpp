// SPDX-License-Identifier: Apache-2.0
#include "engine/instance.h"

#include <algorithm>
#include <cstring>

#include "backplane/sdk/fence.hpp"
#include "engine/container.h"
#include "engine/device.h"
#include "engine/fence.h"

namespace backplane::cpu {

namespace {

std::string text_of(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  return text + "]";
}

// Whether strides say the same as dense row-major; those of extents below 2 mean nothing.
bool dense(const bp_tensor_t& tensor) {
  if (tensor.layout == BP_LAYOUT_DENSE) return true;
  if (tensor.layout != BP_LAYOUT_STRIDED || tensor.strides == nullptr) return false;
  int64_t step = 1;
  for (uint32_t d = tensor.rank; d-- > 0;) {
    if (tensor.extents[d] > 1 && tensor.strides[d] != step) return false;
    step *= tensor.extents[d];
  }
  return true;
}

void* address(const bp_buffer_t& buffer) {
  return buffer.address == nullptr ? nullptr : static_cast<std::byte*>(buffer.address) + buffer.offset;
}

}  // namespace

Instance::Instance(const Program& program)
    : frame_(program), inputs_(program.graph().input_count), outputs_(program.graph().output_count) {}

Instance::Slot& Instance::slot_of(uint32_t slot, uint32_t* out_value) {
  const bp_graph_t& graph = program().graph();
  if (slot < graph.input_count) {
    *out_value = graph.inputs[slot];
    return inputs_[slot];
  }
  if (slot >= BP_SLOT_OUTPUT && slot - BP_SLOT_OUTPUT < graph.output_count) {
    *out_value = graph.outputs[slot - BP_SLOT_OUTPUT];
    return outputs_[slot - BP_SLOT_OUTPUT];
  }
  throw sdk::Error(BP_INVALID_ARGUMENT, "slot " + std::to_string(slot) + " does not exist: the program has " +
                                            std::to_string(graph.input_count) + " inputs and " +
                                            std::to_string(graph.output_count) +
                                            " outputs, and wants no scratch memory");
}

std::string Instance::name_of(uint32_t slot, uint32_t value) const {
  bp_text_t name = bp_graph_value(&program().graph(), value)->name;
  return std::string(slot < BP_SLOT_OUTPUT ? "input" : "output") + " '" + std::string(name.data, name.size) + "'";
}

void Instance::check_extents(uint32_t slot, uint32_t value, const Shape& shape, uint64_t capacity) const {
  const bp_type_t& type = program().type_of(value);
  if (!program().admits(type, shape.span())) {
    throw sdk::Error(BP_TYPE_MISMATCH,
                     name_of(slot, value) + ": extents " + text_of(shape) + " do not fit the declared type");
  }
  int64_t elements = 1;
  bool beyond = false;
  for (int64_t extent : shape) {
    if (extent < 0)
      throw sdk::Error(BP_INVALID_ARGUMENT, name_of(slot, value) + ": an extent is " + std::to_string(extent));
    beyond = beyond || __builtin_mul_overflow(elements, extent, &elements);
  }
  if (beyond || elements > (int64_t{1} << 56))
    throw sdk::Error(BP_INVALID_ARGUMENT, name_of(slot, value) + ": extents " + text_of(shape) + " are too large");
  auto needed = static_cast<uint64_t>(bytes_of(type.dtype, elements));
  if (needed > capacity) {
    throw sdk::Error(BP_BUFFER_TOO_SMALL, name_of(slot, value) + ": extents " + text_of(shape) + " need " +
                                              std::to_string(needed) + " bytes, the buffer has " +
                                              std::to_string(capacity));
  }
}

void Instance::bind(const bp_binding_t& binding) {
  uint32_t value = BP_NONE;
  Slot& slot = slot_of(binding.slot, &value);
  const bp_type_t& type = program().type_of(value);
  if (type.kind != BP_KIND_TENSOR) return bind_container(binding, value, slot);
  if (binding.container != nullptr || binding.tensor == nullptr)
    throw sdk::Error(BP_TYPE_MISMATCH, name_of(binding.slot, value) + " is a tensor; bind one, and no container");
  const bp_tensor_t& tensor = checked<bp_tensor_t>(binding.tensor, "binding.tensor");
  if (tensor.dtype != type.dtype) {
    throw sdk::Error(BP_TYPE_MISMATCH, name_of(binding.slot, value) + ": data type " + std::to_string(tensor.dtype) +
                                           " was given, the program has " + std::to_string(type.dtype));
  }
  if (tensor.rank > BP_MAX_RANK || (tensor.rank != 0 && tensor.extents == nullptr)) {
    throw sdk::Error(BP_INVALID_ARGUMENT,
                     name_of(binding.slot, value) + ": rank " + std::to_string(tensor.rank) + " without valid extents");
  }
  if (tensor.buffer.memory != nullptr) {
    throw sdk::Error(BP_UNSUPPORTED, name_of(binding.slot, value) + ": the buffer is not in host memory");
  }
  if (!dense(tensor))
    throw sdk::Error(BP_UNSUPPORTED, name_of(binding.slot, value) + ": only dense row-major tensors can be bound");

  Shape shape({tensor.extents, tensor.rank});
  uint64_t capacity = tensor.buffer.address == nullptr ? 0 : tensor.buffer.bytes;
  check_extents(binding.slot, value, shape, capacity);
  void* where = address(tensor.buffer);
  int64_t width = type.dtype == BP_DTYPE_STRING ? int64_t{sizeof(int64_t)} : bytes_of(type.dtype, 1);
  auto align = static_cast<uintptr_t>(std::clamp<int64_t>(width, 1, 8));
  if (reinterpret_cast<uintptr_t>(where) % align != 0) {
    throw sdk::Error(
        BP_INVALID_ARGUMENT,
        name_of(binding.slot, value) + ": the address is no multiple of the element size " + std::to_string(align));
  }
  inputs_changed_ = true;
  slot = {shape, where, capacity, nullptr, true};
}

void Instance::bind_container(const bp_binding_t& binding, uint32_t value, Slot& slot) {
  std::string name = name_of(binding.slot, value);
  if (binding.container == nullptr || binding.tensor != nullptr)
    throw sdk::Error(BP_TYPE_MISMATCH, name + " is no tensor; bind a container");
  if (program().device().host()->containers == nullptr)
    throw sdk::Error(BP_UNSUPPORTED, name + ": the host offers no containers");
  // Outputs are written while what the inputs hold is still borrowed.
  for (const Slot& other : binding.slot < BP_SLOT_OUTPUT ? outputs_ : inputs_) {
    if (other.container == binding.container)
      throw sdk::Error(BP_INVALID_ARGUMENT, name + ": the container is bound to an input and to an output");
  }
  slot = {Shape(), nullptr, 0, binding.container, true};
}

void Instance::set_extents(uint32_t slot_number, uint32_t rank, const int64_t* extents) {
  uint32_t value = BP_NONE;
  Slot& slot = slot_of(slot_number, &value);
  if (!slot.bound) throw sdk::Error(BP_BAD_STATE, name_of(slot_number, value) + " is not bound; call bind first");
  if (rank > BP_MAX_RANK || (rank != 0 && extents == nullptr))
    throw sdk::Error(BP_INVALID_ARGUMENT, "extents of rank " + std::to_string(rank) + " are not valid");
  Shape shape({extents, rank});
  check_extents(slot_number, value, shape, slot.capacity);
  inputs_changed_ = true;
  slot.shape = shape;
}

// Plans for what is bound, and checks that there is somewhere for the outputs to go.
void Instance::prepare(const bp_run_t& run) {
  const bp_graph_t& graph = program().graph();
  for (uint32_t i = 0; i < inputs_.size() && inputs_changed_; ++i) {
    const Slot& slot = inputs_[i];
    uint32_t value = graph.inputs[i];
    if (!slot.bound) throw sdk::Error(BP_BAD_STATE, name_of(i, value) + " is not bound; call bind first");
    if (slot.container == nullptr)
      frame_.set_input(i, Value::of({program().type_of(value).dtype, slot.shape, slot.address}));
  }
  inputs_changed_ = false;
  frame_.prepare();
  for (uint32_t o = 0; o < outputs_.size(); ++o) {
    uint32_t value = graph.outputs[o];
    if (run.output != nullptr && program().type_of(value).kind == BP_KIND_TENSOR) continue;
    if (!outputs_[o].bound)
      throw sdk::Error(BP_BAD_STATE, name_of(BP_SLOT_OUTPUT, value) + " is not bound; call bind first");
    if (outputs_[o].container == nullptr && !frame_.schedule().shaped[value])
      throw sdk::Error(BP_BAD_STATE,
                       name_of(BP_SLOT_OUTPUT, value) + " has data-dependent extents; set bp_run_t.output");
  }
}

// Outputs go to what is bound, or to what the run gives where the extents are told by the run alone or nothing is
// bound.
class Instance::RunOutputs final : public Outputs {
 public:
  RunOutputs(Instance& instance, const bp_run_t& run) : instance_(instance), run_(run), given_(instance.given_) {
    given_.assign(instance.outputs_.size(), std::nullopt);
  }

  Memory memory(uint32_t output, const Tensor& tensor) override {
    given_[output] = place(output, tensor, 0);
    return {*given_[output], nullptr};
  }

  void take(uint32_t output, Value value) override {
    if (value.kind != BP_KIND_TENSOR) {
      write_container(instance_.program().device().host(), value, instance_.outputs_[output].container);
      return;
    }
    const Tensor& tensor = value.tensor;
    bool is_text = tensor.dtype == BP_DTYPE_STRING;
    auto bytes = static_cast<size_t>(bytes_of(tensor));
    if (!given_[output]) given_[output] = place(output, tensor, is_text ? bytes : 0);
    if (bytes != 0 && *given_[output] != tensor.data) std::memmove(*given_[output], tensor.data, bytes);
  }

 private:
  // `bytes`: of texts.
  void* place(uint32_t output, const Tensor& tensor, uint64_t bytes) {
    const Slot& slot = instance_.outputs_[output];
    uint32_t value = instance_.program().graph().outputs[output];
    bool told = instance_.frame_.schedule().shaped[value] || instance_.program().has_numbers(value);
    if (slot.bound && ((told && bytes == 0) || run_.output == nullptr)) {
      instance_.check_extents(BP_SLOT_OUTPUT + output, value, tensor.shape, slot.capacity);
      if (bytes > slot.capacity) too_small(output, tensor.shape, bytes, slot.capacity);
      return slot.address;
    }
    bp_tensor_t given{};
    given.size = sizeof(given);
    bp_status_t status = run_.output(run_.self, BP_SLOT_OUTPUT + output, static_cast<uint32_t>(tensor.shape.rank()),
                                     tensor.shape.begin(), bytes, &given);
    if (status != BP_OK) {
      throw sdk::Error(status, instance_.name_of(BP_SLOT_OUTPUT, value) + ": the run gave no memory for extents " +
                                   text_of(tensor.shape));
    }
    uint64_t needed = bytes != 0 ? bytes : static_cast<uint64_t>(bytes_of(tensor.dtype, tensor.shape.elements()));
    if (needed != 0 && (given.buffer.address == nullptr || given.buffer.bytes < needed))
      too_small(output, tensor.shape, needed, given.buffer.bytes);
    return address(given.buffer);
  }

  [[noreturn]] void too_small(uint32_t output, const Shape& shape, uint64_t needed, uint64_t given) const {
    throw sdk::Error(BP_BUFFER_TOO_SMALL,
                     instance_.name_of(BP_SLOT_OUTPUT, instance_.program().graph().outputs[output]) + ": extents " +
                         text_of(shape) + " need " + std::to_string(needed) + " bytes, the run gave " +
                         std::to_string(given));
  }

  Instance& instance_;
  const bp_run_t& run_;
  std::vector<std::optional<void*>>& given_;
};

void Instance::run(const bp_run_t& run) {
  if (busy_.exchange(true, std::memory_order_acquire))
    throw sdk::Error(BP_BUSY, "the instance runs already; make one instance for each concurrent run");
  struct Release {
    std::atomic<bool>& busy;
    ~Release() { busy.store(false, std::memory_order_release); }
  } release{busy_};
  const bp_host_t* host = program().device().host();
  if (run.stream != nullptr)
    throw sdk::Error(BP_UNSUPPORTED, "the cpu device is synchronous and has no streams; leave bp_run_t.stream null");
  for (uint32_t i = 0; i < run.wait_count + run.signal_count; ++i) {
    const bp_point_t& point = i < run.wait_count ? run.waits[i] : run.signals[i - run.wait_count];
    if (bp_point_host(&point) == nullptr)
      throw sdk::Error(BP_UNSUPPORTED, "the cpu device waits for and signals host points only");
  }
  UseThreads use(program().device().threads());
  prepare(run);

  // Whatever is thrown from here on leaves `done` and the signals to the caller, as the ABI says.
  for (uint32_t i = 0; i < run.wait_count; ++i) {
    bp_status_t status = host->semaphore_wait(host, bp_point_host(&run.waits[i]), run.waits[i].value,
                                              run.deadline == 0 ? BP_FOREVER : run.deadline, run.cancel, nullptr);
    if (status != BP_OK) throw sdk::Error(status, "a semaphore that the run waited for did not reach its value");
  }
  execute(run);
  if (run.done != nullptr) run.done(run.self, BP_OK, nullptr);
  for (uint32_t i = 0; i < run.signal_count; ++i)
    host->semaphore_signal(host, bp_point_host(&run.signals[i]), run.signals[i].value, nullptr);
}

// Texts and containers are looked at when the run may: what it waits for could still be writing them before.
void Instance::read_inputs() {
  const bp_graph_t& graph = program().graph();
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    const Slot& slot = inputs_[i];
    const bp_type_t& type = program().type_of(graph.inputs[i]);
    if (slot.container != nullptr) {
      frame_.set_input(i, read_container(program().device().host(), graph, type, slot.container));
    } else if (type.dtype == BP_DTYPE_STRING) {
      std::string wrong = check_texts({type.dtype, slot.shape, slot.address}, slot.capacity);
      if (!wrong.empty()) throw sdk::Error(BP_INVALID_ARGUMENT, name_of(i, graph.inputs[i]) + ": " + wrong);
    }
  }
}

void Instance::execute(const bp_run_t& run) {
  read_inputs();
  RunOutputs outputs(*this, run);
  run_inside(program().device().threads(), [&] {
    frame_.run(outputs, {program().device().host(), run.cancel, run.deadline, run.trace_id});
  });
}

}  // namespace backplane::cpu
