// SPDX-License-Identifier: Apache-2.0
#include "engine/planner.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstring>
#include <stdexcept>

#include "backplane/sdk/blob.hpp"
#include "backplane/sdk/weights.hpp"
#include "engine/fused_kernel.h"

namespace backplane::gpu {

// ---- LaunchBuilder -------------------------------------------------------------------------------------------------

Launch& LaunchBuilder::launch() const {
  return planner_.plan_.launches[launch_];
}

LaunchBuilder& LaunchBuilder::in(const Tensor& tensor) {
  planner_.open_.erase(tensor.id);
  const uint32_t storage = planner_.storage_of_[tensor.id];
  launch().arguments.push_back({.storage = storage});
  launch().reads.push_back(storage);
  return *this;
}

LaunchBuilder& LaunchBuilder::out(const Tensor& tensor) {
  const uint32_t storage = planner_.storage_of_[tensor.id];
  launch().arguments.push_back({.storage = storage});
  launch().writes.push_back(storage);
  return *this;
}

LaunchBuilder& LaunchBuilder::none() {
  launch().arguments.emplace_back();
  return *this;
}

LaunchBuilder& LaunchBuilder::bytes(const void* value, uint32_t size) {
  Argument argument{.bytes = size};
  std::memcpy(argument.value.data(), value, size);
  launch().arguments.push_back(argument);
  return *this;
}

LaunchBuilder& LaunchBuilder::arg(int64_t value) {
  if (value < INT_MIN || value > INT_MAX)
    throw sdk::Error(BP_UNSUPPORTED,
                     "the number " + std::to_string(value) + " does not fit into the 32-bit integers that kernels use");
  return arg(static_cast<int32_t>(value));
}

LaunchBuilder& LaunchBuilder::fault() {
  if (!planner_.fault_) {
    planner_.fault_ = planner_.add_tensor(BP_DTYPE_INT32, {1}, {.place = Storage::Place::kFault});
    planner_.plan_.may_fault = true;
  }
  return out(planner_.fault_).arg(int64_t{planner_.node_} + 1);
}

void LaunchBuilder::range(int64_t x, int64_t y, int64_t z, size_t widest) {
  range(ranges_of_items(planner_.context_.caps, x, y, z, widest));
}

void LaunchBuilder::groups(std::array<int64_t, 3> count, std::array<size_t, 3> local) {
  std::array<size_t, 3> global{};
  for (size_t i = 0; i < 3; ++i) global[i] = static_cast<size_t>(count[i]) * local[i];
  range({global, local});
}

void LaunchBuilder::range(const Ranges& ranges) {
  // A launch with an empty range has nothing to compute and is dropped.
  if (std::ranges::count(ranges.global, 0u) != 0) {
    planner_.plan_.launches.erase(planner_.plan_.launches.begin() + static_cast<ptrdiff_t>(launch_));
    return;
  }
  launch().global = ranges.global;
  launch().local = ranges.local;
  const size_t most = planner_.context_.caps.max_groups_across;
  for (const size_t d : {1u, 2u}) {
    if (const size_t count = ranges.global[d] / ranges.local[d]; count > most)
      throw sdk::Error(BP_UNSUPPORTED, "its kernel has " + std::to_string(count) + " work groups in dimension " +
                                           std::to_string(d) + "; the device runs at most " + std::to_string(most));
  }
}

void LaunchBuilder::allow_epilogue(const Tensor& y, int64_t rows, int64_t columns) {
  const sdk::Node node = planner_.graph_.node(planner_.node_);
  for (uint32_t i = 0; i < node.output_count(); ++i) {
    const sdk::Value value = node.output(i);
    if (!value || planner_.states_[value.index()].tensor.id != y.id) continue;
    if (value.raw().use_count == 1 && (value.raw().flags & BP_VALUE_OUTPUT) == 0)
      planner_.open_[y.id] = {launch_, rows, columns};
  }
}

// ---- Emit ----------------------------------------------------------------------------------------------------------

const DeviceCaps& Emit::caps() const {
  return planner_.context_.caps;
}

Tensor Emit::input(uint32_t slot) {
  const sdk::Value value = node.input(slot);
  return value ? planner_.tensor(value) : Tensor{};
}

Shape Emit::shape(uint32_t slot) const {
  return planner_.state(node.input(slot)).shape();
}

Tensor Emit::transposed_input(uint32_t slot) const {
  const Planner::State& state = planner_.state(node.input(slot));
  if (!state.pending || state.pending->steps.size() != 1 || state.pending->leaves.size() != 1) return {};
  const Expression::Step& step = state.pending->steps.front();
  const View& view = state.pending->leaves.front();
  Shape stored = state.pending->shape;
  if (stored.size() < 2 || step.code != kCopyFormula || step.dtype != view.tensor.dtype || view.offset != 0) return {};
  std::swap(stored[stored.size() - 1], stored[stored.size() - 2]);
  std::vector<int64_t> strides = dense_strides(stored);
  std::swap(strides[stored.size() - 1], strides[stored.size() - 2]);
  if (view.strides != strides || view.tensor.count() != elements(stored)) return {};
  return {view.tensor.id, view.tensor.dtype, state.pending->shape};
}

bool Emit::constant(uint32_t slot) const {
  return has_input(slot) && node.input(slot).weight() != nullptr;
}

bool Emit::constant(const Tensor& tensor) const {
  return planner_.is_constant(planner_.storage_of_[tensor.id]);
}

std::vector<int64_t> Emit::ints(uint32_t slot) const {
  if (!has_input(slot)) return {};
  const std::span<const std::byte> bytes = planner_.host_bytes(node.input(slot), slot);
  return sdk::host_ints(node.input(slot).dtype(), bytes.data(), bytes.size());
}

std::vector<double> Emit::numbers(uint32_t slot) const {
  if (!has_input(slot)) return {};
  const std::span<const std::byte> bytes = planner_.host_bytes(node.input(slot), slot);
  return sdk::host_numbers(node.input(slot).dtype(), bytes.data(), bytes.size());
}

std::optional<float> Emit::scalar(uint32_t slot) const {
  const auto numbers = sdk::weight_elements<float>(node.input(slot), BP_DTYPE_FLOAT);
  return numbers && numbers->size() == 1 ? std::optional(numbers->front()) : std::nullopt;
}

Tensor Emit::output(uint32_t slot, Shape shape) {
  return planner_.add_result(node.output(slot), std::move(shape));
}

void Emit::alias(uint32_t slot, const Tensor& source, Shape shape) {
  const sdk::Value value = node.output(slot);
  if (!value) return;
  planner_.check_extents(value, shape);
  planner_.states_[value.index()].tensor = view(source, std::move(shape));
}

Tensor Emit::view(const Tensor& source, Shape shape) {
  planner_.open_.erase(source.id);  // no epilogue, as the view may have other readers
  if (elements(shape) != source.count()) {
    throw sdk::Error(BP_TYPE_MISMATCH,
                     to_string(source.shape) + " does not have as many elements as " + to_string(shape));
  }
  Tensor tensor = source;
  tensor.shape = std::move(shape);
  return tensor;
}

Tensor Emit::scratch(bp_dtype_t dtype, Shape shape) {
  return planner_.add_tensor(dtype, std::move(shape), {});
}

Tensor Emit::table(bp_dtype_t dtype, Shape shape, std::span<const std::byte> bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string mirrored(text.rbegin(), text.rend());
  return planner_.add_tensor(
      dtype, std::move(shape),
      {.place = Storage::Place::kConstant,
       .data = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end()),
       .key = "table " + std::to_string(sdk::fingerprint(text)) + " " + std::to_string(sdk::fingerprint(mirrored))});
}

