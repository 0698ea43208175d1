// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/onednn_matmul.h"

#include <algorithm>
#include <cstring>

#include "kernels/post_op/activation.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/processor.h"

namespace backplane::cpu {

namespace {

using dnnl::memory;

constexpr auto kFloat = memory::data_type::f32;
constexpr double kTaskTime = 16.384;             // minimum work of a task, in microseconds at the nominal rate
constexpr int64_t kRows = 256;                   // rows of A per task; they stay in the second-level cache
constexpr int64_t kMostWork = int64_t{1} << 30;  // maximum multiply-adds per task; runs are cancelled between tasks

// Some columns of the product. The rows are computed in chunks of equal size; only the last chunk may be smaller.
struct Share {
  int64_t first, count;
  memory::desc weights;
  int64_t weights_at = 0;  // offset in bytes
  struct Chunk {
    dnnl::matmul primitive;
    memory::desc source, bias, result, scratchpad;
  };
  Chunk whole, last;
};

class KnownProductStep final : public Step {
 public:
  // Packs the weights if oneDNN has a fast implementation. described() returns whether it has one.
  KnownProductStep(int threads, const KnownProduct& p, std::span<const Tensor> inputs, PackedWeights& packed)
      : m_(p.m),
        n_(p.n),
        k_(p.k),
        rows_(std::min(p.m, kRows)),
        affine_(join_affine(p.post_ops, p.n, nullptr)),
        threads_(threads) {
    std::vector<PostOp> later;
    for (const PostOp& op : p.post_ops) {
      if (op.kind == PostOp::kAdd) summand_ = static_cast<int>(inputs.size()) - 1;
      if (op.kind != PostOp::kAffine) later.push_back(op);
    }
    // The GELU in activation.h takes a quarter of the time of oneDNN's.
    const bool gelu = !later.empty() && later.back().kind == PostOp::kActivation &&
                      (later.back().activation.function == Activation::kGelu ||
                       later.back().activation.function == Activation::kGeluTanh);
    if (gelu) {
      gelu_ = later.back().activation;
      later.pop_back();
    }
    cut();
    PackedWeights::Layouts layouts;
    for (Share& share : shares_) {
      described_ = described_ && describe(share, share.whole, rows_, later) &&
                   (m_ % rows_ == 0 || describe(share, share.last, m_ % rows_, later));
      if (!described_) return;
      share.weights_at = weight_bytes_;
      weight_bytes_ += bytes_of(share.weights);
      layouts.push_back(share.weights);
    }
    pack_ = packed.get(inputs[1], layouts, [&] {
      std::shared_ptr<std::byte> pack(allocate_pages(weight_bytes_));
      pack_weights(inputs[1].as<std::byte>(), p.b_transposed, pack.get());
      return pack;
    });
  }

  bool described() const { return described_; }
  int inplace() const override { return summand_; }
  int64_t scratch_bytes() const override { return threads_ * scratchpad_bytes_; }

  std::optional<std::string> run(std::span<const Tensor> in, std::span<const Tensor> out,
                                 void* scratch) const override {
    const auto count = static_cast<int64_t>(shares_.size());
    const float* summand = summand_ < 0 ? nullptr : in[static_cast<size_t>(summand_)].as<float>();
    parallel((m_ + rows_ - 1) / rows_ * count, 1, [&](int64_t begin, int64_t end) {
      SingleThreaded single;
      std::byte* scratchpad = static_cast<std::byte*>(scratch) + thread_index() * scratchpad_bytes_;
      for (int64_t task = begin; task < end; ++task) {
        const Share& share = shares_[static_cast<size_t>(task % count)];
        const int64_t first = task / count * rows_, rows = std::min(rows_, m_ - first);
        const Share::Chunk& chunk = rows == rows_ ? share.whole : share.last;
        float* to = out[0].as<float>() + first * n_ + share.first;
        if (summand != nullptr && summand != out[0].data) {
          for (int64_t r = 0; r < rows; ++r)
            std::memcpy(to + r * n_, summand + (first + r) * n_ + share.first,
                        static_cast<size_t>(share.count) * sizeof(float));
        }
        Execution execution;
        execution.add(DNNL_ARG_SRC, chunk.source, in[0].as<float>() + first * k_);
        execution.add(DNNL_ARG_WEIGHTS, share.weights, pack_.get() + share.weights_at);
        execution.add(DNNL_ARG_DST, chunk.result, to);
        execution.add(DNNL_ARG_SCRATCHPAD, chunk.scratchpad, scratchpad);
        if (!affine_.shift.empty()) execution.add(DNNL_ARG_BIAS, chunk.bias, affine_.shift.data() + share.first);
        execution.run(chunk.primitive);
        for (int64_t r = 0; gelu_ && r < rows; ++r) activate(*gelu_, to + r * n_, share.count);
      }
    });
    return std::nullopt;
  }

