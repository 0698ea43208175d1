// SPDX-License-Identifier: Apache-2.0
#include "program.h"

namespace null_backend {

Program::Program(const Device& device, const Compile& what)
    : backplane::sdk::Program(device, what), weights_(graph().raw()->value_count) {
  for (uint32_t i = 0; i < graph().node_count(); ++i) {
    const Node node = graph().node(i);
    const Value b = node.input(1);
    // The table refuses what it does not support: what coverage said no to never gets past this line.
    steps_.push_back({kOps.create(node), node.input(0).index(), b ? b.index() : BP_NONE, node.output(0).index(),
                      static_cast<uint64_t>(elements(node.output(0)))});
    for (const uint32_t value : {steps_.back().a, steps_.back().b}) {
      if (value != BP_NONE && graph().value(value).weight() != nullptr) copy_weight(what, value);
    }
    what.progress(i + 1, graph().node_count());
  }
}

// Weights come at any alignment. A real backend packs or uploads them here; this one copies.
void Program::copy_weight(const Compile& what, uint32_t value) {
  const uint32_t weight = graph().value(value).raw().weight;
  weights_[value].resize(static_cast<size_t>(elements(graph().value(value))));
  std::memcpy(weights_[value].data(), what.weight(weight), weights_[value].size() * sizeof(float));
  what.weight_consumed(weight);
}

std::unique_ptr<backplane::sdk::Instance> Program::instance() const {
  return std::make_unique<Instance>(*this);
}

Instance::Instance(const Program& program)
    : backplane::sdk::Instance(program), program_(program), between_(program.weights().size()), data_(between_.size()) {
  for (const Program::Step& step : program.steps()) between_[step.y].resize(step.count);
  for (size_t i = 0; i < data_.size(); ++i) {
    const std::vector<float>& weight = program.weights()[i];
    data_[i] = weight.empty() ? between_[i].data() : const_cast<float*>(weight.data());  // only ever read
  }
}

void Instance::run(const bp_run_t& run) {
  const Graph& graph = program_.graph();
  for (uint32_t i = 0; i < graph.input_count(); ++i)
    data_[graph.input(i).index()] = static_cast<float*>(address(input(i)));
  for (uint32_t i = 0; i < graph.output_count(); ++i)
    data_[graph.output(i).index()] = static_cast<float*>(address(output(i)));
  for (const Program::Step& step : program_.steps()) {
    host().check(run.cancel, run.deadline);
    step.kernel->run(data_[step.a], step.b == BP_NONE ? nullptr : data_[step.b], data_[step.y], step.count);
  }
}

}  // namespace null_backend
