// SPDX-License-Identifier: Apache-2.0
#include "kernels/integer/conv_integer.h"

#include <algorithm>
#include <cstring>

#include "kernels/common/direct_conv.h"
#include "kernels/common/function_kernel.h"
#include "kernels/common/quantization.h"
#include "kernels/common/support.h"
#include "kernels/integer/integer_gemm.h"
#include "kernels/integer/matmul_integer.h"
#include "kernels/post_op/activation.h"
#include "kernels/simd/clones.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

constexpr size_t kX = 0, kW = 1, kXZero = 2, kWZero = 3, kScale = 4, kBias = 5;
constexpr int64_t kPositionsTogether = 32;  // output positions that a depthwise convolution computes at a time

CLONED void add_bias(const uint32_t* bias, uint32_t* sums, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sums[i] += bias[i];
}

// A convolution of 8-bit integers. x is channels-last, y dense or blocked.
struct ConvIntegerWork {
  ConvSize size;
  Window window;
  bool scaled, blocked;
  std::vector<PostOp> post_ops;

  int64_t in_group() const { return size.in_channels / size.groups; }
  int64_t out_group() const { return size.out_channels / size.groups; }
  int64_t taps() const { return window.kernel_size(); }
  // Elements of y from one image to the next.
  int64_t image_step() const {
    const int64_t block = blocked ? channel_block() : 1;
    return (size.out_channels + block - 1) / block * block * window.out_size();
  }

  // Stores sums [positions, n] in one image y, where column 0 of the sums is output channel `first` and row 0 is
  // position `position`. Before that, if `scaled`, adds the bias if there is one, scales the sums and applies the
  // post-operations. Reads only the given rows and columns.
  void finish(int32_t* sums, int64_t n, int64_t first, int64_t position, Range rows, Range columns, Tensors in,
              uint32_t* y) const {
    const int64_t count = columns.last - columns.first;
    if (scaled) {
      const Tensor bias = at(in, kBias);
      for (int64_t i = rows.first; i < rows.last; ++i) {
        int32_t* row = sums + i * n + columns.first;
        if (bias.present())
          clone_of<add_bias>(bias.as<uint32_t>() + first + columns.first, reinterpret_cast<uint32_t*>(row), count);
        scale_sums(row, count, at(in, kScale).as<float>(), true);
      }
      finish_part(post_ops, reinterpret_cast<float*>(sums), rows, columns, n, nullptr);
    }
    const auto* words = reinterpret_cast<const uint32_t*>(sums);
    if (blocked)
      store_blocks(words, n, first, position, rows, columns, y);
    else
      store_planes(words, n, first, position, rows, columns, y);
  }

 private:
  void store_planes(const uint32_t* sums, int64_t n, int64_t first, int64_t position, Range rows, Range columns,
                    uint32_t* y) const {
    constexpr int64_t kTogether = 16;  // columns at a time, so that each cache line is read once
    const int64_t out = window.out_size();
    for (int64_t c = columns.first; c < columns.last; c += kTogether) {
      const int64_t last = std::min(columns.last, c + kTogether);
      for (int64_t i = rows.first; i < rows.last; ++i) {
        for (int64_t column = c; column < last; ++column)
          y[(first + column) * out + position + i] = sums[i * n + column];
      }
    }
  }

  // Stores the sums in a blocked y, with zeros after the last channel.
  void store_blocks(const uint32_t* sums, int64_t n, int64_t first, int64_t position, Range rows, Range columns,
                    uint32_t* y) const {
    const int64_t block = channel_block();
    int64_t count = 0;
    for (int64_t c = columns.first; c < columns.last; c += count) {
      const int64_t channel = first + c, lane = channel % block;
      count = std::min(block - lane, columns.last - c);
      const int64_t zeros = channel + count == size.out_channels ? block - lane - count : 0;
      uint32_t* to = y + (channel / block * window.out_size() + position) * block + lane;
      for (int64_t i = rows.first; i < rows.last; ++i) {
        const uint32_t* from = sums + i * n + c;
        if (count == 16)
          std::memcpy(to + i * block, from, 16 * sizeof *from);
        else
          std::fill_n(std::copy_n(from, count, to + i * block), zeros, 0);
      }
    }
  }
};

// ---- depthwise

template <class T>
[[gnu::always_inline]] inline void add_products(const T* x, const int32_t* w, uint32_t* sums, int64_t n, int32_t zero) {
  for (int64_t c = 0; c < n; ++c) sums[c] += static_cast<uint32_t>((x[c] - zero) * w[c]);
}
CLONED void add_signed(const int8_t* x, const int32_t* w, uint32_t* sums, int64_t n, int32_t zero) {
  add_products(x, w, sums, n, zero);
}
CLONED void add_unsigned(const uint8_t* x, const int32_t* w, uint32_t* sums, int64_t n, int32_t zero) {
  add_products(x, w, sums, n, zero);
}

