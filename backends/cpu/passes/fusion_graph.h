// SPDX-License-Identifier: Apache-2.0
// The calls of a program as passes see them: the readers, the producer and the known data of each value, and which
// calls are already fused.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>

#include "runtime/call.h"

namespace backplane::cpu {

class FusionGraph {
 public:
  FusionGraph(const bp_graph_t& graph, std::span<Call> calls, std::span<const Tensor> values,
              const std::vector<bool>& known);

  std::span<Call> calls() const { return calls_; }
  Call& call(uint32_t index) const { return calls_[index]; }
  Node node(uint32_t call) const { return Node(graph_, call); }
  const Tensor& value(uint32_t value) const { return values_[value]; }
  bool known(uint32_t value) const { return value != BP_NONE && known_[value]; }
  bool is_output(uint32_t value) const { return kept_[value]; }

  std::span<const uint32_t> readers(uint32_t value) const {
    return {readers_.data() + read_first_[value], read_first_[value + 1] - read_first_[value]};
  }
  // The operator of a call in ONNX's default domain that is neither fused nor skipped yet; empty for other calls.
  std::string_view op_type(uint32_t call) const;
  // Whether `op_type` of the call is one of these.
  bool is(uint32_t call, std::initializer_list<std::string_view> op_types) const;
  // Return the only reader of a value, or its producer, if it has one of these operators; else BP_NONE. The graph
  // counts as a reader of its outputs.
  uint32_t sole_reader(uint32_t value, std::initializer_list<std::string_view> op_types) const;
  uint32_t producer(uint32_t value, std::initializer_list<std::string_view> op_types) const;
  bool reads(uint32_t call, uint32_t value) const;
  // `value` must be an operand of the call. Returns the other operand if the call has two, and they are different; else
  // BP_NONE.
  uint32_t other(uint32_t call, uint32_t value) const;
  uint32_t result(uint32_t call) const { return calls_[call].outputs[0]; }

  // Returns the number in a known fp32 tensor of one element, else nullopt. `is_scalar` returns whether that number
  // differs from `wanted` by less than 0.01%.
  std::optional<float> known_scalar(uint32_t value) const;
  bool is_scalar(uint32_t value, double wanted) const;

  const bp_type_t& type(uint32_t value) const { return *bp_graph_type(&graph_, bp_graph_value(&graph_, value)->type); }
  // Returns an extent of the value's declared type, or -1 if it is not static.
  int64_t extent(uint32_t value, int32_t dim) const;
  // Whether the declared types show that two values have the same extents in every run.
  bool same_extents(uint32_t a, uint32_t b) const;
  bool same_extent(const bp_type_t& a, int32_t a_dim, const bp_type_t& b, int32_t b_dim) const;

  // Describes a value that has the channels of `source` in shuffled order (kernels/conv/channel_shuffle.h).
  struct Shuffle {
    uint32_t call, source;
    int64_t groups;
  };
  void add_shuffle(uint32_t value, const Shuffle& shuffle) { shuffles_[value] = shuffle; }
  const Shuffle* shuffle_of(uint32_t value) const {
    const auto found = shuffles_.find(value);
    return found == shuffles_.end() ? nullptr : &found->second;
  }

  // Marks a call as fused: `op_type` and `is` no longer find it.
  void take(uint32_t call) { taken_[call] = true; }
  // Replaces these calls: the last one gets `kernel` and `operands`, and the others are marked as skipped.
  void replace(std::span<const uint32_t> joined, std::unique_ptr<Kernel> kernel, std::vector<uint32_t> operands);

 private:
  const bp_graph_t& graph_;
  std::span<Call> calls_;
  std::span<const Tensor> values_;
  const std::vector<bool>& known_;
  std::vector<bool> taken_;           // by call: already fused
  std::vector<bool> kept_;            // by value: is a graph output
  std::vector<uint32_t> read_first_;  // by value: index of its first reader in readers_
  std::vector<uint32_t> readers_;
  std::map<uint32_t, Shuffle> shuffles_;
  std::vector<uint32_t> maker_;  // by value: the call that computes it, or BP_NONE
};

}  // namespace backplane::cpu
