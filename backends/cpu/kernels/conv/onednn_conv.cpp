// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/onednn_conv.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "kernels/common/support.h"
#include "kernels/onednn/onednn.h"
#include "kernels/post_op/activation.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/processor.h"

namespace backplane::cpu {

namespace {

using dnnl::memory;
using Primitive = dnnl::convolution_forward;

constexpr auto kFloat = memory::data_type::f32;
// Minimum work of a task, in microseconds at the nominal rate of multiply-adds. Depthwise convolutions do not reach
// that rate, so their minimum is lower.
constexpr double kTaskTime = 1.024;
constexpr double kDepthwiseTaskTime = 0.512;
// Up to this number of channel pairs (input times output channels) per output position, reading the larger weights of a
// Winograd convolution takes less time than the convolution saves.
constexpr int64_t kWinogradWeights = 1000;
// A Winograd convolution of a tile of 4 × 4 positions transforms 6 × 6 inputs.
constexpr int64_t kWinogradTile = 4, kWinogradInputs = 6;
// Multiples of the second-level cache. Transforms of an image that take more than kLargeTransforms no longer stay in
// the third-level cache: the image is cut into strips of rows whose transforms take about kStripTransforms.
constexpr int64_t kLargeTransforms = 12, kStripTransforms = 4;

// A share: some output channels, and the input channels that they are computed from. Grouped convolutions become dense
// ones, whose weights are zero where input and output channel are of different groups, because whole blocks of channels
// are faster than thin groups. Depthwise convolutions remain depthwise.
struct Share {
  int64_t out_first, out_count;
  int64_t in_first, in_count;
  Primitive::primitive_desc description;  // cleared when the step is created
  Primitive primitive;
  PrimitiveLayouts layouts;
  memory::desc shift;  // see Geometry::shifts_last
  int64_t weights_at = 0, result_bytes = 0;
};

// The parameters common to all shares of a convolution.
struct Geometry {
  ConvSize size;
  Window window;
  int64_t threads;
  bool depthwise;
  // Whether large shifts (biases) are added to the finished sums. oneDNN's depthwise kernels begin with the bias, so a
  // large bias would cause a rounding error in each addition. Adding it last takes longer.
  bool shifts_last = false;
  Format source = Format::kBlocked;
  Format result = Format::kBlocked;
  // Images are cut into strips of output rows, each computed as an image of its own: `window` is that of a strip,
  // `whole` that of an image. The last strip may begin in the one before it, so that all have the same number of rows.
  int64_t strips = 1;
  Window whole;
  memory::dims in, out, kernel;  // spatial extents

