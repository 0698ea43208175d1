// SPDX-License-Identifier: Apache-2.0
// Inverses of window operators: MaxUnpool puts values back where MaxPool found them, Col2Im sums columns into an image.
#include <cstring>

#include "kernels/common/function_kernel.h"
#include "kernels/common/index.h"
#include "kernels/common/support.h"
#include "runtime/memory.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

std::vector<int64_t> or_default(std::vector<int64_t> values, size_t count, int64_t fallback) {
  if (values.empty()) values.assign(count, fallback);
  return values;
}

bool small(std::span<const int64_t> values, int64_t least) {
  return std::ranges::all_of(values, [&](int64_t v) { return v >= least && v <= INT32_MAX; });
}

// ---- MaxUnpool -----------------------------------------------------------------------------------------------------

Verdict supports_unpool(const Node& node) {
  if (node.ints("kernel_shape").empty()) return no(BP_REASON_ATTRIBUTE, "kernel_shape is missing");
  return accepts(node, 2, {kByteTypes, just(BP_DTYPE_INT64), just(BP_DTYPE_INT64)});
}

std::unique_ptr<Kernel> create_unpool(const Node& node) {
  const std::vector<int64_t> kernel = node.ints("kernel_shape");
  const auto strides = or_default(node.ints("strides"), kernel.size(), 1),
             pads = or_default(node.ints("pads"), 2 * kernel.size(), 0);
  return make_kernel([=](Tensors inputs) -> Plan {
    const Shape& from = inputs[0].shape;
    const Tensor wanted = at(inputs, 2);
    if (wanted.present() && !known(wanted)) return deferred();
    if (!(inputs[1].shape == from))
      return fail("the indices have shape " + to_string(inputs[1].shape) + ", but the input has shape " +
                  to_string(from));
    if (static_cast<size_t>(from.rank()) != kernel.size() + 2 || strides.size() != kernel.size() ||
        pads.size() != 2 * kernel.size())
      return fail("kernel_shape, strides and pads have " + std::to_string(kernel.size()) + ", " +
                  std::to_string(strides.size()) + " and " + std::to_string(pads.size()) +
                  " entries for an input of shape " + to_string(from) +
                  "; they must have one, one and two for each spatial dimension");
    if (!small(kernel, 1) || !small(strides, 1) || !small(pads, 0))
      return fail("kernel_shape and strides must be 1 to 2^31 - 1, and pads 0 to 2^31 - 1");
    Shape pooled{from[0], from[1]};  // the shape that the indices refer to
    for (size_t d = 0; d < kernel.size(); ++d)
      pooled.push_back(product({from[static_cast<int>(d) + 2] - 1, strides[d]}) - pads[d] - pads[d + kernel.size()] +
                       kernel[d]);
    Shape to = pooled;
    if (wanted.present()) {
      if (wanted.shape.elements() != from.rank())
        return fail("output_shape has " + std::to_string(wanted.shape.elements()) + " extents for an input of rank " +
                    std::to_string(from.rank()));
      to = Shape(integers(wanted));
      for (int d = 0; d < to.rank(); ++d)
        if (to[d] < pooled[d])
          return fail("output_shape " + to_string(to) + " is smaller than " + to_string(pooled) +
                      ", the shape that the indices refer to");
    }
    if (Plan plain = make_plan({to, pooled}, [](Tensors, Tensors) {}); !plain.step) return plain;
    return make_plan(
        {to}, [=, size = bytes_of(inputs[0].dtype, 1)](Tensors in, Tensors out) -> std::optional<std::string> {
          const Indices index(in[1]);
          const int64_t n = in[0].shape.elements(), limit = pooled.elements();
          std::memset(out[0].data, 0, static_cast<size_t>(to.elements() * size));
          const Shape pitch = strides_of(to);
          Pace pace;
          for (int64_t i = 0; i < n; ++i) {
            pace.spend(4);
            int64_t rest = index.raw(i), target = 0;
            if (rest < 0 || rest >= limit) return index.out_of_range(i, limit);
            for (int d = pooled.rank() - 1; d >= 0; rest /= pooled[d--]) target += rest % pooled[d] * pitch[d];
            std::memcpy(out[0].as<char>() + target * size, in[0].as<char>() + i * size, static_cast<size_t>(size));
          }
          return std::nullopt;
        });
  });
}

// ---- Col2Im --------------------------------------------------------------------------------------------------------

Verdict supports_col2im(const Node& node) {
  const bp_dtype_set_t added = set_of(NumbersAndBool{}) | just(BP_DTYPE_COMPLEX64) | just(BP_DTYPE_COMPLEX128);
  return accepts(node, 3, {added, just(BP_DTYPE_INT64), just(BP_DTYPE_INT64)});
}

// The windows along one spatial dimension.
struct Span {
  int64_t image, block, windows, stride, dilation, pad;
};

