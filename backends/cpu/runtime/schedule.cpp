// SPDX-License-Identifier: Apache-2.0
#include "runtime/schedule.h"

#include <algorithm>

#include "backplane/sdk/fence.hpp"
#include "runtime/arena.h"

namespace backplane::cpu {

namespace {

// The memory of one or more values: later values overwrite earlier ones (in place), or share their bytes (alias).
struct Buffer {
  Location location;
  int64_t bytes = 0;
  uint32_t pending = 0;      // number of remaining reads
  size_t begin = 0;          // the first action that uses it
  size_t end = SIZE_MAX;     // the last action that uses it; SIZE_MAX: used until the run ends
  uint32_t whole = BP_NONE;  // the buffer that contains this one at `offset`
  int64_t offset = 0;
  bool parted = false;  // contains other buffers
};

// Decides which values share memory, from the actions that use them, and assigns offsets.
class Layout {
 public:
  Layout(const Program& program, Schedule& schedule) : program_(program), schedule_(schedule) {
    buffer_of_.assign(schedule.values.size(), BP_NONE);
    reads_.assign(schedule.values.size(), 0);
  }

  void build(std::span<const Planner::Planned> steps, const std::vector<bool>& known) {
    count_reads(steps);
    place_sources(known);
    for (const Planner::Planned& planned : steps) add(planned);
    place_outputs();
    place_arena();
    for (uint32_t v = 0; v < buffer_of_.size(); ++v) {
      if (buffer_of_[v] != BP_NONE) schedule_.locations[v] = location_of(buffer_of_[v]);
    }
  }

 private:
  struct Operands {
    std::span<const uint32_t> inputs, outputs;
  };
  const Call& call(uint32_t index) const { return program_.calls()[index]; }
  int64_t bytes_at(uint32_t value) const {
    const Tensor& tensor = schedule_.values[value];
    return bytes_of(tensor.dtype, tensor.stored());
  }
  std::span<const uint32_t> inputs(const Planner::Planned& step) const {
    return {schedule_.operands.data() + step.first_operand, step.input_count};
  }
  std::span<const uint32_t> outputs(const Planner::Planned& step) const {
    return {schedule_.operands.data() + step.first_operand + step.input_count, step.output_count};
  }

  // Deferred calls and graph outputs count as reads that no step performs, so that their values' memory is never
  // reused.
  void count_reads(std::span<const Planner::Planned> steps) {
    auto count = [&](std::span<const uint32_t> values) {
      for (uint32_t value : values) {
        if (value != BP_NONE) ++reads_[value];
      }
    };
    for (const Planner::Planned& planned : steps) count(inputs(planned));
    for (uint32_t index : schedule_.deferred) count(call(index).inputs);
    count({program_.graph().outputs, program_.graph().output_count});
  }

  uint32_t new_buffer(uint32_t value, Location location) {
    buffers_.push_back({location, bytes_at(value), reads_[value]});
    return buffer_of_[value] = static_cast<uint32_t>(buffers_.size() - 1);
  }

  void place_sources(const std::vector<bool>& known) {
    std::span<const uint32_t> inputs = program_.inputs();
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      if (buffer_of_[inputs[i]] == BP_NONE) new_buffer(inputs[i], {Place::kInput, i, 0});
    }
    for (uint32_t v = 0; v < known.size(); ++v) {
      if (known[v]) new_buffer(v, {Place::kKnown, v, 0});
    }
  }

  void add(const Planner::Planned& planned) {
    Operands node{inputs(planned), outputs(planned)};
    size_t action = schedule_.actions.size();
    bool no_run = true;
    if (int input = planned.step->alias(); input >= 0) {
      join(node, buffer_of_[node.inputs[static_cast<size_t>(input)]]);
    } else if (planned.step->concat_in_place() && become_parts(node)) {
      if (reads_[node.outputs[0]] == 0) buffers_[buffer_of_[node.outputs[0]]].end = action == 0 ? 0 : action - 1;
    } else {
      no_run = false;
      if (int reused = planned.step->inplace(); reused >= 0 && may_overwrite(node, static_cast<size_t>(reused))) {
        join(node, buffer_of_[node.inputs[static_cast<size_t>(reused)]]);
      }
      schedule_.actions.push_back({planned.step.get(), call(planned.call).node, planned.first_operand,
                                   planned.input_count, planned.output_count, 0});
      for (uint32_t value : node.outputs) {
        if (value == BP_NONE || buffer_of_[value] != BP_NONE) continue;
        Buffer& buffer = buffers_[new_buffer(value, {Place::kArena, 0, 0})];
        buffer.begin = action;
        if (reads_[value] == 0) buffer.end = action;
      }
    }
    // An alias or an in-place concatenation needs no action. Its reads are attributed to the previous one.
    size_t now = no_run && action != 0 ? action - 1 : action;
    for (uint32_t value : node.inputs) {
      if (value == BP_NONE) continue;
      Buffer& buffer = buffers_[buffer_of_[value]];
      if (--buffer.pending == 0) buffer.end = now;
    }
  }

  void join(const Operands& node, uint32_t buffer) {
    buffer_of_[node.outputs[0]] = buffer;
    buffers_[buffer].pending += reads_[node.outputs[0]];
  }