  Geometry(const ConvSize& s, const Window& w, int64_t used_threads)
      : size(s),
        window(w),
        threads(used_threads),
        depthwise(s.groups > 1 && s.groups == s.in_channels && s.groups == s.out_channels),
        whole(w) {
    // oneDNN's depthwise kernels have two dimensions, so a line is an image of one row.
    if (depthwise) window.dims = std::max<int64_t>(window.dims, 2);
    set_extents();
  }
  void cut_into_strips(int64_t rows) {
    strips = (whole.out[1] + rows - 1) / rows;
    window.out[1] = rows;
    window.in[1] = rows + window.kernel[1] - 1;
    window.begin[1] = window.end[1] = 0;
    set_extents();
  }
  void set_extents() {
    in.clear();
    out.clear();
    kernel.clear();
    for (size_t d = static_cast<size_t>(kSpatial - window.dims); d < kSpatial; ++d) {
      in.push_back(window.in[d]);
      out.push_back(window.out[d]);
      kernel.push_back(window.kernel[d]);
    }
  }
  static memory::dims extended(memory::dims dims, const memory::dims& spatial) {
    dims.insert(dims.end(), spatial.begin(), spatial.end());
    return dims;
  }
  memory::dims weights(const Share& share) const {
    return depthwise ? extended({share.out_count, 1, 1}, kernel) : extended({share.out_count, share.in_count}, kernel);
  }
};

// Returns the number of shares: 1 if there is an image for each thread or images are cut into strips; otherwise one
// share per thread, but fewer if shares would have less than a block of output channels or less than the minimum work
// of a task.
int64_t choose_shares(const Geometry& g, int64_t blocks) {
  const int64_t threads = g.threads;
  if (g.size.batch >= threads || g.strips > 1) return 1;
  int64_t work =
      g.size.out_channels * g.window.out_size() * g.window.kernel_size() * g.size.in_channels / g.size.groups;
  return std::min(
      {blocks, threads,
       std::max<int64_t>(1, work / processor().multiply_adds(g.depthwise ? kDepthwiseTaskTime : kTaskTime))});
}

std::vector<Share> cut(const Geometry& g) {
  const int64_t block = std::max<int64_t>(1, channel_block());
  const int64_t out_channels = g.size.out_channels, in_channels = g.size.in_channels;
  if (g.result == Format::kDense) {
    Share all{};
    all.out_count = out_channels;
    all.in_count = in_channels;
    return {all};
  }
  const int64_t blocks = (out_channels + block - 1) / block;
  // Returns the share of the output-channel blocks [first, last), with the input-channel blocks that their groups read.
  auto share_of = [&](int64_t first, int64_t last) {
    Share share{};
    share.out_first = first * block;
    share.out_count = std::min(last * block, out_channels) - share.out_first;
    if (g.depthwise) {
      share.in_first = share.out_first;
      share.in_count = share.out_count;
    } else if (g.source == Format::kDense) {
      share.in_count = in_channels;
    } else {
      const int64_t out_group = out_channels / g.size.groups, in_group = in_channels / g.size.groups;
      share.in_first = share.out_first / out_group * in_group / block * block;
      const int64_t end = ((share.out_first + share.out_count - 1) / out_group + 1) * in_group;
      share.in_count = std::min(in_channels, (end + block - 1) / block * block) - share.in_first;
    }
    return share;
  };
  std::vector<Share> shares;
  if (g.size.groups > 1 && !g.depthwise) {
    // Make shares as wide as possible without multiplying many more zeros than single blocks would.
    for (int64_t first = 0; first < blocks;) {
      int64_t last = first + 1;
      int64_t apart = share_of(first, last).in_count;  // input channels read if each block were a separate share
      for (; last < blocks; ++last) {
        apart += share_of(last, last + 1).in_count;
        if (20 * (last + 1 - first) * share_of(first, last + 1).in_count > 21 * apart) break;
      }
      shares.push_back(share_of(first, last));
      first = last;
    }
    return shares;
  }
  const int64_t count = choose_shares(g, blocks);
  for (int64_t s = 0; s < count; ++s) shares.push_back(share_of(s * blocks / count, (s + 1) * blocks / count));
  return shares;
}

bool describe(const Geometry& g, Share& share, bool has_bias, std::span<const PostOp> post_ops,
              dnnl::algorithm algorithm) {
  const Window& w = g.window;
  ConvolutionArguments a;
  a.algorithm = algorithm;
  for (size_t d = static_cast<size_t>(kSpatial - w.dims); d < kSpatial; ++d) {
    a.strides.push_back(w.stride[d]);
    a.dilations.push_back(w.dilation[d] - 1);
    a.begin.push_back(w.begin[d]);
    // oneDNN derives the output extent from this padding, so padding that no window reaches is not passed to it.
    a.end.push_back((w.out[d] - 1) * w.stride[d] + (w.kernel[d] - 1) * w.dilation[d] + 1 - w.in[d] - w.begin[d]);
  }
  a.source = layout_of(Geometry::extended({1, share.in_count}, g.in), g.source);
  a.result = layout_of(Geometry::extended({1, share.out_count}, g.out), g.result);
  a.weights = {g.weights(share), kFloat, memory::format_tag::any};
  a.has_bias = has_bias;
  if (has_bias) a.bias = {{share.out_count}, kFloat, memory::format_tag::a};
  if (has_bias && g.shifts_last) {
    memory::dims dims(g.in.size() + 2, 1);
    dims[1] = share.out_count;
    a.shift = share.shift = layout_of(dims, Format::kDense);
  }
  a.post_ops = post_ops;
  try {
    share.description = describe_convolution(a);
  } catch (const dnnl::error&) {  // extents or padding beyond what oneDNN can describe
    return false;
  }
  if (!share.description || !is_fast(share.description.impl_info_str())) return false;
  share.primitive = Primitive(share.description);
  share.layouts = PrimitiveLayouts(share.primitive);
  return true;
}

// Whether Winograd convolution pays off: for 3×3 windows over many positions and channels. With many blocks of output
// channels, kernels work on parts of them, which must then be of equal size. The weights of a Winograd convolution are
// four times as large: with few output positions, reading them takes longer than the multiplications that they save.
bool suits_winograd(const Geometry& g, const Share& share) {
  const Window& w = g.window;
  const int64_t blocks = share.out_count / 16;
  const bool parts_evenly = blocks <= 12 || blocks % 4 == 0 || blocks % 5 == 0 || blocks % 6 == 0;
  return channel_block() == 16 && g.source == Format::kBlocked && g.size.groups == 1 && w.dims == 2 &&
         w.kernel == Spatial{1, 3, 3} && w.stride == Spatial{1, 1, 1} && w.dilation == Spatial{1, 1, 1} &&
         share.in_count % 16 == 0 && share.out_count % 16 == 0 && w.out_size() >= 100 &&
         g.size.in_channels * g.size.out_channels <= kWinogradWeights * w.out_size() && parts_evenly;
}

// Returns the number of output rows of a strip, or 0 if images are not cut.
int64_t winograd_strip_rows(const Geometry& g) {
  const int64_t l2_floats = processor().l2_bytes / int64_t{sizeof(float)};
  const int64_t row = g.size.in_channels * g.whole.out[2] * kWinogradInputs * kWinogradInputs /
                      (kWinogradTile * kWinogradTile);  // floats of the transforms of an output row
  if (row * g.whole.out[1] <= kLargeTransforms * l2_floats) return 0;
  const int64_t most = std::max(kWinogradTile, kStripTransforms * l2_floats / row);
  // `count` is a multiple of the number of threads. Rounding the rows up to whole tiles may lead to fewer strips.
  const int64_t least = (g.whole.out[1] + most - 1) / most, count = (least + g.threads - 1) / g.threads * g.threads;
  const int64_t rows = ((g.whole.out[1] + count - 1) / count + kWinogradTile - 1) / kWinogradTile * kWinogradTile;
  return rows < g.whole.out[1] ? rows : 0;
}

class OnednnConv final : public Step {
 public:
  OnednnConv(Geometry geometry, std::vector<Share> shares, std::span<const PostOp> post_ops,
             std::span<const Tensor> inputs, PackedWeights& packed)
      : geometry_(std::move(geometry)), shares_(std::move(shares)) {
    adds_ = std::ranges::any_of(post_ops, [](const PostOp& op) { return op.kind == PostOp::kAdd; });
    summand_ = adds_ ? static_cast<int>(inputs.size()) - 1 : -1;
    int64_t scratchpad = 0;
    for (Share& share : shares_) {
      layouts_.push_back(share.description.weights_desc());
      share.weights_at = weight_bytes_;
      weight_bytes_ += bytes_of(share.description.weights_desc());
      scratchpad = std::max(scratchpad, bytes_of(share.description.scratchpad_desc()));
      share.result_bytes = static_cast<int64_t>(share.description.dst_desc().get_size());
      share.description = {};
    }
    if (geometry_.strips > 1) {
      strip_in_bytes_ = strip_bytes(geometry_.size.in_channels, geometry_.window.in_size());
      strip_out_bytes_ = strip_bytes(geometry_.size.out_channels, geometry_.window.out_size());
    }
    scratchpad_bytes_ = (scratchpad + 63) / 64 * 64 + strip_in_bytes_ + strip_out_bytes_;
    threads_ = geometry_.threads;
    const float* bias = has_bias(inputs) ? inputs[2].as<float>() : nullptr;
    affine_ = join_affine(post_ops, geometry_.size.out_channels, bias);
    // A known bias is copied, because kernels for SSE4.1 load it aligned.
    if (affine_.shift.empty() && bias != nullptr) affine_.shift.assign(bias, bias + geometry_.size.out_channels);
    // Pad to whole blocks, because kernels read whole blocks.
    if (geometry_.shifts_last) {
      affine_.shift.resize((affine_.shift.size() + 15) / 16 * 16);
      affine_.compensation.resize(affine_.shift.size());
    }
    if (inputs[1].data != nullptr) {
      pack_ = packed.get(inputs[1], layouts_, [&] {
        std::shared_ptr<std::byte> pack(allocate_pages(weight_bytes_));
        pack_weights(inputs[1].as<std::byte>(), pack.get(), allocate_pages);
        return pack;
      });
    }
  }

