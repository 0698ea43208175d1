// SPDX-License-Identifier: Apache-2.0
#include "onnxifi/graph.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace backplane::onnxifi {
namespace {

// Puts descriptors in the order of the model's values. Matches them by name or, if no descriptor has a name, by
// position.
std::vector<Described> ordered(const std::vector<view::Value>& values, const std::vector<Described>& given) {
  const bool by_position = std::ranges::all_of(given, [](const Described& one) { return one.name.empty(); });
  std::vector<const Described*> found(values.size());
  for (size_t i = 0; i < given.size(); ++i) {
    const auto at = by_position ? (i < values.size() ? values.begin() + static_cast<ptrdiff_t>(i) : values.end())
                                : std::ranges::find(values, given[i].name, &view::Value::name);
    if (at == values.end()) throw Failure{ONNXIFI_STATUS_INVALID_NAME};
    const Described*& slot = found[static_cast<size_t>(at - values.begin())];
    if (slot != nullptr) throw Failure{ONNXIFI_STATUS_INVALID_NAME};
    slot = &given[i];
  }
  std::vector<Described> result;
  for (const Described* one : found) {
    if (one == nullptr) throw Failure{ONNXIFI_STATUS_UNIDENTIFIED_NAME};
    result.push_back(*one);
    result.back().name = {};  // dropped, because the caller may free the names
  }
  return result;
}

void check(const view::Value& value, const Described& described) {
  check_shape(value, described);
  check_dtype(value, described);
}

// Checks that each named dimension of the inputs has the same extent wherever it occurs. Named dimensions that only
// outputs have are not checked, because they are known only after a run.
void check_symbols(const std::vector<view::Value>& inputs, const std::vector<Described>& in,
                   const std::vector<view::Value>& outputs, const std::vector<Described>& out) {
  std::map<std::string_view, int64_t> extents;
  const auto check = [&](const view::Value& value, const Described& described, bool is_input) {
    for (uint32_t i = 0; static_cast<int32_t>(i) < value.rank(); ++i) {
      const std::string_view symbol = value.symbol(i);
      if (symbol.empty()) continue;
      if (is_input) extents.emplace(symbol, described.extents[i]);
      const auto at = extents.find(symbol);
      if (at != extents.end() && at->second != described.extents[i]) throw Failure{ONNXIFI_STATUS_MISMATCHING_SHAPE};
    }
  };
  for (size_t v = 0; v < inputs.size(); ++v) check(inputs[v], in[v], true);
  for (size_t v = 0; v < outputs.size(); ++v) check(outputs[v], out[v], false);
}

}  // namespace

Graph::Graph(const Backend& backend, const Model& model)
    : environment_(backend.environment()), device_(backend.device()), session_(backend.compile(model)) {}

Graph::~Graph() {
  wait_for_runs();
}

// Waits for a count of runs and not for their output events, which the program may have signalled itself. No flight is
// destroyed before all runs have ended, because a run may wait for the one before it.
void Graph::wait_for_runs() {
  for (size_t left; (left = pending_) != 0;) pending_.wait(left);
}

// ---- memory --------------------------------------------------------------------------------------------------------

bp_tensor_t Graph::tensor(Bindings& bindings, const Described& described) const {
  bp_tensor_t tensor{};
  tensor.size = sizeof tensor;
  tensor.dtype = described.dtype;
  tensor.rank = static_cast<uint32_t>(described.extents.size());
  tensor.layout = BP_LAYOUT_DENSE;
  tensor.extents = described.extents.data();
  const uint64_t bytes = described.bytes();
  if (described.memory_type == ONNXIFI_MEMORY_TYPE_CPU) {
    const uint64_t element = view::dense_bytes(described.dtype, nullptr, 0).value_or(1);
    if (described.buffer % std::clamp<uint64_t>(element, 1, alignof(double)) != 0)
      throw Failure{ONNXIFI_STATUS_INVALID_MEMORY_LOCATION};
    tensor.buffer.address = reinterpret_cast<void*>(described.buffer);
    tensor.buffer.bytes = bytes;
    return tensor;
  }
  bp_external_t external{};
  external.size = sizeof external;
  external.handle = described.buffer;
  external.bytes = bytes;
  switch (described.memory_type) {
    case ONNXIFI_MEMORY_TYPE_CUDA_BUFFER:
      external.kind = BP_EXTERNAL_CUDA_POINTER;
      break;
    case ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER:
      external.kind = BP_EXTERNAL_CL_MEM;
      break;
    default:
      throw Failure{ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE};
  }
  for (uint32_t space = 0; space < device_.info.space_count; ++space) {
    bp_space_t what{};
    what.size = sizeof what;
    client::detail::call(api().memory_space, environment_.get(), device_.info.id, space, &what);
    if (std::find(what.imports, what.imports + what.import_count, external.kind) == what.imports + what.import_count)
      continue;
    try {
      bindings.imported.push_back(environment_.import_memory(device_.info.id, external, space));
    } catch (const Error&) {
      throw Failure{ONNXIFI_STATUS_INVALID_MEMORY_LOCATION};
    }
    tensor.buffer = bindings.imported.back().abi();
    return tensor;
  }
  throw Failure{ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE};
}

