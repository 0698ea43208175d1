// SPDX-License-Identifier: Apache-2.0
// A ready-made program for devices that compute node after node in host memory. The vendor writes kernels and the
// operator table. This header handles steps, weights and the memory between nodes.
//
//   using Kernel = std::function<void(const sdk::NodeCall&)>;
//   using Program = sdk::NodeProgram<Kernel>;
//   compile(what):  std::make_unique<Program>(*this, what, [](const Node& node) { return kOps.create(node); });
#pragma once

#include <algorithm>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "backplane/sdk/arena.hpp"
#include "backplane/sdk/backend.hpp"
#include "backplane/sdk/shape.hpp"

namespace backplane::sdk {

// The arguments of a kernel: its node and the addresses of its operands. All shapes are static and all tensors dense.
class NodeCall {
 public:
  NodeCall(const Host& host, const Node& node, void* const* operands)
      : host_(host), node_(node), operands_(operands), count_(static_cast<uint64_t>(elements(node.output(0)))) {}

  const Host& host() const { return host_; }
  const Node& node() const { return node_; }
  // The elements of input `slot`; NULL if the input is omitted.
  template <class T>
  const T* input(uint32_t slot) const {
    return slot < node_.input_count() ? static_cast<const T*>(operands_[slot]) : nullptr;
  }
  template <class T>
  T* output(uint32_t slot) const {
    return slot < node_.output_count() ? static_cast<T*>(operands_[node_.input_count() + slot]) : nullptr;
  }
  // The number of elements of output 0.
  uint64_t count() const { return count_; }

 private:
  const Host& host_;
  const Node& node_;
  void* const* operands_;
  uint64_t count_;
};

// A block of host memory, aligned for every kernel.
class HostBlock {
 public:
  static constexpr uint64_t kAlignment = 64;  // bytes: a cache line, and the widest vectors