  int inplace() const override { return summand_; }
  int64_t scratch_bytes() const override { return threads_ * scratchpad_bytes_ + (pack_ ? 0 : weight_bytes_); }

  std::optional<std::string> run(std::span<const Tensor> in, std::span<const Tensor> out,
                                 void* scratch) const override {
    auto* scratchpads = static_cast<std::byte*>(scratch);
    const std::byte* weights = pack_.get();
    if (weights == nullptr) {
      pack_weights(in[1].as<std::byte>(), scratchpads + threads_ * scratchpad_bytes_, allocate);
      weights = scratchpads + threads_ * scratchpad_bytes_;
    }
    const float* bias = !affine_.shift.empty() ? affine_.shift.data() : has_bias(in) ? in[2].as<float>() : nullptr;
    const auto count = static_cast<int64_t>(shares_.size());
    const int64_t source_image = stored_elements(geometry_.source, in[0].shape) / geometry_.size.batch;
    const int64_t result_image = out[0].stored() / geometry_.size.batch;
    if (geometry_.strips > 1) {
      parallel(geometry_.size.batch * geometry_.strips, 1, [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t image = task / geometry_.strips;
          const float* add = adds_ ? in[static_cast<size_t>(summand_)].as<float>() + image * result_image : nullptr;
          convolve_strip(task % geometry_.strips, in[0].as<float>() + image * source_image, weights, bias, add,
                         out[0].as<float>() + image * result_image, scratchpads + thread_index() * scratchpad_bytes_);
        }
      });
      return std::nullopt;
    }
    parallel(geometry_.size.batch * count, 1, [&](int64_t begin, int64_t end) {
      std::byte* scratchpad = scratchpads + thread_index() * scratchpad_bytes_;
      for (int64_t task = begin; task < end; ++task) {
        const Share& share = shares_[static_cast<size_t>(task % count)];
        int64_t image = task / count;
        const float* from = in[0].as<float>() + image * source_image + share.in_first * geometry_.window.in_size();
        int64_t at = image * result_image + share.out_first * geometry_.window.out_size();
        float* to = out[0].as<float>() + at;
        if (adds_ && out[0].data != in[static_cast<size_t>(summand_)].data) {
          std::memcpy(to, in[static_cast<size_t>(summand_)].as<float>() + at, static_cast<size_t>(share.result_bytes));
        }
        convolve(share, from, weights + share.weights_at, bias == nullptr ? nullptr : bias + share.out_first, to,
                 scratchpad);
      }
    });
    return std::nullopt;
  }

