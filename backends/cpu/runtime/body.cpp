// SPDX-License-Identifier: Apache-2.0
#include "runtime/body.h"

namespace backplane::cpu {

namespace {

// Outputs in memory of their own.
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
    if (!body.frames_.empty()) {
      frame_ = std::move(body.frames_.back());
      body.frames_.pop_back();
    }
  }
  if (frame_ == nullptr) frame_ = std::make_unique<Frame>(body.program_);
  for (uint32_t i = 0; i < captured.size(); ++i) frame_->set_input(body.input_count() + i, captured[i]);
}

Body::Use::~Use() {
  frame_->clear();
  try {
    std::lock_guard lock(body_.mutex_);
    body_.frames_.push_back(std::move(frame_));
  } catch (...) {  // no memory to keep it
  }
}

void Body::Use::run(std::span<Value> inputs, std::span<Value> outputs, const RunContext& context) {
  for (uint32_t i = 0; i < inputs.size(); ++i) frame_->set_input(i, std::move(inputs[i]));
  FreshOutputs fresh(outputs);
  frame_->run(fresh, context);
}

}  // namespace backplane::cpu
