// SPDX-License-Identifier: Apache-2.0
// Between the formats of runtime/format.h.
#include <algorithm>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/onednn/onednn.h"
#include "kernels/simd/clones.h"
#include "runtime/format.h"
#include "runtime/memory.h"

namespace backplane::cpu {

int64_t stored_elements(Format format, const Shape& shape) {
  if (format != Format::kBlocked) return shape.elements();
  int64_t block = channel_block();
  return shape[0] * ((shape[1] + block - 1) / block * block) * shape.elements(2, shape.rank());
}

Shape blocked_view(const Shape& shape) {
  int64_t block = channel_block();
  return {shape[0], (shape[1] + block - 1) / block, shape.elements(2, shape.rank()), block};
}

bool same_bytes(const Shape& shape) {
  return shape[1] % channel_block() == 0 && shape.elements(2, shape.rank()) == 1;
}

namespace {

// A task reorders some blocks of channels of one image: they are contiguous in both formats.
class Reorder final : public Step {
 public:
  Reorder(const Shape& shape, Format from, Format to) : from_(from), to_(to), alias_(same_bytes(shape) ? 0 : -1) {
    batch_ = shape[0];
    channels_ = shape[1];
    places_ = shape.elements(2, shape.rank());
    blocks_ = (channels_ + channel_block() - 1) / channel_block();
  }
  int alias() const override { return alias_; }

  std::optional<std::string> run(Tensors in, Tensors out, void*) const override {
    const int64_t block = channel_block();
    parallel(batch_ * blocks_, 1 + kCheapGrain / (block * places_), [&](int64_t begin, int64_t end) {
      while (begin < end) {
        int64_t image = begin / blocks_;
        int64_t first = begin % blocks_;
        int64_t last = std::min(blocks_, first + end - begin);
        int64_t channels = std::min(channels_, last * block) - first * block;
        int64_t dense = (image * channels_ + first * block) * places_;
        int64_t blocked = begin * block * places_;
        const float* from = in[0].as<float>() + (from_ == Format::kDense ? dense : blocked);
        float* to = out[0].as<float>() + (to_ == Format::kDense ? dense : blocked);
        dnnl::memory::dims dims{1, channels, places_};
        onednn_reorder(layout_of(dims, from_), from, layout_of(dims, to_), to);
        begin += last - first;
      }
    });
    return std::nullopt;
  }

 private:
  Format from_, to_;
  int alias_;
  int64_t batch_, channels_, places_, blocks_;
};

// The three colours of pictures.
CLONES void interleave_3(const uint8_t* __restrict r, const uint8_t* __restrict g, const uint8_t* __restrict b,
                         uint8_t* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    to[3 * i] = r[i];
    to[3 * i + 1] = g[i];
    to[3 * i + 2] = b[i];
  }
}

// Between dense bytes and bytes with the channels last. A task has some places of one image.
class ByteReorder final : public Step {
 public:
  ByteReorder(const Shape& shape, Format from)
      : to_last_(from == Format::kDense),
        batch_(shape[0]),
        channels_(shape[1]),
        places_(shape.elements(2, shape.rank())) {}
  int alias() const override { return channels_ == 1 || places_ == 1 ? 0 : -1; }

  std::optional<std::string> run(Tensors in, Tensors out, void*) const override {
    constexpr int64_t kStrip = 256;
    const int64_t strips = (places_ + kStrip - 1) / kStrip;
    parallel(batch_ * strips, 1 + kCheapGrain / (kStrip * channels_), [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t image = task / strips * channels_ * places_;
        const int64_t first = task % strips * kStrip, last = std::min(places_, first + kStrip);
        const uint8_t* from = in[0].as<uint8_t>() + image;
        uint8_t* to = out[0].as<uint8_t>() + image;
        if (to_last_ && channels_ == 3) {
          interleave_3(from + first, from + places_ + first, from + 2 * places_ + first, to + first * 3, last - first);
          continue;
        }
        for (int64_t p = first; p < last; ++p) {
          for (int64_t c = 0; c < channels_; ++c) {
            if (to_last_)
              to[p * channels_ + c] = from[c * places_ + p];
            else
              to[c * places_ + p] = from[p * channels_ + c];
          }
        }
      }
    });
    return std::nullopt;
  }

 private:
  bool to_last_;
  int64_t batch_, channels_, places_;
};

// Runs a step on dense operands.
class DenseStep final : public Step {
 public:
  DenseStep(Plan plan, Tensors inputs) : step_(std::move(plan.step)) {
    scratch_ = align_up(step_->scratch_bytes());
    plan.takes.resize(inputs.size(), Format::kDense);
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs_.push_back(reordered(inputs[i].shape, Format::kDense, plan.takes[i]));
    }
    result_ = reordered(plan.shapes[0], plan.gives, Format::kDense);
  }
  int64_t scratch_bytes() const override { return scratch_; }

  std::optional<std::string> run(Tensors in, Tensors out, void* scratch) const override {
    auto* memory = static_cast<std::byte*>(scratch);
    std::vector<Tensor> inputs(in.begin(), in.end());
    std::vector<Tensor> outputs(out.begin(), out.end());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs_[i].step) continue;
      inputs[i].data = memory + inputs_[i].offset;
      inputs[i].format = inputs_[i].format;
      if (auto failed = inputs_[i].step->run({&in[i], 1}, {&inputs[i], 1}, nullptr)) return failed;
    }
    if (result_.step) {
      outputs[0].data = memory + result_.offset;
      outputs[0].format = result_.format;
    }
    if (auto failed = step_->run(inputs, outputs, scratch)) return failed;
    return result_.step ? result_.step->run({outputs.data(), 1}, {out.data(), 1}, nullptr) : std::nullopt;
  }

 private:
  struct Operand {
    std::unique_ptr<Step> step;      // null: used as it is
    Format format = Format::kDense;  // as the inner step has it
    int64_t offset = 0;
  };
  Operand reordered(const Shape& shape, Format from, Format to) {
    if (from == to) return {};
    Operand operand{make_reorder(shape, from, to), from == Format::kDense ? to : from, scratch_};
    scratch_ += align_up(stored_elements(Format::kBlocked, shape) * static_cast<int64_t>(sizeof(float)));
    return operand;
  }

  std::unique_ptr<Step> step_;
  int64_t scratch_ = 0;
  std::vector<Operand> inputs_;
  Operand result_;
};

}  // namespace

std::unique_ptr<Step> make_reorder(const Shape& shape, Format from, Format to) {
  if (from == Format::kChannelsLast || to == Format::kChannelsLast) return std::make_unique<ByteReorder>(shape, from);
  return std::make_unique<Reorder>(shape, from, to);
}

Plan with_dense_operands(Plan plan, Tensors inputs) {
  if (!plan.step || (plan.takes.empty() && plan.gives == Format::kDense)) return plan;
  Plan dense;
  dense.shapes = plan.shapes;
  dense.step = std::make_unique<DenseStep>(std::move(plan), inputs);
  return dense;
}

void clear_padding(const Tensor& tensor) {
  const int64_t block = channel_block();
  const int64_t rest = tensor.shape[1] % block;
  if (rest == 0) return;
  const int64_t places = tensor.shape.elements(2, tensor.shape.rank());
  const int64_t blocks = tensor.shape[1] / block + 1;
  for (int64_t image = 1; image <= tensor.shape[0]; ++image) {
    float* last = tensor.as<float>() + (image * blocks - 1) * places * block;
    for (int64_t p = 0; p < places; ++p) std::fill(last + p * block + rest, last + (p + 1) * block, 0.0f);
  }
}

}  // namespace backplane::cpu