 private:
  static bool has_bias(std::span<const Tensor> in) { return in.size() > 2 && in[2].present(); }

  // Packs weights, which may be unaligned. Temporary memory comes from `memory`.
  void pack_weights(const std::byte* weights, std::byte* pack, Block (*memory)(int64_t bytes)) const {
    parallel(static_cast<int64_t>(shares_.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        const Share& share = shares_[static_cast<size_t>(s)];
        const dnnl::memory::dims dims = geometry_.weights(share);
        const dnnl::memory::desc layout = layout_of(dims, Format::kDense);
        const Block dense = memory(bytes_of(layout));
        gather_weights(share, weights, reinterpret_cast<float*>(dense.get()));
        onednn_reorder(layout, dense.get(), layouts_[static_cast<size_t>(s)], pack + share.weights_at);
      }
    });
  }

  // Copies the share's weights to `dense`, multiplied by the scales, with zeros between different groups.
  void gather_weights(const Share& share, const std::byte* weights, float* dense) const {
    const int64_t kernel = geometry_.window.kernel_size();
    const int64_t in_group = geometry_.size.in_channels / geometry_.size.groups;
    const int64_t out_group = geometry_.size.out_channels / geometry_.size.groups;
    const int64_t row = (geometry_.depthwise ? 1 : share.in_count) * kernel;
    std::fill_n(dense, share.out_count * row, 0.0f);
    for (int64_t o = 0; o < share.out_count; ++o) {
      const int64_t channel = share.out_first + o;
      const int64_t first = geometry_.depthwise ? 0 : channel / out_group * in_group - share.in_first;
      const int64_t count = in_group * kernel;
      const float scale = affine_.scale.empty() ? 1.0f : affine_.scale[static_cast<size_t>(channel)];
      float* to = dense + o * row + first * kernel;
      std::memcpy(to, weights + channel * count * static_cast<int64_t>(sizeof(float)),
                  static_cast<size_t>(count) * sizeof(float));
      for (int64_t i = 0; i < count; ++i) to[i] *= scale;
    }
  }

