// SPDX-License-Identifier: Apache-2.0
#include "ops/onednn_conv.h"

#include <cstring>

#include "engine/threads.h"
#include "ops/onednn.h"
#include "ops/support.h"

namespace backplane::cpu {

namespace {

using dnnl::memory;
using Primitive = dnnl::convolution_forward;

constexpr auto kFloat = memory::data_type::f32;
constexpr int64_t kVector = 16;  // channels in a block of the layouts that oneDNN prefers

memory::format_tag plain(size_t rank) {
  return rank == 3 ? memory::format_tag::abc : rank == 4 ? memory::format_tag::abcd : rank == 5 ? memory::format_tag::abcde : memory::format_tag::abcdef;
}
memory::format_tag blocked(size_t rank) {
  return rank == 3 ? memory::format_tag::aBc16b : rank == 4 ? memory::format_tag::aBcd16b : memory::format_tag::aBcde16b;
}

// Into how many equal shares the channels (or groups) are cut: so many that all threads have work, but not so many that the
// kernels lose the reuse that wide shares give.
int64_t choose_shares(const ConvSize& size, int64_t threads) {
  if (size.batch >= threads) return 1;  // images are enough
  bool grouped = size.groups > 1;
  int64_t units = grouped ? size.groups : size.out_channels;
  for (int64_t shares = std::min(2 * threads, units); shares > 1; --shares) {
    if (units % shares != 0) continue;
    int64_t share = units / shares;
    bool whole_vectors = share % kVector == 0 || (grouped && size.out_channels != size.groups);
    if (whole_vectors && (shares <= threads || share >= 4 * kVector)) return shares;
  }
  return 1;
}

void reorder(const memory::desc& from_layout, const void* from, const memory::desc& to_layout, void* to) {
  SingleThreaded single;
  memory source(from_layout, onednn_engine(), const_cast<void*>(from));
  memory target(to_layout, onednn_engine(), to);
  dnnl::reorder(source, target).execute(onednn_stream(), source, target);
}

// A task convolves one image with one share. Images and shares of channels are contiguous in a dense tensor, so that each task's
// source, weights and result are dense tensors of their own.
class OnednnConv final : public Step {
 public:
  OnednnConv(const ConvSize& size, const Window& w, std::span<const Tensor> inputs, PackedWeights& packed)
      : batch_(size.batch), threads_(thread_count()), shares_(choose_shares(size, threads_)), grouped_(size.groups > 1) {
    SingleThreaded single;
    int64_t in_channels = grouped_ ? size.in_channels / shares_ : size.in_channels;
    int64_t out_channels = size.out_channels / shares_;
    memory::dims source{1, in_channels};
    memory::dims result{1, out_channels};
    memory::dims weights{out_channels, in_channels};
    if (grouped_) {
      int64_t groups = size.groups / shares_;
      weights = {groups, out_channels / groups, in_channels / groups};
    }
    ConvolutionArguments a;
    for (size_t d = static_cast<size_t>(kSpatial - w.dims); d < kSpatial; ++d) {
      source.push_back(w.in[d]);
      result.push_back(w.out[d]);
      weights.push_back(w.kernel[d]);
      a.strides.push_back(w.stride[d]);
      a.dilations.push_back(w.dilation[d] - 1);
      a.begin.push_back(w.begin[d]);
      // What oneDNN derives the output extent from: padding that no window reaches is left out.
      a.end.push_back((w.out[d] - 1) * w.stride[d] + (w.kernel[d] - 1) * w.dilation[d] + 1 - w.in[d] - w.begin[d]);
    }
    a.source = {source, kFloat, memory::format_tag::any};
    a.weights = {weights, kFloat, memory::format_tag::any};
    a.result = {result, kFloat, memory::format_tag::any};
    has_bias_ = a.has_bias = inputs.size() > 2 && inputs[2].present();
    if (has_bias_) a.bias = {{out_channels}, kFloat, memory::format_tag::a};
    description_ = make_convolution(a);
    primitive_ = Primitive(description_);

    plain_source_ = {source, kFloat, plain(source.size())};
    plain_result_ = {result, kFloat, plain(result.size())};
    plain_weights_ = {weights, kFloat, plain(weights.size())};
    out_channels_ = out_channels;
    source_elements_ = elements(source);
    result_elements_ = elements(result);
    weight_elements_ = elements(weights);
    plan_source(source);
    if (inputs[1].data != nullptr) {
      packed_ = packed.get(inputs[1].data, description_.weights_desc(), [&] {
        std::shared_ptr<std::byte> pack(allocate(shares_ * weight_bytes()));
        pack_weights(inputs[1].as<float>(), pack.get());
        return pack;
      });
    }
  }

  int64_t scratch_bytes() const override {
    return sources() * source_bytes() + threads_ * (result_bytes() + scratchpad_bytes()) + (packed_ ? 0 : shares_ * weight_bytes());
  }

