// SPDX-License-Identifier: Apache-2.0
#include "runtime/program.h"

#include <algorithm>
#include <cstring>

#include "backplane/sdk/fence.hpp"
#include "runtime/body.h"
#include "runtime/coverage.h"
#include "runtime/device.h"
#include "runtime/operators.h"
#include "runtime/planner.h"
#include "runtime/schedule.h"
#include "runtime/threads.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

constexpr size_t kMaxSchedules = 64;

// The allowances for folding during compilation and while each schedule is created. The allowed bytes are kFoldBytes
// plus kFoldBytesOfWeight for each byte of weights: results computed from weights are about as large as the weights, or
// up to 8 times as large if their type is wider.
constexpr std::chrono::milliseconds kFoldTime{2000}, kScheduleFoldTime{250};
constexpr int64_t kFoldBytes = int64_t{256} << 20;
constexpr int64_t kFoldBytesOfWeight = 8;
constexpr int64_t kFoldShare = 4;  // the values folded in a program or schedule take at most 1/4 of max_bytes

// Stops a compilation that was cancelled.
class CompileWatch final : public Watch {
 public:
  CompileWatch(const sdk::Host& host, const bp_cancel_t* cancel) : host_(host), cancel_(cancel) {}
  void check() const override { host_.check(cancel_); }

 private:
  const sdk::Host& host_;
  const bp_cancel_t* cancel_;
};

}  // namespace

Program::Program(Device& device, const bp_compile_t& what)
    : device_(device),
      compute_types_(what.compute_types),
      graph_(*what.graph),
      inputs_(graph_.inputs, graph_.inputs + graph_.input_count) {
  UseThreads use(device_.threads());
  const CompileWatch watch(device_.host(), what.cancel);
  const UseWatch watched(&watch);
  map_weights();
  create_kernels(what);
  fold_and_fuse();
  count_reads();
  pair_in_place();
  shapes_ = classify();
}

Program::Program(const Program& parent, const bp_compile_t& what, const bp_graph_t& graph)
    : device_(parent.device_),
      compute_types_(parent.compute_types_),
      graph_(graph),
      inputs_(graph_.inputs, graph_.inputs + graph_.input_count) {
  map_weights();
  capture(parent);
  create_kernels(what);
  fold_and_fuse();
}

Program::~Program() = default;

void Program::capture(const Program& parent) {
  for (uint32_t v = 0; v < graph_.value_count; ++v) {
    uint32_t outer = bp_graph_value(&graph_, v)->outer;
    if (outer == BP_NONE) continue;
    if (parent.known(outer)) {
      values_[v] = parent.values_[outer];
      known_[v] = true;
    } else {
      inputs_.push_back(v);
      captures_.push_back(outer);
    }
  }
}

bool Program::has_numbers(uint32_t value) const {
  const bp_type_t& type = type_of(value);
  if (type.rank < 0) return false;
  const bp_dim_t* dims = graph_.dims + type.first_dim;
  return std::all_of(dims, dims + type.rank, [](const bp_dim_t& dim) { return dim.extent >= 0; });
}

std::string Program::name_of(uint32_t value) const {
  bp_text_t name = bp_graph_value(&graph_, value)->name;
  return "value '" + std::string(name.data, name.size) + "'";
}

const Body& Program::add_body(uint32_t subgraph) {
  bodies_.push_back(std::make_unique<Body>(*this, *what_, *graph_.subgraphs[subgraph]));
  held_bytes_ += static_cast<int64_t>(bodies_.back()->program().held_bytes());
  return *bodies_.back();
}