  // Bytes of a strip with these channels and positions.
  static int64_t strip_bytes(int64_t channels, int64_t positions) {
    const int64_t lanes = channel_block();
    return product({(channels + lanes - 1) / lanes * lanes, positions, int64_t{sizeof(float)}});
  }

  // Computes one strip: copies its rows of each block of input channels to scratch memory, with zeros for rows outside
  // the image, convolves them, and copies the results, adjacent rows of each block of output channels, to `result`.
  void convolve_strip(int64_t strip, const float* source, const std::byte* weights, const float* bias, const float* add,
                      float* result, std::byte* scratchpad) const {
    const Window &w = geometry_.window, &whole = geometry_.whole;
    const int64_t lanes = channel_block(), in_row = w.in[2] * lanes, out_row = w.out[2] * lanes;
    const int64_t first = std::min(strip * w.out[1], whole.out[1] - w.out[1]);  // output row
    const int64_t done = strip * w.out[1] - first;                              // rows that the strip before computes
    auto* in = reinterpret_cast<float*>(scratchpad + scratchpad_bytes_ - strip_out_bytes_ - strip_in_bytes_);
    auto* out = reinterpret_cast<float*>(scratchpad + scratchpad_bytes_ - strip_out_bytes_);
    // The strip's rows [above, end) are rows of the image from `top` + above on; the others are padding.
    const int64_t top = first - whole.begin[1];
    const int64_t above = std::clamp<int64_t>(-top, 0, w.in[1]);
    const int64_t end = std::clamp<int64_t>(whole.in[1] - top, above, w.in[1]);
    for (int64_t block = 0; block * lanes < geometry_.size.in_channels; ++block) {
      float* rows = in + block * w.in[1] * in_row;
      std::fill_n(rows, above * in_row, 0.0f);
      std::copy_n(source + (block * whole.in[1] + top + above) * in_row, (end - above) * in_row, rows + above * in_row);
      std::fill(rows + end * in_row, rows + w.in[1] * in_row, 0.0f);
    }
    const int64_t out_blocks = (geometry_.size.out_channels + lanes - 1) / lanes;
    for (int64_t block = 0; add != nullptr && block < out_blocks; ++block)
      std::copy_n(add + (block * whole.out[1] + first) * out_row, w.out[1] * out_row, out + block * w.out[1] * out_row);
    convolve(shares_.front(), in, weights, bias, out, scratchpad);
    for (int64_t block = 0; block < out_blocks; ++block)
      std::copy_n(out + (block * w.out[1] + done) * out_row, (w.out[1] - done) * out_row,
                  result + (block * whole.out[1] + first + done) * out_row);
  }