 private:
  // With several threads, cuts the columns into two shares per thread, so that a thread that starts late can compute
  // fewer. Cuts fewer shares if they would be too small, and more if a task would exceed kMostWork.
  void cut() {
    const int64_t blocks = (n_ + kColumnBlock - 1) / kColumnBlock;
    const int64_t worth = std::max<int64_t>(1, m_ * n_ * k_ / processor().multiply_adds(kTaskTime));
    const int64_t least = std::min(blocks, 1 + rows_ * n_ * k_ / kMostWork);
    const int64_t count = std::max(least, threads_ == 1 ? 1 : std::min<int64_t>({blocks, 2 * threads_, worth}));
    for (int64_t s = 0; s < count; ++s) {
      const int64_t first = s * blocks / count * kColumnBlock;
      shares_.push_back({first, std::min(n_, (s + 1) * blocks / count * kColumnBlock) - first, {}, 0, {}, {}});
    }
  }

  bool describe(Share& share, Share::Chunk& chunk, int64_t rows, std::span<const PostOp> later) {
    ProductArguments a;
    a.source = {{rows, k_}, kFloat, memory::dims{k_, 1}};
    a.weights =
        share.weights.is_zero() ? memory::desc({k_, share.count}, kFloat, memory::format_tag::any) : share.weights;
    a.has_bias = !affine_.shift.empty();
    if (a.has_bias) a.bias = {{1, share.count}, kFloat, memory::format_tag::ab};
    a.result = {{rows, share.count}, kFloat, memory::dims{n_, 1}};
    a.post_ops = later;
    const dnnl::matmul::primitive_desc description = describe_product(a);
    if (!description || !is_fast(description.impl_info_str())) return false;
    chunk = {dnnl::matmul(description), description.src_desc(), description.bias_desc(), description.dst_desc(),
             description.scratchpad_desc()};
    share.weights = description.weights_desc();
    scratchpad_bytes_ = std::max(scratchpad_bytes_, bytes_of(chunk.scratchpad));
    return true;
  }

  // `b` may be unaligned. A line is a column of B if B is stored transposed, otherwise a row.
  void pack_weights(const std::byte* b, bool transposed, std::byte* pack) const {
    parallel(static_cast<int64_t>(shares_.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        const Share& share = shares_[static_cast<size_t>(s)];
        const int64_t lines = transposed ? share.count : k_, length = transposed ? k_ : share.count;
        const int64_t first = share.first * (transposed ? k_ : 1), stride = transposed ? k_ : n_;
        const Block scratch = allocate_pages(lines * length * static_cast<int64_t>(sizeof(float)));
        auto* part = reinterpret_cast<float*>(scratch.get());
        for (int64_t l = 0; l < lines; ++l) {
          float* line = part + l * length;
          std::memcpy(line, b + (first + l * stride) * static_cast<int64_t>(sizeof(float)),
                      static_cast<size_t>(length) * sizeof(float));
          for (int64_t j = 0; j < length && !affine_.scale.empty(); ++j)
            line[j] *= affine_.scale[static_cast<size_t>(share.first + (transposed ? l : j))];
        }
        const memory::dims strides = transposed ? memory::dims{1, k_} : memory::dims{share.count, 1};
        onednn_reorder({{k_, share.count}, kFloat, strides}, part, share.weights, pack + share.weights_at);
      }
    });
  }

  int64_t m_, n_, k_, rows_;
  ChannelAffine affine_;  // scales become part of the weights, shifts become the bias
  std::optional<Activation> gelu_;
  std::vector<Share> shares_;
  PackedWeights::Pack pack_;
  bool described_ = true;
  int summand_ = -1;
  int64_t threads_ = 1, weight_bytes_ = 0, scratchpad_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Step> make_onednn_product(const PlanContext& context, const KnownProduct& product,
                                          std::span<const Tensor> inputs, PackedWeights& packed) {
  if (product.m == 0 || product.n == 0 || product.k == 0) return nullptr;
  SingleThreaded single;
  auto step = std::make_unique<KnownProductStep>(context.threads, product, inputs, packed);
  return step->described() ? std::move(step) : nullptr;
}

}  // namespace backplane::cpu