void Emit::elementwise(std::string code) {
  std::vector<uint32_t> slots(node.input_count());
  for (uint32_t i = 0; i < slots.size(); ++i) slots[i] = i;
  elementwise(std::move(code), node.input(0).dtype(), slots);
}

void Emit::elementwise(std::string code, bp_dtype_t dtype, const std::vector<uint32_t>& slots) {
  Shape shape;
  for (const uint32_t slot : slots) shape = broadcast(shape, this->shape(slot));
  formula(std::move(code), dtype, shape, {slots.begin(), slots.end()});
}

void Emit::formula(std::string code, bp_dtype_t dtype, const Shape& shape, const std::vector<Operand>& operands) {
  Expression sum;
  sum.shape = shape;
  std::vector<int> places;
  size_t later = operands.size();  // the operands after the present one, each of which may add a leaf
  for (const Operand& operand : operands) {
    --later;
    if (operand.slot == BP_NONE) {
      places.push_back(sum.leaf(operand.view));
      continue;
    }
    const Planner::State& state = planner_.state(node.input(operand.slot));
    // A pending operand (one that is not computed yet) is fused if it has the same extents. If it were broadcast, each
    // of its elements would be computed many times.
    const bool joins = state.pending && state.pending->shape == shape &&
                       sum.leaves.size() + state.pending->leaves.size() + later <= kMaxLeaves &&
                       sum.steps.size() + state.pending->steps.size() < kMaxSteps;
    places.push_back(joins ? sum.append(*state.pending) : sum.leaf(broadcast_view(input(operand.slot), shape)));
  }
  sum.steps.push_back({dtype, std::move(code), std::move(places)});
  planner_.set_pending(node.output(0), std::move(sum));
}

