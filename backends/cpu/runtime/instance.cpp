// SPDX-License-Identifier: Apache-2.0
#include "runtime/instance.h"

#include <algorithm>
#include <cstring>

#include "runtime/container.h"
#include "runtime/device.h"

namespace backplane::cpu {

namespace {

// Whether the tensor is stored as a dense row-major one. The stride of a dimension with fewer than 2 elements is
// ignored.
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

std::span<const int64_t> extents_of(const bp_tensor_t& tensor) {
  return {tensor.extents, tensor.rank};
}

}  // namespace

Instance::Instance(const Island& island) : sdk::Instance(island), executor_(island.program()) {
  const bp_graph_t& graph = program().graph();
  for (uint32_t i = 0; i < graph.input_count; ++i) {
    const bp_type_t& type = program().type_of(graph.inputs[i]);
    reads_inputs_ = reads_inputs_ || type.kind != BP_KIND_TENSOR || type.dtype == BP_DTYPE_STRING;
  }
}

bool Instance::reaches(const bp_tensor_t& tensor) const {
  const int64_t width = tensor.dtype == BP_DTYPE_STRING ? int64_t{sizeof(int64_t)} : bytes_of(tensor.dtype, 1);
  const auto align = static_cast<uintptr_t>(std::clamp<int64_t>(width, 1, 8));
  if (tensor.buffer.memory == nullptr && reinterpret_cast<uintptr_t>(address(tensor)) % align != 0) {
    throw sdk::Error(BP_UNSUPPORTED, "the address of a tensor of " + std::string(view::dtype_name(tensor.dtype)) +
                                         " is not a multiple of " + std::to_string(align) + ": bind aligned memory");
  }
  return tensor.buffer.memory == nullptr && dense(tensor);
}

void Instance::bind(const bp_binding_t& binding) {
  sdk::Instance::bind(binding);
  inputs_changed_ = true;
}

void Instance::extents(const sdk::Slots& slots) {
  sdk::Instance::extents(slots);
  inputs_changed_ = true;
}

// A tensor output may stay unbound if bp_run_t.output is set: the run then requests its memory there.
bool Instance::may_request_memory(uint32_t output, const bp_run_t& run) const {
  return run.output != nullptr && program().type_of(program().graph().outputs[output]).kind == BP_KIND_TENSOR;
}

void Instance::plan(const bp_run_t& run) {
  const bp_graph_t& graph = program().graph();
  for (uint32_t i = 0; i < graph.input_count && inputs_changed_; ++i) {
    if (input_container(i) != nullptr) continue;
    const bp_tensor_t& tensor = input(i);
    executor_.set_input(i, Value::of({tensor.dtype, Shape(extents_of(tensor)), address(tensor)}));
  }
  inputs_changed_ = false;
  if (!executor_.is_prepared()) {
    const RunContext context{&host(), run.cancel, run.deadline, run.trace_id, {}};
    const RunWatch watch(context);
    const UseWatch use(context.watched() ? &watch : nullptr);
    executor_.prepare();
  }
  for (uint32_t o = 0; o < graph.output_count && run.output == nullptr; ++o) {
    if (output_container(o) == nullptr && !executor_.schedule().shaped[graph.outputs[o]])
      throw sdk::Error(BP_BAD_STATE, where(BP_SLOT_OUTPUT + o) +
                                         " has extents that depend on the values of inputs; set bp_run_t.output");
  }
}

// Writes outputs to the memory bound to them, or to memory from bp_run_t.output if none is bound. If bp_run_t.output is
// set, it provides the memory of outputs whose size is known only during the run even if memory is bound to them.
class Instance::RunOutputs final : public Outputs {
 public:
  RunOutputs(Instance& instance, const bp_run_t& run) : instance_(instance), run_(run), given_(instance.given_) {
    given_.assign(instance.program().graph().output_count, std::nullopt);
  }

  Memory memory(uint32_t output, const Tensor& tensor) override {
    given_[output] = place(output, tensor, 0);
    return {*given_[output], nullptr};
  }