void run_depthwise(const ConvIntegerWork& conv, Tensors in, const Tensor& y, void* scratch) {
  const int64_t n = conv.size.out_channels, positions = conv.window.out_size();
  const bool x_signed = in[kX].dtype == BP_DTYPE_INT8, w_signed = in[kW].dtype == BP_DTYPE_INT8;
  const ZeroPointVector x_zero(at(in, kXZero)), w_zero(at(in, kWZero));
  auto* weights = static_cast<int32_t*>(scratch);  // [tap][channel]
  Pace pace;
  for (int64_t c = 0; c < n; ++c) {
    const int32_t zero = w_zero.values()[w_zero.values().size() == 1 ? 0 : static_cast<size_t>(c)];
    for (int64_t t = 0; t < conv.taps(); ++t) {
      pace.spend(1);
      weights[t * n + c] = q8_at(in[kW].data, w_signed, c * conv.taps() + t) - zero;
    }
  }
  int32_t* buffers = weights + conv.taps() * n;
  const int64_t pieces = (positions + kPositionsTogether - 1) / kPositionsTogether;
  const int64_t grain = 1 + kCheapGrain / (1 + kPositionsTogether * n * conv.taps());
  parallel(conv.size.batch * pieces, grain, [&](int64_t begin, int64_t end) {
    int32_t* sums = buffers + thread_index() * kPositionsTogether * n;
    Pace pace;
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t image = piece / pieces, first = piece % pieces * kPositionsTogether;
      const int64_t count = std::min(kPositionsTogether, positions - first);
      const auto* x = in[kX].as<uint8_t>() + image * conv.window.in_size() * n;
      std::fill_n(sums, count * n, 0);
      for (int64_t i = 0; i < count; ++i) {
        auto* to = reinterpret_cast<uint32_t*>(sums + i * n);
        each_tap(
            conv.window, first + i,
            [&](int64_t t, int64_t at) {
              pace.spend(8 + n);
              if (x_signed)
                clone_of<add_signed>(reinterpret_cast<const int8_t*>(x) + at * n, weights + t * n, to, n,
                                     x_zero.values()[0]);
              else
                clone_of<add_unsigned>(x + at * n, weights + t * n, to, n, x_zero.values()[0]);
            },
            [&](int64_t) { pace.spend(1); });
      }
      conv.finish(sums, n, 0, first, {0, count}, {0, n}, in, y.as<uint32_t>() + image * conv.image_step());
    }
  });
}

// ---- all other convolutions, as matrix products: each output position is a row

void run_products(const ConvIntegerWork& conv, const IntegerGemm& products, Tensors in, const Tensor& y, void* scratch,
                  int64_t sums_bytes) {
  const int64_t channels = conv.size.in_channels, each = conv.in_group(), n = conv.out_group();
  const ZeroPointVector x_zero(at(in, kXZero)), w_zero(at(in, kWZero));
  auto* sums = static_cast<int32_t*>(scratch);
  const auto row_at = [&](int64_t product, int64_t position, uint8_t* buffer) -> const uint8_t* {
    const int64_t image = product / conv.size.groups, group = product % conv.size.groups;
    const auto* x = in[kX].as<uint8_t>() + image * conv.window.in_size() * channels + group * each;
    const uint8_t* only = buffer;
    each_run(
        conv.window, position,
        [&](int64_t t, int64_t count, int64_t at) {
          const uint8_t* from = x + at * channels;
          if (conv.taps() == 1)
            only = from;
          else if (each == channels)
            std::memcpy(buffer + t * each, from, static_cast<size_t>(count * each));
          else
            for (int64_t i = 0; i < count; ++i)
              std::memcpy(buffer + (t + i) * each, from + i * channels, static_cast<size_t>(each));
        },
        [&](int64_t t, int64_t count) {
          std::memset(buffer + t * each, x_zero.values()[0], static_cast<size_t>(count * each));
        });
    return only;
  };
  products.run({in[kX].dtype == BP_DTYPE_INT8, in[kW], {x_zero.values(), w_zero.values()}, sums, 0}, row_at,
               static_cast<std::byte*>(scratch) + sums_bytes, [&](const SumsPart& part) {
                 const int64_t image = part.batch / conv.size.groups, group = part.batch % conv.size.groups;
                 conv.finish(sums, n, group * n, 0, {part.first_row, part.last_row},
                             {part.first_column, part.last_column}, in, y.as<uint32_t>() + image * conv.image_step());
               });
}

class ConvInteger final : public Kernel {
 public:
  ConvInteger(const Node& node, bool scaled, std::unique_ptr<Kernel> definition)
      : attributes_(node),
        groups_(node.attr("group", int64_t{1})),
        scaled_(scaled),
        definition_(std::move(definition)) {}