void Program::map_weights() {
  values_.resize(graph_.value_count);
  known_.resize(graph_.value_count);
  int64_t weight_bytes = 0;
  for (uint32_t v = 0; v < graph_.value_count; ++v) {
    values_[v].dtype = type_of(v).dtype;
    const bp_value_t& value = *bp_graph_value(&graph_, v);
    if (value.weight == BP_NONE || (value.flags & BP_VALUE_INPUT)) continue;
    const bp_weight_t& weight = *bp_graph_weight(&graph_, value.weight);
    std::string name(value.name.data, value.name.size);
    if (weight.rank > BP_MAX_RANK)
      throw sdk::Error(BP_UNSUPPORTED, "weight '" + name + "' has rank " + std::to_string(weight.rank) + "; at most " +
                                           std::to_string(BP_MAX_RANK) + " is supported");
    Tensor& tensor = values_[v];
    tensor.dtype = weight.dtype;
    for (uint32_t d = 0; d < weight.rank; ++d) tensor.shape.push_back(graph_.dims[weight.first_dim + d].extent);
    if (!countable(tensor.shape))
      throw sdk::Error(BP_INVALID_MODEL, "weight '" + name + "' has invalid extents " + to_string(tensor.shape));
    bool is_text = weight.dtype == BP_DTYPE_STRING;
    uint64_t needed = is_text ? weight.bytes : static_cast<uint64_t>(bytes_of(weight.dtype, tensor.shape.elements()));
    if (weight.bytes < needed) {
      throw sdk::Error(BP_INVALID_MODEL, "weight '" + name + "' has " + std::to_string(weight.bytes) +
                                             " bytes, but its type and extents need " + std::to_string(needed));
    }
    const void* data = weight.data;
    if (data == nullptr && needed != 0) {
      sdk::Detail detail;
      detail.check(graph_.api->weight_map(&graph_, value.weight, &data, detail.get()),
                   "weight '" + name + "' cannot be read");
    }
    // Weights are borrowed. Those in files may be unaligned, but kernels need aligned elements. Unaligned vectors and
    // strings are copied here, unaligned matrices (two or more extents above 1) only when a kernel reads them unpacked:
    // most kernels pack them anyway.
    tensor.data = const_cast<void*>(data);
    const bool is_matrix = std::ranges::count_if(tensor.shape, [](int64_t extent) { return extent > 1; }) > 1;
    const bool is_odd = is_text ? reinterpret_cast<uintptr_t>(data) % sizeof(int64_t) != 0 : misaligned(tensor);
    if (data == nullptr || (is_odd && (is_text || !is_matrix))) {
      blocks_.push_back(copy_weight(v, static_cast<int64_t>(needed)));
      held_bytes_ += static_cast<int64_t>(needed);
      tensor.data = blocks_.back().get();
    }
    if (std::string wrong = is_text ? check_texts(tensor, needed) : ""; !wrong.empty())
      throw sdk::Error(BP_INVALID_MODEL, "weight '" + name + "': " + wrong);
    known_[v] = true;
    weight_bytes += static_cast<int64_t>(std::min(weight.bytes, uint64_t{1} << 50));
  }
  foldable_bytes_ = std::min(kFoldBytes + kFoldBytesOfWeight * std::min(weight_bytes, int64_t{1} << 56),
                             plan_context().max_bytes / kFoldShare);
  folding_ = {kFoldTime, foldable_bytes_};
}

FoldAllowance Program::schedule_folding() const {
  return {kScheduleFoldTime, foldable_bytes_};
}

// Copies in pieces and lets the host release the pages of each, because a large weight would otherwise be in memory
// twice.
Block Program::copy_weight(uint32_t value, int64_t bytes) const {
  constexpr int64_t kPiece = int64_t{16} << 20;
  Block copy = allocate_pages(bytes);
  const uint32_t weight = bp_graph_value(&graph_, value)->weight;
  for (int64_t at = 0; at < bytes; at += kPiece) {
    std::memcpy(copy.get() + at, values_[value].as<std::byte>() + at,
                static_cast<size_t>(std::min(kPiece, bytes - at)));
    if (weight != BP_NONE && graph_.api->weight_consumed != nullptr) graph_.api->weight_consumed(&graph_, weight);
  }
  return copy;
}

void* Program::aligned(uint32_t value) const {
  const Tensor& tensor = values_[value];
  if (!misaligned(tensor)) return tensor.data;
  std::lock_guard lock(copies_mutex_);
  Block& copy = copies_[value];
  if (!copy) copy = copy_weight(value, bytes_of(tensor.dtype, tensor.shape.elements()));
  return copy.get();
}

void Program::create_kernels(const bp_compile_t& what) {
  what_ = &what;
  const Operators& operators = device_.operators();
  calls_.resize(graph_.node_count);
  for (uint32_t i = 0; i < graph_.node_count; ++i) {
    device_.host().check(what.cancel);
    Node node(graph_, i, &operators, this);
    const Row* row = nullptr;
    if (Verdict verdict = judge(node, &row); !verdict) {
      throw sdk::Error(BP_UNSUPPORTED, describe(*bp_graph_node(&graph_, i)) + ": " + verdict.detail, node.id());
    }
    Call& call = calls_[i];
    call.row = row;
    call.node = bp_graph_node(&graph_, i);
    size_t first_body = bodies_.size();
    call.kernel = operators.create(*row, node, plan_context().reference);
    call.whole = dynamic_cast<const ValueKernel*>(call.kernel.get());
    call.inputs = {graph_.operands + call.node->first_input, call.node->input_count};
    if (bodies_.size() != first_body) {
      call.reads.assign(call.inputs.begin(), call.inputs.end());
      for (size_t b = first_body; b < bodies_.size(); ++b)
        call.reads.insert(call.reads.end(), bodies_[b]->captures().begin(), bodies_[b]->captures().end());
      call.inputs = call.reads;
    }
    call.outputs = {graph_.operands + call.node->first_output, call.node->output_count};
    call.may_fold = (row->facts & kFoldsLate) == 0;
    if (what.progress != nullptr && graph_.parent == nullptr)
      what.progress(what.progress_self, i + 1, graph_.node_count);
  }
  what_ = nullptr;
}