Tensor Emit::computed(std::string code, bp_dtype_t dtype, const Shape& shape, const std::vector<View>& operands) {
  const Tensor y = scratch(dtype, shape);
  compute(std::move(code), shape, operands, {y, dense_strides(shape), 0});
  return y;
}

void Emit::compute(std::string code, const Shape& shape, const std::vector<View>& operands, const View& target) {
  Expression sum;
  sum.shape = shape;
  std::vector<int> places;
  for (const View& view : operands) places.push_back(sum.leaf(view));
  sum.steps.push_back({target.tensor.dtype, std::move(code), std::move(places)});
  emit_expression(*this, sum, target);
}

namespace {

// An expression that reads a view unchanged.
Expression reading(Shape shape, const View& source) {
  Expression all;
  all.shape = std::move(shape);
  const int leaf = all.leaf(source);
  all.steps.push_back({source.tensor.dtype, std::string(kCopyFormula), {leaf}});
  return all;
}

}  // namespace

void Emit::moved(uint32_t slot, Shape shape, const View& source) {
  planner_.set_pending(node.output(slot), reading(std::move(shape), source));
}

void Emit::move(const Shape& shape, const View& source, const View& target) {
  emit_expression(*this, reading(shape, source), target);
}

Tensor Emit::updated_input() {
  const Tensor x = input(0), y = output(0, x.shape);
  const size_t first = planner_.plan_.launches.size();
  move(x.shape, {x, dense_strides(x.shape), 0}, {y, dense_strides(x.shape), 0});
  for (size_t l = first; l < planner_.plan_.launches.size(); ++l) planner_.plan_.launches[l].is_copy = true;
  return y;
}

LaunchBuilder Emit::launch(std::string_view file, std::string entry, std::string options, std::string code) {
  return {planner_, planner_.begin_launch({file, std::move(entry), std::move(options), std::move(code)})};
}

LaunchBuilder Emit::launch(const ProductProblem& problem) {
  const size_t index = planner_.begin_launch({});
  planner_.plan_.launches[index].call = {problem, {}};
  return {planner_, index};
}

LaunchBuilder Emit::launch(const ConvolutionProblem& problem) {
  const size_t index = planner_.begin_launch({});
  planner_.plan_.launches[index].call = {problem, {}};
  return {planner_, index};
}

const Libraries& Emit::libraries() const {
  return planner_.context_.libraries;
}

uint32_t Emit::compute_types() const {
  return planner_.context_.compute_types;
}

void Emit::log(const std::string& line) const {
  planner_.context_.host.log(BP_LOG_DEBUG,
                             std::string(node.op_type()) + " '" + std::string(node.name()) + "': " + line);
}

// ---- Planner -------------------------------------------------------------------------------------------------------