  std::optional<std::string> run(std::span<const Tensor> in, std::span<const Tensor> out, void* scratch) const override {
    auto* memory = static_cast<std::byte*>(scratch);
    std::byte* reordered = memory;
    memory += sources() * source_bytes();
    std::byte* results = memory;
    memory += threads_ * result_bytes();
    std::byte* scratchpads = memory;
    memory += threads_ * scratchpad_bytes();
    const std::byte* weights = packed_.get();
    if (weights == nullptr) {
      pack_weights(in[1].as<float>(), memory);
      weights = memory;
    }
    reorder_sources(in[0].as<float>(), reordered);
    parallel(batch_ * shares_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        int64_t image = task / shares_;
        int64_t share = task % shares_;
        int64_t source = grouped_ ? task : image;
        const void* from = reorders_source() ? static_cast<const void*>(reordered + source * source_bytes())
                                             : in[0].as<float>() + source * source_elements_;
        const float* bias = has_bias_ ? in[2].as<float>() + share * out_channels_ : nullptr;
        float* to = out[0].as<float>() + task * result_elements_;
        int slot = thread_index();
        convolve(from, weights + share * weight_bytes(), bias, to, results + slot * result_bytes(), scratchpads + slot * scratchpad_bytes());
      }
    });
    return std::nullopt;
  }

 private:
  static int64_t elements(const memory::dims& dims) {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return n;
  }
  bool reorders_source() const { return description_.src_desc() != plain_source_; }
  bool reorders_result() const { return description_.dst_desc() != plain_result_; }
  int64_t sources() const { return batch_ * (grouped_ ? shares_ : 1); }
  static int64_t bytes(const memory::desc& layout) { return align_up(static_cast<int64_t>(layout.get_size())); }
  int64_t source_bytes() const { return reorders_source() ? bytes(description_.src_desc()) : 0; }
  int64_t result_bytes() const { return reorders_result() ? bytes(description_.dst_desc()) : 0; }
  int64_t weight_bytes() const { return bytes(description_.weights_desc()); }
  int64_t scratchpad_bytes() const { return bytes(description_.scratchpad_desc()); }

  // A blocked source whose channels fill whole blocks can be reordered in pieces, each as contiguous as it was.
  void plan_source(memory::dims dims) {
    source_pieces_ = 1;
    size_t rank = dims.size();
    if (dims[1] % kVector != 0 || description_.src_desc() != memory::desc(dims, kFloat, blocked(rank))) return;
    int64_t blocks = dims[1] / kVector;
    for (int64_t pieces = std::min<int64_t>(blocks, 2 * threads_); pieces > 1; --pieces) {
      if (blocks % pieces != 0) continue;
      source_pieces_ = pieces;
      dims[1] /= pieces;
      piece_from_ = {dims, kFloat, plain(rank)};
      piece_to_ = {dims, kFloat, blocked(rank)};
      return;
    }
  }

  void pack_weights(const float* weights, std::byte* pack) const {
    parallel(shares_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t share = begin; share < end; ++share) {
        reorder(plain_weights_, weights + share * weight_elements_, description_.weights_desc(), pack + share * weight_bytes());
      }
    });
  }

  void reorder_sources(const float* from, std::byte* to) const {
    if (!reorders_source()) return;
    int64_t piece_elements = source_elements_ / source_pieces_;
    parallel(sources() * source_pieces_, 1 + kCheapGrain / piece_elements, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t source = i / source_pieces_;
        int64_t offset = i % source_pieces_ * piece_elements;
        reorder(source_pieces_ > 1 ? piece_from_ : plain_source_, from + source * source_elements_ + offset,
                source_pieces_ > 1 ? piece_to_ : description_.src_desc(),
                to + source * source_bytes() + offset * static_cast<int64_t>(sizeof(float)));
      }
    });
  }

  void convolve(const void* source, const void* weights, const float* bias, float* to, void* result, void* scratchpad) const {
    SingleThreaded single;
    dnnl::engine& engine = onednn_engine();
    auto wrap = [&](const memory::desc& layout, const void* data) { return memory(layout, engine, const_cast<void*>(data)); };
    std::unordered_map<int, memory> arguments{
        {DNNL_ARG_SRC, wrap(description_.src_desc(), source)},
        {DNNL_ARG_WEIGHTS, wrap(description_.weights_desc(), weights)},
        {DNNL_ARG_DST, wrap(description_.dst_desc(), reorders_result() ? result : to)},
        {DNNL_ARG_SCRATCHPAD, wrap(description_.scratchpad_desc(), scratchpad)},
    };
    if (bias != nullptr) arguments.emplace(DNNL_ARG_BIAS, wrap(description_.bias_desc(), bias));
    primitive_.execute(onednn_stream(), arguments);
    if (reorders_result()) reorder(description_.dst_desc(), result, plain_result_, to);
  }

  int64_t batch_;
  int64_t threads_;
  int64_t shares_;
  bool grouped_;
  bool has_bias_ = false;
  Primitive::primitive_desc description_;
  Primitive primitive_;
  memory::desc plain_source_, plain_result_, plain_weights_, piece_from_, piece_to_;
  int64_t source_pieces_ = 1;
  int64_t out_channels_ = 0, source_elements_ = 0, result_elements_ = 0, weight_elements_ = 0;
  PackedWeights::Pack packed_;
};

}  // namespace

std::unique_ptr<Step> make_onednn_conv(const ConvSize& size, const Window& window, std::span<const Tensor> inputs,
                                       PackedWeights& packed) {
  try {
    return std::make_unique<OnednnConv>(size, window, inputs, packed);
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

}  // namespace backplane::cpu