PlanContext Program::plan_context() const {
  return device_.plan_context(compute_types_);
}

// Weights that early passes use in quantized form are never dequantized. The others are dequantized here once, not in
// each run. Exceptions are types of fewer than 8 bits: they would grow too much.
void Program::fold_and_fuse() {
  const auto run = [&](std::span<const Pass> passes) {
    if (plan_context().reference) return;
    for (const Pass pass : passes) pass(graph_, calls_, values_, known_);
  };
  fold_constants();
  run(device_.operators().early_passes());
  bool folds_more = false;
  for (Call& call : calls_) {
    if (call.may_fold || call.skipped || (call.row->facts & kFoldsLate) == 0 ||
        bytes_of(values_[call.inputs[0]].dtype, 2) < 2)
      continue;
    call.may_fold = folds_more = true;
  }
  if (folds_more) fold_constants();
  run(device_.operators().late_passes());
}

// The planner has no input extents here, so it folds only calls that depend on nothing but weights.
void Program::fold_constants() {
  Planner planner(plan_context(), calls_, values_, known_, folding_);
  planner.aligned = [&](uint32_t value) { return aligned(value); };
  planner.walk();
  for (uint32_t index : planner.costly) calls_[index].may_fold = false;
  for (uint32_t index : planner.costly_to_plan) calls_[index].costly_to_plan = true;
  for (uint32_t index : planner.folded) {
    calls_[index].skipped = true;
    for (uint32_t v : calls_[index].outputs) {
      if (v == BP_NONE) continue;
      values_[v] = planner.values[v];
      known_[v] = true;
    }
  }
  std::move(planner.blocks.begin(), planner.blocks.end(), std::back_inserter(blocks_));
  held_bytes_ += planner.block_bytes;
}

// Determines when output extents become known (BP_SHAPES_*), by creating a schedule. If input extents are not static,
// sample extents are used: whether a node depends on a value follows from the graph and not from the extents.
uint32_t Program::classify() const {
  auto shapes_for = [&](int64_t sample) -> std::optional<std::vector<Shape>> {
    std::vector<Shape> shapes;
    for (uint32_t i = 0; i < graph_.input_count; ++i) {
      const bp_type_t& type = type_of(graph_.inputs[i]);
      if (type.rank < 0) return std::nullopt;
      Shape& shape = shapes.emplace_back();
      for (int32_t d = 0; d < type.rank; ++d) {
        const bp_dim_t& dim = graph_.dims[type.first_dim + static_cast<uint32_t>(d)];
        int64_t extent = dim.extent;
        if (extent < 0) extent = sample;
        if (dim.extent < 0 && dim.symbol != BP_NONE && dim.symbol < graph_.symbol_count) {
          const bp_symbol_t& symbol = *bp_graph_symbol(&graph_, dim.symbol);
          extent = std::clamp(extent, symbol.min, std::max(symbol.min, symbol.max));
        }
        shape.push_back(extent);
      }
    }
    return shapes;
  };
  auto all_numbers = [&](std::span<const uint32_t> list) {
    return std::all_of(list.begin(), list.end(), [&](uint32_t v) { return has_numbers(v); });
  };
  auto shape_kind = [&](const Schedule& schedule) -> uint32_t {
    for (uint32_t o = 0; o < graph_.output_count; ++o) {
      if (!schedule.shaped[graph_.outputs[o]]) return BP_SHAPES_DATA_DEPENDENT;
    }
    return all_numbers({graph_.outputs, graph_.output_count}) ? BP_SHAPES_STATIC : BP_SHAPES_COMPUTED;
  };

  for (uint32_t v : inputs_) {
    if (type_of(v).kind != BP_KIND_TENSOR) return BP_SHAPES_DATA_DEPENDENT;
  }
  if (all_numbers({graph_.inputs, graph_.input_count})) return shape_kind(*schedule(*shapes_for(1)));
  for (int64_t sample : {1, 64, 32, 224, 7, 2}) {
    std::optional<std::vector<Shape>> shapes = shapes_for(sample);
    if (!shapes) break;
    try {
      return shape_kind(Schedule(*this, *shapes));
    } catch (const sdk::Error& failure) {
      if (failure.status == BP_CANCELLED) throw;
      // The sample extents do not fit this island; the next ones may.
    }
  }
  return BP_SHAPES_DATA_DEPENDENT;
}