Planner::Planner(const PlanContext& context, const sdk::Graph& graph, const std::vector<Shape>& inputs, ReadInput read)
    : context_(context), graph_(graph), read_(std::move(read)), states_(graph.raw()->value_count) {
  add_inputs(inputs);
}

Plan Planner::make() {
  for (node_ = 0; node_ < graph_.node_count(); ++node_) add_node();
  finish_outputs();
  mark_constants();
  return std::move(plan_);
}

std::vector<Shape> Planner::output_shapes() {
  for (node_ = 0; node_ < graph_.node_count(); ++node_) {
    try {
      add_node();
    } catch (const InputsUnknown&) {
      const sdk::Node node = graph_.node(node_);
      for (uint32_t i = 0; i < node.output_count(); ++i)
        if (const sdk::Value value = node.output(i)) add_result(value, value.extents());
    }
  }
  finish_outputs();
  return std::move(plan_.outputs);
}

void Planner::add_node() {
  const sdk::Node node = graph_.node(node_);
  try {
    emit(node);
  } catch (sdk::Error& error) {
    error.text = std::string(node.op_type()) + " '" + std::string(node.name()) + "': " + error.text;
    error.node = node.id();
    throw;
  } catch (const std::out_of_range&) {
    throw sdk::Error(BP_INVALID_MODEL,
                     std::string(node.op_type()) + " '" + std::string(node.name()) +
                         "': an attribute or a constant input has fewer elements than the others require",
                     node.id());
  }
}

void Planner::emit(const sdk::Node& node) {
  const Row& row = context_.table.require(node, {context_.caps, context_.compute_types});
  if (compute_on_host(node, row.host)) return;
  if (row.emit == nullptr)
    throw sdk::Error(BP_UNSUPPORTED,
                     "only the host computes this operator, and it cannot for these inputs and extents");
  Emit e(*this, node);
  row.emit(e, row.with);
  for (uint32_t i = 0; i < node.output_count(); ++i) {
    if (node.output(i) && !states_[node.output(i).index()].known())
      throw sdk::Error(BP_INTERNAL, "its kernel does not write output " + std::to_string(i));
  }
}

bool Planner::compute_on_host(const sdk::Node& node, const HostRule& rule) {
  if (rule.compute == nullptr || node.output_count() != 1 || !is_host_dtype(node.output(0).dtype())) return false;
  std::vector<HostValue> constants(node.input_count());
  HostCall call{node, {}, [&](uint32_t slot) { return state(node.input(slot)).shape(); }};
  for (uint32_t slot = 0; slot < node.input_count() && !rule.from_extents; ++slot) {
    const sdk::Value input = node.input(slot);
    call.inputs.push_back(nullptr);
    if (!input) continue;
    if (const std::optional<HostValue>& host = states_[input.index()].host) {
      call.inputs.back() = &*host;
      continue;
    }
    if (input.weight() == nullptr || !is_host_dtype(input.dtype()) || elements(input.extents()) > kMostOnHost)
      return false;
    constants[slot] = host_value_of(input.dtype(), input.extents(), sdk::weight_data(input), input.weight()->bytes);
    call.inputs.back() = &constants[slot];
  }
  std::optional<HostValue> result = rule.compute(call);
  if (!result) return false;
  check_extents(node.output(0), result->shape);
  State& state = states_[node.output(0).index()];
  state.bytes = host_bytes_of(*result, node.output(0).dtype());
  state.host = std::move(result);
  return true;
}

void Planner::add_inputs(const std::vector<Shape>& inputs) {
  for (uint32_t i = 0; i < graph_.input_count(); ++i) {
    const sdk::Value value = graph_.input(i);
    states_[value.index()].tensor = add_tensor(value.dtype(), inputs[i], {.place = Storage::Place::kInput, .slot = i});
  }
}