  void take(uint32_t output, Value value) override {
    if (value.kind != BP_KIND_TENSOR) {
      write_container(*instance_.host().containers(), value, instance_.output_container(output));
      return;
    }
    const Tensor& tensor = value.tensor;
    bool is_text = tensor.dtype == BP_DTYPE_STRING;
    auto bytes = static_cast<size_t>(bytes_of(tensor));
    if (!given_[output]) given_[output] = place(output, tensor, is_text ? bytes : 0);
    if (bytes != 0 && *given_[output] != tensor.data) std::memmove(*given_[output], tensor.data, bytes);
  }

 private:
  // `bytes`: the size of a string tensor, 0 for other tensors.
  void* place(uint32_t output, const Tensor& tensor, uint64_t bytes) {
    uint32_t value = instance_.program().graph().outputs[output];
    bool known_before = instance_.executor_.schedule().shaped[value] || instance_.program().has_numbers(value);
    if (instance_.is_output_bound(output) && ((known_before && bytes == 0) || run_.output == nullptr)) {
      const bp_tensor_t& bound = instance_.output(output);
      if (!std::ranges::equal(tensor.shape, extents_of(bound))) {
        instance_.check(BP_SLOT_OUTPUT + output, tensor.dtype, static_cast<uint32_t>(tensor.shape.rank()),
                        tensor.shape.begin(), capacity(bound));
      }
      if (bytes > capacity(bound)) too_small(output, tensor.shape, bytes, capacity(bound));
      return address(bound);
    }
    bp_tensor_t given{};
    given.size = sizeof(given);
    bp_status_t status = run_.output(run_.self, BP_SLOT_OUTPUT + output, static_cast<uint32_t>(tensor.shape.rank()),
                                     tensor.shape.begin(), bytes, &given);
    if (status != BP_OK) {
      throw sdk::Error(status, instance_.where(BP_SLOT_OUTPUT + output) + ": the host provided no memory for extents " +
                                   to_string(tensor.shape));
    }
    uint64_t needed = bytes != 0 ? bytes : static_cast<uint64_t>(bytes_of(tensor.dtype, tensor.shape.elements()));
    if (needed > capacity(given)) too_small(output, tensor.shape, needed, capacity(given));
    return address(given);
  }

  [[noreturn]] void too_small(uint32_t output, const Shape& shape, uint64_t needed, uint64_t given) const {
    throw sdk::Error(BP_BUFFER_TOO_SMALL, instance_.where(BP_SLOT_OUTPUT + output) + ": extents " + to_string(shape) +
                                              " need " + std::to_string(needed) +
                                              " bytes; the number of bytes provided is " + std::to_string(given));
  }

  Instance& instance_;
  const bp_run_t& run_;
  std::vector<std::optional<void*>>& given_;
};

void Instance::run(const bp_run_t& run) {
  if (reads_inputs_) read_inputs();
  RunOutputs outputs(*this, run);
  const RunContext context{&host(), run.cancel, run.deadline, run.trace_id, program().plan_context()};
  run_inside(program().device().threads(), [&] {
    if (!context.watched()) return executor_.run(outputs, context);
    const RunWatch watch(context);
    const UseWatch use(&watch);
    executor_.run(outputs, context);
  });
}

// Called only after the run's wait points are reached: until then, other work may still write the inputs.
void Instance::read_inputs() {
  const bp_graph_t& graph = program().graph();
  for (uint32_t i = 0; i < graph.input_count; ++i) {
    const bp_tensor_t& tensor = input(i);
    if (input_container(i) != nullptr) {
      executor_.set_input(
          i, read_container(*host().containers(), graph, program().type_of(graph.inputs[i]), input_container(i)));
    } else if (tensor.dtype == BP_DTYPE_STRING) {
      std::string wrong = check_texts({tensor.dtype, Shape(extents_of(tensor)), address(tensor)}, tensor.buffer.bytes);
      if (!wrong.empty()) throw sdk::Error(BP_INVALID_ARGUMENT, where(i) + ": " + wrong);
    }
  }
}

}  // namespace backplane::cpu