// Adds overlapping columns, or ORs them for BOOL. `parts` is 2 for complex elements, otherwise 1.
template <class T>
void col2im(const T* x, T* y, int64_t planes, int64_t parts, const std::vector<Span>& spans) {
  int64_t block = 1, windows = 1, image = 1;
  for (const Span& s : spans) {
    block *= s.block;
    windows *= s.windows;
    image *= s.image;
  }
  using Acc = std::conditional_t<kIsFloating<T>, double, uint64_t>;
  parallel(planes, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, block * windows)),
           [&](int64_t begin, int64_t end) {
             Pace pace;
             require_memory(product({image, parts}), sizeof(Acc));
             std::vector<Acc> sums(static_cast<size_t>(image * parts));
             for (int64_t plane = begin; plane < end; ++plane) {
               std::ranges::fill(sums, Acc(0));
               for (int64_t i = 0; i < block * windows; ++i) {
                 pace.spend(4);
                 int64_t in_block = i / windows, window = i % windows, at = 0, pitch = 1;
                 bool inside = true;
                 for (size_t d = spans.size(); d-- > 0;) {
                   const Span& s = spans[d];
                   const int64_t position = window % s.windows * s.stride + in_block % s.block * s.dilation - s.pad;
                   inside = inside && position >= 0 && position < s.image;
                   at += position * pitch;
                   pitch *= s.image;
                   window /= s.windows;
                   in_block /= s.block;
                 }
                 for (int64_t part = 0; inside && part < parts; ++part)
                   sums[static_cast<size_t>(at * parts + part)] +=
                       static_cast<Acc>(static_cast<compute_t<T>>(x[(plane * block * windows + i) * parts + part]));
               }
               for (int64_t i = 0; i < image * parts; ++i)
                 y[plane * image * parts + i] = static_cast<T>(static_cast<compute_t<T>>(sums[static_cast<size_t>(i)]));
             }
           });
}

std::unique_ptr<Kernel> create_col2im(const Node& node) {
  return make_kernel([strides_attribute = node.ints("strides"), pads_attribute = node.ints("pads"),
                      dilations_attribute = node.ints("dilations")](Tensors inputs) -> Plan {
    if (!known(inputs[1]) || !known(inputs[2])) return deferred();
    const std::vector<int64_t> image = integers(inputs[1]), block = integers(inputs[2]);
    const size_t n = image.size();
    const auto strides = or_default(strides_attribute, n, 1), pads = or_default(pads_attribute, 2 * n, 0),
               dilations = or_default(dilations_attribute, n, 1);
    const Shape& from = inputs[0].shape;
    if (from.rank() != 3) return fail("the input has shape " + to_string(from) + "; it must have three dimensions");
    if (n == 0 || n > 30) return fail("image_shape has " + std::to_string(n) + " extents; it must have 1 to 30");
    if (block.size() != n || strides.size() != n || pads.size() != 2 * n || dilations.size() != n)
      return fail("block_shape, strides, pads and dilations have " + std::to_string(block.size()) + ", " +
                  std::to_string(strides.size()) + ", " + std::to_string(pads.size()) + " and " +
                  std::to_string(dilations.size()) + " entries for an image of " + std::to_string(n) +
                  " dimensions; pads must have two for each dimension, the others one");
    if (!small(image, 1) || !small(block, 1) || !small(strides, 1) || !small(pads, 0) || !small(dilations, 1))
      return fail("image_shape, block_shape, strides and dilations must be 1 to 2^31 - 1, and pads 0 to 2^31 - 1");
    std::vector<Span> spans;
    int64_t windows = 1, blocks = 1;
    for (size_t d = 0; d < n; ++d) {
      const int64_t reach = dilations[d] * (block[d] - 1) + 1, padded = image[d] + pads[d] + pads[d + n];
      const int64_t count = padded < reach ? 0 : (padded - reach) / strides[d] + 1;
      spans.push_back({image[d], block[d], count, strides[d], dilations[d], pads[d]});
      if (__builtin_mul_overflow(windows, count, &windows) || __builtin_mul_overflow(blocks, block[d], &blocks))
        return fail("the number of windows, or of elements in a block, exceeds 2^63 - 1");
    }
    if (from[2] != windows || from[1] % blocks != 0)
      return fail("an input of shape " + to_string(from) + " does not fit " + std::to_string(windows) + " windows of " +
                  std::to_string(blocks) + " elements");
    Shape to{from[0], from[1] / blocks};
    for (int64_t extent : image) to.push_back(extent);
    return make_plan({to}, [spans, planes = to[0] * to[1]](Tensors in, Tensors out) {
      const bp_dtype_t dtype = in[0].dtype;
      if (dtype == BP_DTYPE_COMPLEX64) return col2im(in[0].as<float>(), out[0].as<float>(), planes, 2, spans);
      if (dtype == BP_DTYPE_COMPLEX128) return col2im(in[0].as<double>(), out[0].as<double>(), planes, 2, spans);
      dispatch<NumbersAndBool>(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        col2im(in[0].as<T>(), out[0].as<T>(), planes, 1, spans);
      });
    });
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> unpool_rows() {
  static constexpr Row kRows[] = {
      {"", "MaxUnpool", 9, supports_unpool, create_unpool},
      {"", "Col2Im", 18, supports_col2im, create_col2im},
  };
  return kRows;
}

}  // namespace backplane::cpu