  void convolve(const Share& share, const float* source, const void* weights, const float* bias, float* result,
                void* scratchpad) const {
    SingleThreaded single;
    Execution execution;
    execution.add(DNNL_ARG_SRC, share.layouts.source, source);
    execution.add(DNNL_ARG_WEIGHTS, share.layouts.weights, weights);
    execution.add(DNNL_ARG_DST, share.layouts.result, result);
    execution.add(DNNL_ARG_SCRATCHPAD, share.layouts.scratchpad, scratchpad);
    if (bias != nullptr && geometry_.shifts_last) {
      execution.add(DNNL_ARG_BIAS, share.layouts.bias, affine_.compensation.data() + share.out_first);
      execution.add(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, share.shift, bias);
    } else if (bias != nullptr) {
      execution.add(DNNL_ARG_BIAS, share.layouts.bias, bias);
    }
    execution.run(share.primitive);
  }

  Geometry geometry_;
  std::vector<Share> shares_;
  PackedWeights::Layouts layouts_;
  PackedWeights::Pack pack_;  // null if weights are not known before the run
  ChannelAffine affine_;      // scales become part of the weights, shifts part of the bias
  bool adds_ = false;
  int summand_ = -1;
  int64_t threads_ = 1, weight_bytes_ = 0;
  int64_t scratchpad_bytes_ = 0;  // of a thread: oneDNN's memory, then a strip's input and its result
  int64_t strip_in_bytes_ = 0, strip_out_bytes_ = 0;
};

}  // namespace

namespace {

// Whether a channel's shift is so large that a sum which begins with it would lose precision: more than twice the sum
// of the magnitudes of the scaled weights.
bool shifts_outweigh(const ConvPlan& conv, std::span<const Tensor> inputs) {
  const bool has_bias = inputs.size() > 2 && inputs[2].present();
  if (inputs[1].data == nullptr || (has_bias && inputs[2].data == nullptr)) return false;
  const int64_t channels = conv.size.out_channels, row = inputs[1].shape.elements() / channels;
  const float* bias = has_bias ? inputs[2].as<float>() : nullptr;
  const ChannelAffine affine = join_affine(conv.post_ops, channels, bias);
  const float* shift = affine.shift.empty() ? bias : affine.shift.data();
  for (int64_t c = 0; shift != nullptr && c < channels; ++c) {
    float terms = 0;
    for (int64_t i = 0; i < row; ++i) {
      float weight;
      std::memcpy(&weight, inputs[1].as<std::byte>() + (c * row + i) * static_cast<int64_t>(sizeof(float)),
                  sizeof(float));
      terms += std::fabs(weight);
    }
    const float scale = affine.scale.empty() ? 1.0f : affine.scale[static_cast<size_t>(c)];
    if (std::fabs(shift[c]) > 2 * std::fabs(scale) * terms) return true;
  }
  return false;
}

}  // namespace

bool prefers_winograd(const PlanContext& context, const ConvPlan& conv) {
  const Geometry geometry(conv.size, conv.window, context.threads);
  const std::vector<Share> shares = cut(geometry);
  return std::ranges::all_of(shares, [&](const Share& share) { return suits_winograd(geometry, share); });
}