  HostBlock() = default;
  HostBlock(const Host& host, uint64_t bytes)
      : host_(&host), bytes_(bytes), memory_(bytes == 0 ? nullptr : host.allocate(bytes, kAlignment)) {}
  HostBlock(const HostBlock&) = delete;
  HostBlock(HostBlock&& other) noexcept { *this = std::move(other); }
  HostBlock& operator=(HostBlock&& other) noexcept {
    std::swap(host_, other.host_);
    std::swap(bytes_, other.bytes_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~HostBlock() {
    if (memory_ != nullptr) host_->release(memory_, bytes_, kAlignment);
  }

  uint64_t bytes() const { return bytes_; }
  std::byte* at(uint64_t offset) const { return static_cast<std::byte*>(memory_) + offset; }

 private:
  const Host* host_ = nullptr;
  uint64_t bytes_ = 0;
  void* memory_ = nullptr;
};

// A compiled island: its kernels in order, a copy of its weights, and the location of every value. `Kernel` is called
// with a NodeCall, by many threads concurrently. If Compile::refit() is true, weights can be replaced later: then
// `create` must refuse a kernel that would keep data derived from a weight.
template <class Kernel>
class NodeProgram : public Program, public Refit {
 public:
  // `create` returns a node's kernel as a std::unique_ptr<Kernel>. It throws BP_UNSUPPORTED for a node that was not
  // claimed.
  template <class Create>
  NodeProgram(const sdk::Device& device, const Compile& what, const Create& create)
      : Program(device, what), refits_(what.refit()), places_(graph().raw()->value_count) {
    for (uint32_t i = 0; i < graph().input_count(); ++i)
      places_[graph().input(i).index()] = {Place::kInput, i, bytes_of(graph().input(i))};
    std::vector<uint32_t> outputs(places_.size(), BP_NONE);  // for each value, the first output that it is, or BP_NONE
    for (uint32_t i = graph().output_count(); i-- > 0;) outputs[graph().output(i).index()] = i;
    for (uint32_t i = 0; i < graph().node_count(); ++i) {
      what.check_cancelled();
      kernels_.push_back(create(graph().node(i)));
      place_operands(i, outputs);
      what.progress(i + 1, graph().node_count());
    }
    for (uint32_t i = 0; i < graph().output_count(); ++i) place_output(i);
    arena_bytes_ = pack(arena_tensors_, HostBlock::kAlignment);
    copy_weights(what);
  }

  std::unique_ptr<Instance> instance() const override;

  void refit(const std::vector<bp_refit_weight_t>& weights) override {
    if (!refits_) throw Error(BP_UNSUPPORTED, "the program was compiled without BP_COMPILE_REFIT");
    for (const bp_refit_weight_t& one : weights) check_fits(one.weight, *one.tensor);
    const std::lock_guard runs_ended(runs_);
    for (const bp_refit_weight_t& one : weights) {
      const bp_buffer_t& from = one.tensor->buffer;
      each_copy(one.weight, [&](std::byte* copy, uint64_t bytes) {
        std::memcpy(copy, static_cast<const std::byte*>(from.address) + from.offset, bytes);
      });
    }
  }
  void read_weight(uint32_t weight, bp_tensor_t& tensor) const override {
    check_fits(weight, tensor);
    const std::shared_lock unchanged(runs_);
    each_copy(weight, [&](const std::byte* copy, uint64_t bytes) {
      std::memcpy(static_cast<std::byte*>(tensor.buffer.address) + tensor.buffer.offset, copy, bytes);
    });
  }

  uint64_t arena_bytes() const { return arena_bytes_; }  // memory for values between kernels, per instance

 private:
  class Run;

  // The location of a value.
  struct Place {
    enum Kind { kNowhere, kInput, kOutput, kWeight, kArena } kind = kNowhere;
    uint32_t slot = 0;  // kInput, kOutput: the island's slot; kArena: index in arena_tensors_
    uint64_t bytes = 0;
    uint64_t offset = 0;  // kWeight
  };
  // An output of the island that no kernel writes, because it is also an input, a weight, or another output.
  struct Copy {
    uint32_t value, output;
  };

  static uint64_t bytes_of(const Value& value) {
    if (value.is_tensor() && value.has_static_shape() && view::dtype_bits(value.dtype()) != 0) {
      const Shape shape = value.extents();
      if (const auto bytes = view::dense_bytes(value.dtype(), shape.data(), static_cast<uint32_t>(shape.size())))
        return *bytes;
    }
    throw Error(BP_UNSUPPORTED, "value '" + std::string(value.name()) +
                                    "' must be a tensor of a known shape and of a type with a fixed width");
  }

  void place_operands(uint32_t step, const std::vector<uint32_t>& outputs) {
    const Node node = graph().node(step);
    for (uint32_t i = 0; i < node.input_count(); ++i) {
      if (const Value value = node.input(i)) read(value, step);
    }
    for (uint32_t i = 0; i < node.output_count(); ++i) {
      if (const Value value = node.output(i)) write(value, step, outputs[value.index()]);
    }
  }
  void read(const Value& value, uint32_t step) {
    Place& place = places_[value.index()];
    if (place.kind == Place::kArena) arena_tensors_[place.slot].touch(step);
    if (place.kind != Place::kNowhere) return;
    if (value.weight() == nullptr)
      throw Error(BP_INVALID_MODEL, "value '" + std::string(value.name()) + "' is computed by no node");
    place = {Place::kWeight, 0, bytes_of(value), weight_bytes_};
    weight_bytes_ += rounded_up(place.bytes, HostBlock::kAlignment);
  }
  // `output`: the first output that the value is, or BP_NONE.
  void write(const Value& value, uint32_t step, uint32_t output) {
    Place& place = places_[value.index()];
    place = {Place::kOutput, output, bytes_of(value)};
    if (output != BP_NONE) return;  // kernels write to the bound memory and read it from there
    place.kind = Place::kArena;
    place.slot = static_cast<uint32_t>(arena_tensors_.size());
    arena_tensors_.push_back({place.bytes});
    arena_tensors_.back().touch(step);
  }
  void place_output(uint32_t output) {
    const Value value = graph().output(output);
    const Place& place = places_[value.index()];
    if (place.kind == Place::kOutput && place.slot == output) return;
    read(value, 0);
    copies_.push_back({value.index(), output});
  }
  // Copies the weights, because they may be unaligned. The host may release their pages afterwards.
  void copy_weights(const Compile& what) {
    weights_ = HostBlock(host(), weight_bytes_);
    for (uint32_t i = 0; i < places_.size(); ++i) {
      if (places_[i].kind != Place::kWeight) continue;
      const uint32_t weight = graph().value(i).raw().weight;
      if (places_[i].bytes != 0) std::memcpy(weights_.at(places_[i].offset), what.weight(weight), places_[i].bytes);
      what.weight_consumed(weight);
      if (places_[i].bytes != 0) weight_values_.emplace_back(weight, i);
    }
    std::sort(weight_values_.begin(), weight_values_.end());
  }

  // Calls `use` for every copy of a weight. Each value that refers to the weight has its own copy.
  template <class F>
  void each_copy(uint32_t weight, const F& use) const {
    auto at = std::lower_bound(weight_values_.begin(), weight_values_.end(), std::pair(weight, uint32_t{0}));
    for (; at != weight_values_.end() && at->first == weight; ++at)
      use(weights_.at(places_[at->second].offset), places_[at->second].bytes);
  }
  // Throws unless the weight exists, and the tensor is dense, in host memory and has the weight's type and extents.
  void check_fits(uint32_t weight, const bp_tensor_t& tensor) const {
    if (weight >= graph().raw()->weight_count)
      throw Error(BP_NOT_FOUND, "the program has no weight " + std::to_string(weight) + "; it has " +
                                    std::to_string(graph().raw()->weight_count));
    const bp_weight_t& own = *bp_graph_weight(graph().raw(), weight);
    const bp_dim_t* const dims = graph().raw()->dims + own.first_dim;
    bool same = tensor.dtype == own.dtype && tensor.rank == own.rank && tensor.layout == BP_LAYOUT_DENSE;
    for (uint32_t i = 0; same && i < own.rank; ++i) same = tensor.extents[i] == dims[i].extent;
    if (!same)
      throw Error(BP_TYPE_MISMATCH, "the tensor for weight " + std::to_string(weight) +
                                        " must be dense, and have the weight's type and extents");
    if (tensor.buffer.memory != nullptr || tensor.buffer.space != 0)
      throw Error(BP_UNSUPPORTED, "the tensor for weight " + std::to_string(weight) + " must be in host memory");
    if (tensor.buffer.bytes < own.bytes || (own.bytes != 0 && tensor.buffer.address == nullptr))
      throw Error(BP_BUFFER_TOO_SMALL, "weight " + std::to_string(weight) + " has " + std::to_string(own.bytes) +
                                           " bytes and the tensor has " + std::to_string(tensor.buffer.bytes));
  }

  const bool refits_;
  mutable std::shared_mutex runs_;                // if weights may be replaced: shared by runs, exclusive for a refit
  std::vector<std::unique_ptr<Kernel>> kernels_;  // indexed by node
  std::vector<Place> places_;                     // indexed by value
  std::vector<ArenaTensor> arena_tensors_;
  std::vector<Copy> copies_;
  // Pairs of a weight and a value that has a copy of it, as indices in the graph; sorted. Without empty weights.
  std::vector<std::pair<uint32_t, uint32_t>> weight_values_;
  HostBlock weights_;
  uint64_t weight_bytes_ = 0, arena_bytes_ = 0;
};

// An instance with memory for the values between kernels. Runs allocate no memory.
template <class Kernel>
class NodeProgram<Kernel>::Run : public Instance {
 public:
  explicit Run(const NodeProgram& program)
      : Instance(program), program_(program), arena_(host(), program.arena_bytes_) {
    const Graph& graph = program.graph();
    for (uint32_t i = 0; i < graph.node_count(); ++i) {
      const Node node = graph.node(i);
      for (uint32_t k = 0; k < node.input_count(); ++k) add_operand(node.input(k));
      for (uint32_t k = 0; k < node.output_count(); ++k) add_operand(node.output(k));
    }
  }

  void run(const bp_run_t& run) override {
    std::shared_lock weights_stay(program_.runs_, std::defer_lock);
    if (program_.refits_) weights_stay.lock();
    const Graph& graph = program_.graph();
    for (const Bound& bound : bound_) operands_[bound.operand] = address_of(*bound.place);
    void** operands = operands_.data();
    for (uint32_t i = 0; i < graph.node_count(); ++i) {
      host().check(run.cancel, run.deadline);
      const Node node = graph.node(i);
      (*program_.kernels_[i])(NodeCall(host(), node, operands));
      operands += node.input_count() + node.output_count();
    }
    for (const Copy& copy : program_.copies_) {
      const Place& from = program_.places_[copy.value];
      if (from.bytes != 0) std::memmove(address(output(copy.output)), address_of(from), from.bytes);
    }
  }

 private:
  // An operand in memory that is bound to the island.
  struct Bound {
    size_t operand;
    const Place* place;
  };

  void add_operand(const Value& value) {
    const Place* const place = value ? &program_.places_[value.index()] : nullptr;
    const bool is_bound = place != nullptr && (place->kind == Place::kInput || place->kind == Place::kOutput);
    if (is_bound) bound_.push_back({operands_.size(), place});
    operands_.push_back(place == nullptr || is_bound ? nullptr : address_of(*place));
  }
  void* address_of(const Place& place) const {
    switch (place.kind) {
      case Place::kInput:
        return address(input(place.slot));
      case Place::kOutput:
        return address(output(place.slot));
      case Place::kWeight:
        return program_.weights_.at(place.offset);
      case Place::kArena:
        return arena_.at(program_.arena_tensors_[place.slot].offset);
      case Place::kNowhere:
        break;
    }
    return nullptr;
  }

  const NodeProgram& program_;
  const HostBlock arena_;
  std::vector<void*> operands_;  // for each node its inputs, then its outputs; NULL for absent operands
  std::vector<Bound> bound_;
};

template <class Kernel>
std::unique_ptr<Instance> NodeProgram<Kernel>::instance() const {
  return std::make_unique<Run>(*this);
}

}  // namespace backplane::sdk
