// SPDX-License-Identifier: Apache-2.0
#include "kernels/float16/compute_in_fp32_steps.h"

#include <algorithm>
#include <array>

#include "kernels/common/float16_array.h"
#include "kernels/common/support.h"
#include "runtime/parallel.h"

namespace backplane::cpu {
namespace {

class WholeStep final : public Step {
 public:
  WholeStep(std::unique_ptr<Step> inner, std::vector<Operand> inputs, std::span<const Tensor> floats,
            std::span<const Shape> shapes, const std::vector<bool>& rounds)
      : inner_(std::move(inner)), inputs_(std::move(inputs)), outputs_(shapes.size()) {
    scratch_ = align_up(inner_->scratch_bytes());
    auto reserve = [&](const Shape& shape) {
      const int64_t offset = scratch_;
      scratch_ += align_up(shape.elements() * static_cast<int64_t>(sizeof(float)));
      return offset;
    };
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].converts && !inputs_[i].known) inputs_[i].offset = reserve(floats[i].shape);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      outputs_[i].converts = rounds[i];
      if (rounds[i]) outputs_[i].offset = reserve(shapes[i]);
    }
    const int source = inner_->inplace();
    if (source < 0 || !outputs_[0].converts) return;
    const Operand& input = inputs_[static_cast<size_t>(source)];
    if (!input.converts || !(floats[static_cast<size_t>(source)].shape == shapes[0])) return;
    inplace_ = source;
    if (!input.known) outputs_[0].offset = input.offset;
  }

  std::optional<std::string> run(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                                 void* scratch) const override {
    std::vector<Tensor> in(inputs.begin(), inputs.end()), out(outputs.begin(), outputs.end());
    for (size_t i = 0; i < in.size(); ++i) {
      if (!inputs_[i].converts) continue;
      in[i] = as_floats(inputs[i], inputs_[i], scratch);
      if (!inputs_[i].known)
        convert(in[i].shape, [&](int64_t first, int64_t n) {
          widen(inputs[i].dtype, inputs[i].as<uint16_t>() + first, in[i].as<float>() + first, n);
        });
    }
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i].present() && outputs_[i].converts) out[i] = as_floats(outputs[i], outputs_[i], scratch);
    if (auto failed = inner_->run(in, out, scratch)) return failed;
    for (size_t i = 0; i < out.size(); ++i) {
      if (!out[i].present() || !outputs_[i].converts) continue;
      convert(out[i].shape, [&](int64_t first, int64_t n) {
        narrow(outputs[i].dtype, out[i].as<float>() + first, outputs[i].as<uint16_t>() + first, n);
      });
    }
    return std::nullopt;
  }
  int64_t scratch_bytes() const override { return scratch_; }
  int inplace() const override { return inplace_; }
  int alias() const override { return inner_->alias(); }
  bool pure() const override { return inner_->pure(); }

 private:
  static Tensor as_floats(const Tensor& tensor, const Operand& operand, void* scratch) {
    void* data = operand.known ? operand.known->get() : static_cast<std::byte*>(scratch) + operand.offset;
    return {BP_DTYPE_FLOAT, tensor.shape, data};
  }
  static void convert(const Shape& shape, const auto& piece) {
    parallel(shape.elements(), kCheapGrain, [&](int64_t begin, int64_t end) { piece(begin, end - begin); });
  }

  std::unique_ptr<Step> inner_;
  std::vector<Operand> inputs_, outputs_;
  int64_t scratch_ = 0;
  int inplace_ = -1;
};

class PiecewiseStep final : public Step {
 public:
  PiecewiseStep(std::unique_ptr<Step> piece, std::unique_ptr<Step> rest, std::vector<Operand> inputs, int inplace)
      : piece_(std::move(piece)), rest_(std::move(rest)), inputs_(std::move(inputs)), inplace_(inplace) {}
  int inplace() const override { return inplace_; }
  bool pure() const override { return piece_->pure(); }

  std::optional<std::string> run(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                                 void*) const override {
    const int64_t n = outputs[0].shape.elements();
    parallel((n + kPiece - 1) / kPiece, kCheapGrain / kPiece, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) run_piece(inputs, outputs[0], i * kPiece, std::min(kPiece, n - i * kPiece));
    });
    return std::nullopt;
  }

 private:
  void run_piece(std::span<const Tensor> inputs, const Tensor& output, int64_t first, int64_t n) const {
    alignas(64) float memory[kMaxPieceInputs + 1][kPiece];
    std::array<Tensor, kMaxPieceInputs> in;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].present()) continue;
      const bool one = inputs[i].shape.elements() == 1;
      const int64_t count = one ? 1 : n;
      in[i] = {inputs[i].dtype, one ? Shape{} : Shape{n}, from(inputs[i], one ? 0 : first)};
      if (!inputs_[i].converts) continue;
      in[i].dtype = BP_DTYPE_FLOAT;
      if (inputs_[i].known) {
        in[i].data = reinterpret_cast<float*>(inputs_[i].known->get()) + (one ? 0 : first);
      } else {
        widen(inputs[i].dtype, in[i].data, memory[i], count);
        in[i].data = memory[i];
      }
    }
    Tensor out{output.dtype, {n}, from(output, first)};
    const bool rounds = is_16_bit_float(output.dtype);
    if (rounds) out = {BP_DTYPE_FLOAT, {n}, memory[kMaxPieceInputs]};
    (n == kPiece ? piece_ : rest_)->run({in.data(), inputs.size()}, {&out, 1}, nullptr);
    if (rounds) narrow(output.dtype, memory[kMaxPieceInputs], from(output, first), n);
  }
  static std::byte* from(const Tensor& tensor, int64_t first) {
    return tensor.as<std::byte>() + bytes_of(tensor.dtype, first);
  }

  std::unique_ptr<Step> piece_, rest_;
  std::vector<Operand> inputs_;
  int inplace_;
};

}  // namespace

std::unique_ptr<Step> whole_step(std::unique_ptr<Step> inner, std::vector<Operand> inputs,
                                 std::span<const Tensor> floats, std::span<const Shape> shapes,
                                 const std::vector<bool>& rounds) {
  return std::make_unique<WholeStep>(std::move(inner), std::move(inputs), floats, shapes, rounds);
}

std::unique_ptr<Step> piecewise_step(std::unique_ptr<Step> piece, std::unique_ptr<Step> rest,
                                     std::vector<Operand> inputs, int inplace) {
  return std::make_unique<PiecewiseStep>(std::move(piece), std::move(rest), std::move(inputs), inplace);
}

}  // namespace backplane::cpu