void Program::count_reads() {
  reads_.assign(graph_.value_count, 0);
  for (const Call& call : calls_) {
    if (call.skipped) continue;
    for (uint32_t value : call.inputs) {
      if (value != BP_NONE) ++reads_[value];
    }
  }
  for (uint32_t o = 0; o < graph_.output_count; ++o) ++reads_[graph_.outputs[o]];
}

// Fills inplace_ from the updates of calls (Row::updates). Skips inputs that are read more than once or are also graph
// outputs, since the other readers must not see the changes.
void Program::pair_in_place() {
  for (const Call& call : calls_) {
    if (call.skipped) continue;
    for (const Update& pair : call.row->updates) {
      const uint32_t from = bp_node_input(&graph_, call.node, pair.input);
      const uint32_t to = bp_node_output(&graph_, call.node, pair.output);
      const auto input = std::find(graph_.inputs, graph_.inputs + graph_.input_count, from);
      const auto output = std::find(graph_.outputs, graph_.outputs + graph_.output_count, to);
      if (input == graph_.inputs + graph_.input_count || output == graph_.outputs + graph_.output_count) continue;
      if (reads_[from] != 1 || (!pair.same_extents && !have_equal_extents(from, to))) continue;
      inplace_.push_back({static_cast<uint32_t>(input - graph_.inputs), static_cast<uint32_t>(output - graph_.outputs),
                          BP_DONATE_MAY, 0});
    }
  }
}

// Whether the declared types have the same known rank and, per dimension, the same number or the same symbol.
bool Program::have_equal_extents(uint32_t a, uint32_t b) const {
  const auto type_of = [&](uint32_t value) { return bp_graph_type(&graph_, bp_graph_value(&graph_, value)->type); };
  const bp_type_t &x = *type_of(a), &y = *type_of(b);
  if (x.rank < 0 || x.rank != y.rank) return false;
  for (int32_t d = 0; d < x.rank; ++d) {
    const bp_dim_t& one = graph_.dims[x.first_dim + static_cast<uint32_t>(d)];
    const bp_dim_t& other = graph_.dims[y.first_dim + static_cast<uint32_t>(d)];
    if (one.extent != other.extent) return false;
    if (one.extent < 0 && (one.symbol == BP_NONE || one.symbol != other.symbol)) return false;
  }
  return true;
}

void Program::consumed(uint32_t value) const {
  uint32_t weight = bp_graph_value(&graph_, value)->weight;
  if (value >= reads_.size() || reads_[value] != 1 || weight == BP_NONE) return;
  if (graph_.api->weight_consumed != nullptr) graph_.api->weight_consumed(&graph_, weight);
}

bool Program::admits(const bp_type_t& type, std::span<const int64_t> extents) const {
  if (type.rank < 0) return true;
  if (static_cast<size_t>(type.rank) != extents.size()) return false;
  for (size_t d = 0; d < extents.size(); ++d) {
    int64_t declared = graph_.dims[type.first_dim + d].extent;
    if (declared >= 0 && declared != extents[d]) return false;
  }
  return true;
}

std::shared_ptr<const Schedule> Program::schedule(std::span<const Shape> inputs) const {
  auto find = [&]() -> std::shared_ptr<const Schedule> {
    auto entry = std::find_if(cache_.begin(), cache_.end(),
                              [&](const Entry& e) { return std::ranges::equal(e.inputs, inputs); });
    if (entry == cache_.end()) return nullptr;
    cache_.splice(cache_.begin(), cache_, entry);
    return entry->schedule;
  };
  {
    std::lock_guard lock(mutex_);
    if (auto found = find()) return found;
  }
  UseThreads use(device_.threads());
  // Outside the lock, so that runs with other extents do not wait.
  auto made = std::make_shared<const Schedule>(*this, inputs);
  std::lock_guard lock(mutex_);
  if (auto found = find()) return found;
  cache_.push_front({{inputs.begin(), inputs.end()}, made});
  if (cache_.size() > kMaxSchedules) cache_.pop_back();
  return made;
}

}  // namespace backplane::cpu