// A convolution, divided into shares: ranges of its output channels, each computed by a primitive of its own.
struct OnednnConvDescription {
  Geometry geometry;
  std::vector<Share> shares;
};

std::shared_ptr<OnednnConvDescription> describe_onednn_conv(const PlanContext& context, const ConvPlan& conv,
                                                            std::span<const Tensor> inputs, bool winograd_only) {
  std::vector<PostOp> later_ops;
  bool has_bias = inputs.size() > 2 && inputs[2].present();
  for (const PostOp& op : conv.post_ops) {
    if (op.kind == PostOp::kAffine)
      has_bias = true;
    else
      later_ops.push_back(op);
  }
  SingleThreaded single;
  Geometry geometry(conv.size, conv.window, context.threads);
  const bool shifts_last = geometry.depthwise && shifts_outweigh(conv, inputs);
  std::vector<Share> shares;
  const auto attempt = [&](Format source, Format result) {
    geometry.source = source;
    geometry.result = result;
    geometry.shifts_last = shifts_last;
    shares = cut(geometry);
    const auto describe_all = [&](dnnl::algorithm algorithm) {
      return std::ranges::all_of(
          shares, [&](Share& share) { return describe(geometry, share, has_bias, later_ops, algorithm); });
    };
    const bool winograd =
        std::ranges::all_of(shares, [&](const Share& share) { return suits_winograd(geometry, share); });
    const int64_t rows = winograd ? winograd_strip_rows(geometry) : 0;
    if (rows > 0) {
      const Geometry uncut = geometry;
      geometry.cut_into_strips(rows);
      shares = cut(geometry);
      if (suits_winograd(geometry, shares.front()) && describe_all(dnnl::algorithm::convolution_winograd)) return true;
      geometry = uncut;
      shares = cut(geometry);
    }
    if (winograd && describe_all(dnnl::algorithm::convolution_winograd)) return true;
    if (winograd_only) return false;
    if (describe_all(dnnl::algorithm::convolution_direct)) return true;
    return std::exchange(geometry.shifts_last, false) && describe_all(dnnl::algorithm::convolution_direct);
  };
  bool found = false;
  if (channel_block() != 0) {
    // Images with few channels are read in their dense layout.
    if (conv.size.in_channels < channel_block() / 2 && conv.size.groups == 1 && inputs[0].format == Format::kDense)
      found = attempt(Format::kDense, Format::kBlocked);
    found = found || attempt(Format::kBlocked, Format::kBlocked);
  }
  if (!found && !attempt(Format::kDense, Format::kDense)) return nullptr;
  return std::make_shared<OnednnConvDescription>(OnednnConvDescription{std::move(geometry), std::move(shares)});
}

bool is_by_products(const OnednnConvDescription& description) {
  return std::ranges::any_of(description.shares, [](const Share& share) {
    return std::string_view(share.description.impl_info_str()).find("gemm") != std::string_view::npos;
  });
}

Plan plan_onednn_conv(OnednnConvDescription& description, const ConvPlan& conv, std::span<const Tensor> inputs,
                      PackedWeights& packed) {
  Geometry& geometry = description.geometry;
  const auto later = std::ranges::find_if(conv.post_ops, [](const PostOp& op) { return op.kind != PostOp::kAffine; });
  Plan plan;
  plan.input_formats.assign(inputs.size(), Format::kDense);
  plan.input_formats[0] = geometry.source;
  plan.output_format = geometry.result;
  if (inputs[1].data != nullptr) plan.packed = 1;
  if (later != conv.post_ops.end() && later->kind == PostOp::kAdd) plan.input_formats.back() = geometry.result;
  plan.shapes = {conv.window.output_shape(conv.size.batch, conv.size.out_channels)};
  SingleThreaded single;
  plan.step =
      std::make_unique<OnednnConv>(std::move(geometry), std::move(description.shares), conv.post_ops, inputs, packed);
  return plan;
}

}  // namespace backplane::cpu