bp_tensor_t Graph::output(Bindings& bindings, const Described& described) const {
  bp_tensor_t result = tensor(bindings, described);
  if (std::ranges::none_of(bindings.inputs, [&](const Described& input) { return overlap(input, described); }))
    return result;
  if (described.memory_type != ONNXIFI_MEMORY_TYPE_CPU) throw Failure{ONNXIFI_STATUS_INVALID_MEMORY_LOCATION};
  const uint64_t bytes = described.bytes();
  Copy& copy = bindings.copies.emplace_back(
      Copy{std::make_unique<char[]>(bytes), reinterpret_cast<char*>(described.buffer), bytes});
  result.buffer.address = copy.from.get();
  return result;
}

std::shared_ptr<const Graph::Bindings> Graph::bindings(const std::vector<Described>& inputs,
                                                       const std::vector<Described>& outputs) const {
  const view::Graph graph = session_.model().graph();
  const auto in = graph.inputs(), out = graph.outputs();
  auto result = std::make_shared<Bindings>();
  result->inputs = ordered(in, inputs);
  result->outputs = ordered(out, outputs);
  for (size_t i = 0; i < in.size(); ++i) check(in[i], result->inputs[i]);
  for (size_t i = 0; i < out.size(); ++i) check(out[i], result->outputs[i]);
  check_symbols(in, result->inputs, out, result->outputs);
  for (const Described& one : result->inputs) result->tensors.push_back(tensor(*result, one));
  for (const Described& one : result->outputs) result->tensors.push_back(output(*result, one));
  return result;
}

bool Graph::Bindings::conflicts(const Bindings& other) const {
  if (this == &other) return true;
  const auto use = [](const std::vector<Described>& some, const Described& written) {
    return std::ranges::any_of(some, [&](const Described& one) { return overlap(one, written); });
  };
  return std::ranges::any_of(outputs, [&](const Described& one) { return use(other.inputs, one); }) ||
         std::ranges::any_of(other.outputs,
                             [&](const Described& one) { return use(inputs, one) || use(outputs, one); });
}

void Graph::set_io(const std::vector<Described>& inputs, const std::vector<Described>& outputs) {
  const std::lock_guard lock(mutex_);
  set(inputs, outputs);
}

void Graph::set(const std::vector<Described>& inputs, const std::vector<Described>& outputs) {
  bindings_ = nullptr;
  const std::shared_ptr<const Bindings> made = bindings(inputs, outputs);
  // Binds now, so that invalid memory is refused here and not in the run.
  Flight* flight = free_flight();
  if (flight == nullptr && spare_ == nullptr) spare_ = std::make_unique<Flight>(*this, session_.exec());
  bind(flight != nullptr ? *flight : *spare_, made);
  bindings_ = made;
}

void Graph::unset_io() {
  const std::lock_guard lock(mutex_);
  bindings_ = nullptr;
}

void Graph::bind(Flight& flight, const std::shared_ptr<const Bindings>& bindings) const {
  if (flight.bound == bindings) return;
  flight.bound = nullptr;
  const auto inputs = static_cast<uint32_t>(bindings->inputs.size());
  for (uint32_t i = 0; i < bindings->tensors.size(); ++i)
    flight.exec.bind_memory(i < inputs ? i : i - inputs + BP_SLOT_OUTPUT, bindings->tensors[i]);
  flight.bound = bindings;
}

// ---- runs ----------------------------------------------------------------------------------------------------------

bool Graph::Flight::is_free() const {
  return reached(finished) >= runs;
}