  // If the inputs can lie one after another in the output's memory and fill it, makes their buffers parts of the
  // output's buffer and returns true.
  bool become_parts(const Operands& node) {
    const uint32_t output = node.outputs[0];
    if (output == BP_NONE || node.outputs.size() != 1) return false;
    std::vector<uint32_t> parts;
    int64_t bytes = 0;
    for (uint32_t value : node.inputs) {
      if (value == BP_NONE || bytes % kAlignment != 0) return false;
      const uint32_t part = buffer_of_[value];
      const Buffer& buffer = buffers_[part];
      if (buffer.location.place != Place::kArena || buffer.whole != BP_NONE || buffer.bytes != bytes_at(value) ||
          holds_output(part) || std::ranges::find(parts, part) != parts.end())
        return false;
      parts.push_back(part);
      bytes += buffer.bytes;
    }
    if (bytes != bytes_at(output)) return false;
    const uint32_t whole = new_buffer(output, {Place::kArena, 0, 0});
    buffers_[whole].parted = true;
    buffers_[whole].begin = schedule_.actions.size();
    int64_t offset = 0;
    for (uint32_t part : parts) {
      buffers_[part].whole = whole;
      buffers_[part].offset = offset;
      offset += buffers_[part].bytes;
    }
    return true;
  }

  bool holds_output(uint32_t buffer) const {
    const bp_graph_t& graph = program_.graph();
    return std::any_of(graph.outputs, graph.outputs + graph.output_count,
                       [&](uint32_t value) { return buffer_of_[value] == buffer; });
  }

  // The location of a part follows from that of the buffer which contains it.
  Location location_of(uint32_t buffer) const {
    int64_t offset = 0;
    for (; buffers_[buffer].whole != BP_NONE; buffer = buffers_[buffer].whole) offset += buffers_[buffer].offset;
    Location location = buffers_[buffer].location;
    location.offset += offset;
    return location;
  }

  bool may_overwrite(const Operands& node, size_t input) const {
    const Buffer& buffer = buffers_[buffer_of_[node.inputs[input]]];
    return node.outputs[0] != BP_NONE && buffer.location.place == Place::kArena && buffer.pending == 1 &&
           buffer.whole == BP_NONE && !buffer.parted && buffer.bytes == bytes_at(node.outputs[0]);
  }

  // Moves the buffers of graph outputs from the arena to the memory of the caller.
  void place_outputs() {
    const bp_graph_t& graph = program_.graph();
    for (uint32_t o = 0; o < graph.output_count; ++o) {
      uint32_t buffer = buffer_of_[graph.outputs[o]];
      if (buffer == BP_NONE) continue;  // computed by a deferred call
      if (buffers_[buffer].location.place == Place::kArena && buffers_[buffer].whole == BP_NONE)
        buffers_[buffer].location = {Place::kOutput, o, 0};
    }
  }

  void place_arena() {
    Arena arena;
    // A buffer has a lower index than the one that contains it, so one pass extends the lifetimes of nested buffers.
    for (const Buffer& buffer : buffers_) {
      if (buffer.whole == BP_NONE) continue;
      Buffer& whole = buffers_[buffer.whole];
      whole.begin = std::min(whole.begin, buffer.begin);
      whole.end = std::max(whole.end, buffer.end);
    }
    std::vector<std::vector<uint32_t>> begins(schedule_.actions.size()), ends(schedule_.actions.size());
    for (uint32_t b = 0; b < buffers_.size(); ++b) {
      const Buffer& buffer = buffers_[b];
      if (buffer.location.place != Place::kArena || buffer.whole != BP_NONE) continue;
      if (buffer.begin < begins.size()) begins[buffer.begin].push_back(b);
      if (buffer.end < ends.size()) ends[buffer.end].push_back(b);
    }
    for (size_t a = 0; a < schedule_.actions.size(); ++a) {
      for (uint32_t b : begins[a]) buffers_[b].location.offset = arena.allocate(buffers_[b].bytes);
      if (int64_t scratch = schedule_.actions[a].step->scratch_bytes(); scratch > 0) {
        schedule_.actions[a].scratch = arena.allocate(scratch);
        arena.release(schedule_.actions[a].scratch, scratch);
      }
      for (uint32_t b : ends[a]) arena.release(buffers_[b].location.offset, buffers_[b].bytes);
    }
    schedule_.arena_bytes = arena.size();
  }

  const Program& program_;
  Schedule& schedule_;
  std::vector<Buffer> buffers_;
  std::vector<uint32_t> buffer_of_;  // by value: index in buffers_, or BP_NONE
  std::vector<uint32_t> reads_;      // by value: number of reads
};

}  // namespace

Schedule::Schedule(const Program& program, std::span<const Shape> inputs) {
  FoldAllowance folding = program.schedule_folding();
  Planner planner(program.plan_context(), program.calls(), program.values(), program.known_values(), folding);
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    uint32_t value = program.inputs()[i];
    if (program.type_of(value).kind == BP_KIND_TENSOR) planner.set_extents(value, inputs[i]);
  }
  planner.transient = true;
  planner.aligned = [&](uint32_t value) { return program.aligned(value); };
  planner.on_packed = [&](uint32_t value) { program.consumed(value); };
  planner.walk();
  for (uint32_t index : planner.deferred) {
    for (uint32_t value : program.calls()[index].inputs) {
      if (value != BP_NONE && misaligned(planner.values[value])) planner.values[value].data = program.aligned(value);
    }
  }
  planner.make_dense({program.graph().outputs, program.graph().output_count});
  operands = std::move(planner.operands);
  values = std::move(planner.values);
  shaped = std::move(planner.shaped);
  deferred = std::move(planner.deferred);
  steps_ = std::move(planner.steps);
  blocks_ = std::move(planner.blocks);
  locations.resize(values.size());
  deferred_uses.resize(values.size());
  for (uint32_t index : deferred) {
    for (uint32_t value : program.calls()[index].inputs) {
      if (value != BP_NONE) ++deferred_uses[value];
    }
  }
  for (uint32_t o = 0; o < program.graph().output_count; ++o) ++deferred_uses[program.graph().outputs[o]];
  Layout(program, *this).build(steps_, planner.known);
}

}  // namespace backplane::cpu