std::span<const std::byte> Planner::host_bytes(const sdk::Value& value, uint32_t operand) {
  if (const bp_weight_t* weight = value.weight())
    return {static_cast<const std::byte*>(sdk::weight_data(value)), weight->bytes};
  if (states_[value.index()].host) return states_[value.index()].bytes;
  for (uint32_t slot = 0; slot < graph_.input_count(); ++slot) {
    if (graph_.input(slot).index() != value.index()) continue;
    const auto known = std::ranges::find(plan_.host_inputs, slot, &HostInput::slot);
    if (known != plan_.host_inputs.end()) return known->bytes;
    if (!read_) throw InputsUnknown{};
    plan_.host_inputs.push_back({slot, read_(slot)});
    return plan_.host_inputs.back().bytes;
  }
  throw sdk::Error(BP_UNSUPPORTED, "input " + std::to_string(operand) + " '" + std::string(value.name()) +
                                       "' cannot be computed on the host for these extents");
}

Planner::State& Planner::state(const sdk::Value& value) {
  State& state = states_[value.index()];
  if (!state.known() && value.weight() != nullptr) {
    uint64_t hash[2] = {};
    const bp_graph_t* graph = value.graph();
    sdk::Detail detail;
    const bp_status_t status = graph->api->weight_hash(graph, value.raw().weight, hash, detail.get());
    try {
      detail.check(status, "its bytes cannot be read");
    } catch (sdk::Error& error) {
      error.text = "weight '" + std::string(value.name()) + "': " + error.text;
      throw;
    }
    state.tensor = add_tensor(value.dtype(), value.extents(),
                              {.place = Storage::Place::kConstant,
                               .weight = value.raw().weight,
                               .key = "weight " + std::to_string(hash[0]) + " " + std::to_string(hash[1])});
  }
  if (!state.known())
    throw sdk::Error(BP_INVALID_MODEL, "value '" + std::string(value.name()) + "' is not computed by any node");
  return state;
}

Tensor Planner::tensor(const sdk::Value& value) {
  State& found = state(value);
  if (found.pending) materialize(value);
  if (!found.tensor)
    found.tensor = Emit(*this, graph_.node(node_)).table(value.dtype(), found.host->shape, found.bytes);
  return found.tensor;
}

void Planner::set_pending(const sdk::Value& value, Expression expression) {
  if (!value) return;  // an omitted output
  check_extents(value, expression.shape);
  states_[value.index()].pending = std::move(expression);
  // Results with several readers, and outputs of the island, are computed once and stored.
  if (value.raw().use_count != 1 || (value.raw().flags & BP_VALUE_OUTPUT) != 0) materialize(value);
}

void Planner::materialize(const sdk::Value& value) {
  const Expression expression = std::move(*state(value).pending);
  state(value).pending.reset();
  const Tensor y = add_result(value, expression.shape);
  if (fuse_epilogue(expression, y)) return;
  Emit e(*this, graph_.node(node_));
  emit_expression(e, expression, {y, dense_strides(y.shape), 0});
}

Tensor Planner::add_tensor(bp_dtype_t dtype, Shape shape, Storage storage) {
  const int64_t count = elements(shape);
  if (count > INT_MAX) {
    throw sdk::Error(BP_UNSUPPORTED,
                     "a tensor " + to_string(shape) + " has more elements than 32-bit indices can address");
  }
  storage.bytes = static_cast<uint64_t>(count) * bytes_of(dtype);
  storage_of_.push_back(static_cast<uint32_t>(plan_.storages.size()));
  plan_.storages.push_back(std::move(storage));
  return {static_cast<uint32_t>(storage_of_.size() - 1), dtype, std::move(shape)};
}

Tensor Planner::add_result(const sdk::Value& value, Shape shape) {
  if (!value) return add_tensor(graph_.node(node_).input(0).dtype(), std::move(shape), {});  // an omitted output
  check_extents(value, shape);
  Storage storage;
  if ((value.raw().flags & BP_VALUE_OUTPUT) != 0) {
    for (uint32_t i = 0; i < graph_.output_count(); ++i) {
      if (graph_.output(i).index() == value.index()) storage = {.place = Storage::Place::kOutput, .slot = i};
    }
  }
  return states_[value.index()].tensor = add_tensor(value.dtype(), std::move(shape), std::move(storage));
}

