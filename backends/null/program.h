// SPDX-License-Identifier: Apache-2.0
// An island compiled: its kernels in order and a copy of its weights. An instance adds what lies between the kernels.
#pragma once

#include "ops.h"

namespace null_backend {

using namespace backplane::sdk;

class Program : public backplane::sdk::Program {
 public:
  Program(const Device& device, const Compile& what);
  std::unique_ptr<backplane::sdk::Instance> instance() const override;

  struct Step {
    std::unique_ptr<Kernel> kernel;
    uint32_t a, b, y;  // values of the graph; b may be BP_NONE
    uint64_t count;
  };
  const std::vector<Step>& steps() const { return steps_; }
  // The bytes of weights, by value of the graph; empty for other values.
  const std::vector<std::vector<float>>& weights() const { return weights_; }

 private:
  void copy_weight(const Compile& what, uint32_t value);

  std::vector<Step> steps_;
  std::vector<std::vector<float>> weights_;
};

class Instance : public backplane::sdk::Instance {
 public:
  explicit Instance(const Program& program);
  void run(const bp_run_t& run) override;

 private:
  const Program& program_;
  std::vector<std::vector<float>> between_;  // memory of values that never leave the island
  std::vector<float*> data_;                 // where each value of the graph lies
};

}  // namespace null_backend