Graph::Flight* Graph::free_flight(bool needed) {
  for (const auto& flight : flights_) {
    if (flight->is_free()) return flight.get();
  }
  if (flights_.size() >= kMostInFlight && !needed) return nullptr;
  flights_.push_back(std::make_unique<Flight>(*this, session_.exec()));
  return flights_.back().get();
}

void Graph::ended(void* self, bp_status_t status, const bp_error_t*) {
  Flight& flight = *static_cast<Flight*>(self);
  Graph& graph = flight.graph;
  flight.after->set_status(status == BP_UNSUPPORTED ? ONNXIFI_STATUS_INTERNAL_ERROR : status_of(status));
  if (status == BP_OK) {
    for (const Copy& copy : flight.bound->copies) std::memcpy(copy.to, copy.from.get(), copy.bytes);
  }
  bp_error_t error{};
  error.size = sizeof error;
  client::detail::try_call(error, api().semaphore_signal, flight.ended.get(), flight.runs,
                           static_cast<const bp_error_t*>(nullptr));
  // The order matters: `ended` changes in_flight_, then reads queued_; `start` changes queued_, then reads in_flight_.
  // So at least one of the two sees that the queue must be submitted.
  --graph.in_flight_;
  if (graph.queued_ != 0) {
    const std::lock_guard lock(graph.mutex_);
    graph.submit_queued();
  }
  if (--graph.pending_ == 0) graph.pending_.notify_all();
}

std::shared_ptr<Event> Graph::run(std::shared_ptr<const Event> before) {
  const std::lock_guard lock(mutex_);
  return start(std::move(before));
}

std::shared_ptr<Event> Graph::set_io_and_run(const std::vector<Described>& inputs,
                                             const std::vector<Described>& outputs) {
  const std::lock_guard lock(mutex_);
  set(inputs, outputs);
  return start(nullptr);
}

std::shared_ptr<Event> Graph::start(std::shared_ptr<const Event> before) {
  if (bindings_ == nullptr) throw Failure{ONNXIFI_STATUS_UNIDENTIFIED_NAME};
  auto after = std::make_shared<Event>();
  if (Flight* const flight = queue_.empty() ? free_flight() : nullptr) {
    submit(*flight, {bindings_, std::move(before), after});
    return after;
  }
  queue_.push_back({bindings_, std::move(before), after});
  ++pending_;
  ++queued_;
  submit_queued();
  return after;
}

void Graph::submit(Flight& flight, Order order) {
  bind(flight, order.bindings);
  waits_.clear();
  if (order.before != nullptr) waits_.push_back(order.before->point());
  for (const auto& other : flights_) {
    if (other.get() != &flight && !other->is_free() && other->bound->conflicts(*order.bindings))
      waits_.push_back(other->ended.at(other->runs));
  }
  flight.before = std::move(order.before);
  flight.last = std::move(flight.after);
  flight.after = std::move(order.after);
  ++flight.runs;
  const bp_point_t signals[] = {flight.finished.at(flight.runs), flight.after->point()};
  bp_run_t run{};
  run.size = sizeof run;
  run.waits = waits_.data();
  run.wait_count = static_cast<uint32_t>(waits_.size());
  run.signals = signals;
  run.signal_count = 2;
  run.self = &flight;
  run.done = &Graph::ended;
  ++pending_;
  ++in_flight_;
  try {
    flight.exec.submit(run);
  } catch (...) {
    --in_flight_;
    --pending_;
    flight.after = nullptr;
    flight.bound = nullptr;
    flight.ended.signal(flight.runs);
    flight.finished.signal(flight.runs);
    throw;
  }
}

// Submits runs of the queue, in order. The event of one that cannot be submitted carries the failure.
void Graph::submit_queued() {
  while (!queue_.empty()) {
    const Order& order = queue_.front();
    try {
      // A flight is free only some time after its run has ended. If no run is in flight, `ended` will not call this
      // function again, so a flight is made if none is free.
      Flight* const flight = free_flight(in_flight_ == 0);
      if (flight == nullptr) return;
      submit(*flight, order);
    } catch (...) {
      order.after->fail(ONNXIFI_STATUS_NO_SYSTEM_RESOURCES);
    }
    queue_.pop_front();
    --queued_;
    --pending_;
  }
}

}  // namespace backplane::onnxifi