// Throws if computed extents are negative or differ from those that the model declares.
void Planner::check_extents(const sdk::Value& value, const Shape& shape) const {
  if (std::ranges::any_of(shape, [](int64_t extent) { return extent < 0; }))
    throw sdk::Error(BP_INVALID_ARGUMENT, "its output '" + std::string(value.name()) +
                                              "' would have a negative extent: " + to_string(shape));
  if (value.rank() < 0) return;
  bool same = static_cast<size_t>(value.rank()) == shape.size();
  for (uint32_t i = 0; same && i < shape.size(); ++i) same = value.extent(i) < 0 || value.extent(i) == shape[i];
  if (!same) {
    throw sdk::Error(BP_INVALID_MODEL, "its output '" + std::string(value.name()) + "' is declared with extents " +
                                           to_string(value.extents()) + " but would have " + to_string(shape));
  }
}

size_t Planner::begin_launch(KernelSource source) {
  plan_.launches.push_back({.source = std::move(source), .node = node_});
  return plan_.launches.size() - 1;
}

// Each output of the island has its own memory: an output in the memory of an input, a constant or another value is
// copied.
void Planner::finish_outputs() {
  plan_.outputs.resize(graph_.output_count());
  for (uint32_t i = 0; i < graph_.output_count(); ++i) {
    const sdk::Value value = graph_.output(i);
    const Tensor source = tensor(value);
    plan_.outputs[i] = source.shape;
    const Storage& storage = plan_.storages[storage_of_[source.id]];
    if (storage.place == Storage::Place::kOutput && storage.slot == i) continue;
    const Tensor y = add_tensor(value.dtype(), source.shape, {.place = Storage::Place::kOutput, .slot = i});
    LaunchBuilder(*this, begin_launch({"copy", "copy", "-DTYPE=" + std::string(word_name(value.dtype())), {}}))
        .in(source)
        .out(y)
        .arg(source.count())
        .range(source.count());
  }
}

bool Planner::is_constant(uint32_t storage) const {
  if (plan_.storages[storage].place != Storage::Place::kArena)
    return plan_.storages[storage].place == Storage::Place::kConstant;
  const Launch* writer = nullptr;
  for (const Launch& launch : plan_.launches) {
    if (std::ranges::count(launch.writes, storage) == 0) continue;
    if (writer != nullptr) return false;  // `mark_constants` marks no storage with several writers
    writer = &launch;
  }
  return writer != nullptr && writer->writes.size() == 1 &&
         std::ranges::all_of(writer->reads, [&](uint32_t read) { return is_constant(read); });
}

// Marks launches that read only constants, and their results, as constant.
void Planner::mark_constants() {
  std::vector<uint32_t> writers(plan_.storages.size());
  for (const Launch& launch : plan_.launches) {
    for (const uint32_t storage : launch.writes) ++writers[storage];
  }
  for (Launch& launch : plan_.launches) {
    // A launch with several results stays in the plan, because a launch that runs once computes a single constant.
    launch.once = launch.writes.size() == 1 &&
                  std::ranges::all_of(
                      launch.reads, [&](uint32_t s) { return plan_.storages[s].place == Storage::Place::kConstant; }) &&
                  std::ranges::all_of(launch.writes, [&](uint32_t s) {
                    return plan_.storages[s].place == Storage::Place::kArena && writers[s] == 1;
                  });
    if (!launch.once) continue;
    const std::string key = key_of(launch);
    for (size_t i = 0; i < launch.writes.size(); ++i) {
      Storage& storage = plan_.storages[launch.writes[i]];
      storage.place = Storage::Place::kConstant;
      storage.key = key + " " + std::to_string(i);
    }
  }
}

std::string Planner::key_of(const Launch& launch) const {
  std::string all = launch.source.text() + "\n" + launch.source.entry + "\n" + launch.source.options;
  for (const Argument& argument : launch.arguments) {
    if (argument.storage == BP_NONE)
      all.append(reinterpret_cast<const char*>(argument.value.data()), argument.bytes);
    else
      all += "\n" + plan_.storages[argument.storage].key;
  }
  const std::string mirrored(all.rbegin(), all.rend());
  return "made " + std::to_string(sdk::fingerprint(all)) + " " + std::to_string(sdk::fingerprint(mirrored));
}

}  // namespace backplane::gpu