  Plan plan(const PlanContext& context, Tensors in) const override {
    const Tensor& w = in[kW];
    if (definition_ != nullptr && (w.data == nullptr || context.reference)) return definition_->plan(context, in);
    std::string error;
    std::optional<ConvSize> size = conv_size(in[kX].shape, w.shape, groups_, &error);
    if (!size) return fail(error);
    std::optional<Window> window = make_window(attributes_, in[kX].shape, w.shape.span().subspan(2), &error);
    if (!window) return fail(error);
    if (auto why = check_zero_point(at(in, kXZero), "x_zero_point", 1, 1)) return fail(*why);
    if (auto why = check_zero_point(at(in, kWZero), "w_zero_point", size->out_channels, 1)) return fail(*why);
    const bool blocked = scaled_ && can_be_blocked(window->output_shape(size->batch, size->out_channels));
    const ConvIntegerWork conv{*size, *window, scaled_, blocked, post_ops_};
    Plan plan =
        conv.in_group() == 1 && conv.out_group() == 1 ? plan_depthwise(context, conv) : plan_products(context, conv, w);
    plan.input_formats.assign(in.size(), Format::kDense);
    plan.input_formats[kX] = Format::kChannelsLast;
    if (blocked) plan.output_format = Format::kBlocked;
    return plan;
  }

  bool append(PostOp&& op) override {
    const bool fits = scaled_ && op.kind != PostOp::kAdd && groups_ == 1;
    if (fits) post_ops_.push_back(std::move(op));
    return fits;
  }

 private:
  static Shape shape_of(const ConvIntegerWork& conv) {
    return conv.window.output_shape(conv.size.batch, conv.size.out_channels);
  }

  static Plan plan_depthwise(const PlanContext& context, const ConvIntegerWork& conv) {
    const int64_t words = (conv.taps() + context.threads * kPositionsTogether) * conv.size.out_channels;
    return make_plan({shape_of(conv)},
                     [conv](Tensors in, Tensors out, void* scratch) { run_depthwise(conv, in, out[0], scratch); },
                     {.scratch_bytes = words * int64_t{sizeof(int32_t)}});
  }

  Plan plan_products(const PlanContext& context, const ConvIntegerWork& conv, const Tensor& w) const {
    // Return early if the result is empty, or too large (an error).
    if (Plan plain = make_plan({shape_of(conv)}, [](Tensors, Tensors) {});
        !plain.step || plain.shapes[0].elements() == 0)
      return plain;
    MatMulSize size{conv.window.out_size(), conv.out_group(), conv.taps() * conv.in_group(), {}, {}, shape_of(conv)};
    size.a_offsets.add_axis(conv.size.batch, conv.size.batch).add_axis(groups_, groups_);
    size.b_offsets.add_axis(conv.size.batch, 1).add_axis(groups_, groups_);
    const int64_t sums_bytes = align_up(size.m * size.n * int64_t{sizeof(int32_t)});
    IntegerGemm products(context.threads, size);
    // [tap][input channel][output channel of the group]
    std::vector<uint8_t> transposed(static_cast<size_t>(size.k * size.n));
    products.pack(packed_, w, groups_, [&](int64_t group) {
      const auto* from = w.as<uint8_t>() + group * size.k * size.n;
      for (int64_t o = 0; o < size.n; ++o) {
        for (int64_t c = 0; c < conv.in_group(); ++c) {
          for (int64_t t = 0; t < conv.taps(); ++t)
            transposed[static_cast<size_t>((t * conv.in_group() + c) * size.n + o)] = *from++;
        }
      }
      return transposed.data();
    });
    const int64_t scratch_bytes = sums_bytes + products.scratch_bytes();
    Plan plan = make_plan({shape_of(conv)},
                          [conv, products = std::move(products), sums_bytes](Tensors in, Tensors out, void* scratch) {
                            run_products(conv, products, in, out[0], scratch, sums_bytes);
                          },
                          {.scratch_bytes = scratch_bytes});
    plan.packed = kW;
    return plan;
  }

  WindowAttributes attributes_;
  int64_t groups_;
  bool scaled_;
  std::unique_ptr<Kernel> definition_;
  std::vector<PostOp> post_ops_;
  mutable PackedWeights packed_;
};

}  // namespace

std::unique_ptr<Kernel> make_conv_integer(const Node& conv, std::unique_ptr<Kernel> definition) {
  return std::make_unique<ConvInteger>(conv, false, std::move(definition));
}

std::unique_ptr<Kernel> make_scaled_conv(const Node& conv) {
  return std::make_unique<ConvInteger>(conv, true, nullptr);
}

}  // namespace backplane::cpu
