// SPDX-License-Identifier: Apache-2.0
#include "runtime/body.h"

namespace backplane::cpu {

namespace {

// Allocates memory for each output that the run writes directly, and stores every value that the run passes.
class FreshOutputs final : public Outputs {
 public:
  explicit FreshOutputs(std::span<Value> values) : values_(values) {}
  Memory memory(uint32_t output, const Tensor& tensor) override {
    values_[output] = Value::allocate(tensor.dtype, tensor.shape);
    return {values_[output].tensor.data, values_[output].holder};
  }
  void take(uint32_t output, Value value) override { values_[output] = std::move(value); }

 private:
  std::span<Value> values_;
};

}  // namespace

Body::Use::Use(const Body& body, std::span<const Value> captured) : body_(body) {
  {
    std::lock_guard lock(body.mutex_);
    if (!body.executors_.empty()) {
      executor_ = std::move(body.executors_.back());
      body.executors_.pop_back();
    }
  }
  if (executor_ == nullptr) executor_ = std::make_unique<Executor>(body.program_);
  for (uint32_t i = 0; i < captured.size(); ++i) executor_->set_input(body.input_count() + i, captured[i]);
}

Body::Use::~Use() {
  executor_->clear();
  try {
    std::lock_guard lock(body_.mutex_);
    body_.executors_.push_back(std::move(executor_));
  } catch (...) {  // not enough memory to keep the executor, so it is freed
  }
}

void Body::Use::run(std::span<Value> inputs, std::span<Value> outputs, const RunContext& context) {
  for (uint32_t i = 0; i < inputs.size(); ++i) executor_->set_input(i, std::move(inputs[i]));
  FreshOutputs fresh(outputs);
  executor_->run(fresh, context);
}

}  // namespace backplane::cpu
