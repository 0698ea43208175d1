// SPDX-License-Identifier: Apache-2.0
// ConvTranspose. In fp32, a matrix product computes what each input element adds to each of the outputs that it
// reaches; a loop then adds these terms up.
#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/common/window.h"
#include "kernels/onednn/onednn.h"
#include "runtime/memory.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

struct Transposed {
  Window w;  // `in` and `out` are this operator's input and output; the window slides over the output
  int64_t batch, groups, in_group, out_group;
};

// Calls f(input position, output position) for each pair that position k of the kernel connects.
template <class F>
void each_overlap(const Window& w, int64_t k, const F& f) {
  Spatial position{k / (w.kernel[1] * w.kernel[2]), k / w.kernel[2] % w.kernel[1], k % w.kernel[2]};
  Spatial first, last, shift;
  for (size_t d = 0; d < kSpatial; ++d) {
    shift[d] = position[d] * w.dilation[d] - w.begin[d];  // the output position is input · stride + shift
    first[d] = shift[d] >= 0 ? 0 : (-shift[d] + w.stride[d] - 1) / w.stride[d];
    last[d] = std::min(w.in[d], w.out[d] - shift[d] <= 0 ? 0 : (w.out[d] - shift[d] + w.stride[d] - 1) / w.stride[d]);
  }
  for (int64_t z = first[0]; z < last[0]; ++z) {
    for (int64_t y = first[1]; y < last[1]; ++y) {
      int64_t in_row = (z * w.in[1] + y) * w.in[2];
      int64_t out_row = ((z * w.stride[0] + shift[0]) * w.out[1] + y * w.stride[1] + shift[1]) * w.out[2] + shift[2];
      for (int64_t x = first[2]; x < last[2]; ++x) f(in_row + x, out_row + x * w.stride[2]);
    }
  }
}

void run_float(const Transposed& t, Tensors in, Tensors out, float* product) {
  const Window& w = t.w;
  int64_t rows = t.out_group * w.kernel_size();
  const float* bias = at(in, 2).present() ? in[2].as<float>() : nullptr;
  for (int64_t i = 0; i < t.batch * t.groups; ++i) {
    int64_t group = i % t.groups;
    sgemm(rows, w.in_size(), t.in_group, 1, {in[1].as<float>() + group * t.in_group * rows, rows, true},
          {in[0].as<float>() + i * t.in_group * w.in_size(), w.in_size()}, 0, product, w.in_size());
    parallel(t.out_group, 1 + kCheapGrain / (1 + w.in_size() * w.kernel_size()), [&](int64_t begin, int64_t end) {
      Pace pace;
      for (int64_t oc = begin; oc < end; ++oc) {
        float* y = out[0].as<float>() + (i * t.out_group + oc) * w.out_size();
        std::fill_n(y, w.out_size(), bias == nullptr ? 0.0f : bias[group * t.out_group + oc]);
        for (int64_t k = 0; k < w.kernel_size(); ++k) {
          pace.spend(w.in_size());
          const float* add = product + (oc * w.kernel_size() + k) * w.in_size();
          each_overlap(w, k, [&](int64_t from, int64_t to) { y[to] += add[from]; });
        }
      }
    });
  }
}

template <class T>
void run_plain(const Transposed& t, Tensors in, Tensors out) {
  using C = compute_t<T>;
  const Window& w = t.w;
  const T* x = in[0].as<T>();
  const T* weights = in[1].as<T>();
  const T* bias = at(in, 2).present() ? in[2].as<T>() : nullptr;
  parallel(t.batch * t.groups * t.out_group, 1, [&](int64_t begin, int64_t end) {
    Pace pace;
    require_memory(w.out_size(), sizeof(C));
    std::vector<C> sums(static_cast<size_t>(w.out_size()));
    for (int64_t plane = begin; plane < end; ++plane) {
      int64_t image_group = plane / t.out_group;
      int64_t group = image_group % t.groups;
      int64_t oc = plane % t.out_group;
      std::fill(sums.begin(), sums.end(), bias == nullptr ? C{0} : static_cast<C>(bias[group * t.out_group + oc]));
      for (int64_t c = 0; c < t.in_group; ++c) {
        const T* source = x + (image_group * t.in_group + c) * w.in_size();
        const T* factors = weights + ((group * t.in_group + c) * t.out_group + oc) * w.kernel_size();
        for (int64_t k = 0; k < w.kernel_size(); ++k) {
          pace.spend(w.in_size());
          C factor = static_cast<C>(factors[k]);
          each_overlap(w, k, [&](int64_t from, int64_t to) {
            sums[static_cast<size_t>(to)] += factor * static_cast<C>(source[from]);
          });
        }
      }
      T* y = out[0].as<T>() + plane * w.out_size();
      for (int64_t o = 0; o < w.out_size(); ++o) y[o] = static_cast<T>(sums[static_cast<size_t>(o)]);
    }
  });
}

struct Attributes {
  WindowAttributes window;
  std::vector<int64_t> output_padding;
  std::vector<int64_t> output_shape;
  int64_t groups;
};

std::optional<Window> transposed_window(const Attributes& a, const Shape& x, const Shape& weights, std::string* error) {
  Window w;
  w.dims = x.rank() - 2;
  auto dims = static_cast<size_t>(w.dims);
  auto pick = [&](const std::vector<int64_t>& list, size_t i, int64_t fallback) {
    return i < list.size() ? list[i] : fallback;
  };
  // Some models have N and C in output_shape too.
  size_t skip = a.output_shape.size() == dims + 2 ? 2 : 0;
  for (size_t i = 0; i < dims; ++i) {
    size_t d = kSpatial - dims + i;
    w.in[d] = x[static_cast<int>(i) + 2];
    w.kernel[d] = weights[static_cast<int>(i) + 2];
    const int64_t extra = pick(a.output_padding, i, 0), wanted = pick(a.output_shape, i + skip, 1);
    if (w.kernel[d] < 1 || extra < 0 || wanted < 0 || std::max({w.in[d], w.kernel[d], extra, wanted}) > INT32_MAX) {
      *error = "kernel extent " + std::to_string(w.kernel[d]) + ", input extent " + std::to_string(w.in[d]) +
               ", output_padding " + std::to_string(extra) + " or output_shape " + std::to_string(wanted) +
               " is out of range";
      return std::nullopt;
    }
    w.stride[d] = pick(a.window.strides, i, 1);
    w.dilation[d] = pick(a.window.dilations, i, 1);
    int64_t full = w.stride[d] * (w.in[d] - 1) + extra + (w.kernel[d] - 1) * w.dilation[d] + 1;
    bool same = a.window.auto_pad.starts_with("SAME");
    if (!a.output_shape.empty() || same) {
      w.out[d] = a.output_shape.empty() ? w.in[d] * w.stride[d] : wanted;
      int64_t total = std::max<int64_t>(0, full - w.out[d]);
      w.begin[d] = a.window.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    } else {
      bool padded = a.window.auto_pad == "NOTSET";
      w.begin[d] = padded ? pick(a.window.pads, i, 0) : 0;
      w.out[d] = full - w.begin[d] - (padded ? pick(a.window.pads, i + dims, 0) : 0);
    }
    if (w.out[d] < 0) {
      *error = "dimension " + std::to_string(i + 2) + " of the output would have extent " + std::to_string(w.out[d]);
      return std::nullopt;
    }
  }
  return w;
}

Plan plan(const Attributes& a, Tensors inputs) {
  const Shape& x = inputs[0].shape;
  const Shape& weights = inputs[1].shape;
  if (x.rank() < 3 || x.rank() > 2 + kSpatial || weights.rank() != x.rank() || x[1] != weights[0] || a.groups < 1 ||
      x[1] % a.groups != 0) {
    return fail("input " + to_string(x) + " and weights " + to_string(weights) + " do not fit " +
                std::to_string(a.groups) + " groups");
  }
  std::string error;
  std::optional<Window> w = transposed_window(a, x, weights, &error);
  if (!w) return fail(error);
  Transposed t{*w, x[0], a.groups, x[1] / a.groups, weights[1]};
  if (Tensor bias = at(inputs, 2); bias.present() && bias.shape.elements() != t.groups * t.out_group) {
    return fail("the bias " + to_string(bias.shape) + " does not fit " + std::to_string(t.groups * t.out_group) +
                " channels");
  }
  Shape shape = w->output_shape(t.batch, t.groups * t.out_group);
  if (inputs[0].dtype == BP_DTYPE_FLOAT) {
    const int64_t scratch = product({t.out_group, w->kernel_size(), w->in_size(), static_cast<int64_t>(sizeof(float))});
    return make_plan({shape},
                     [t](Tensors in, Tensors out, void* memory) { run_float(t, in, out, static_cast<float*>(memory)); },
                     {.scratch_bytes = scratch});
  }
  return make_plan({shape}, [t](Tensors in, Tensors out) {
    dispatch<Floats>(in[0].dtype, [&](auto tag) { run_plain<typename decltype(tag)::type>(t, in, out); });
  });
}

Verdict supports(const Node& node) {
  if (Verdict v = accepts(node, 2, {kFloatTypes, kFloatTypes, kFloatTypes}); !v) return v;
  if (Verdict v = same_type(node, 0, 1); !v) return v;
  if (node.has_input(2)) {
    if (Verdict v = same_type(node, 0, 2); !v) return v;
  }
  return check_window(node);
}

std::unique_ptr<Kernel> create(const Node& node) {
  Attributes a{WindowAttributes(node), node.ints("output_padding"), node.ints("output_shape"),
               node.attr("group", int64_t{1})};
  return make_kernel([a](Tensors inputs) { return plan(a, inputs); });
}

double operations(const Node& node) {
  return 2 * node.input_elements(0) * node.input_elements(1) /
         static_cast<double>(std::max<int64_t>(1, node.input_extent(1, 0))) / std::max(1.0, node.output_elements(0));
}

}  // namespace

[[gnu::cold]] std::span<const Row> conv_transpose_rows() {
  static constexpr Row kRows[] = {
      Row{"", "ConvTranspose", 1, supports, create}.in_fp32(0b010).costing(operations),
  };
  return kRows;
}

}  // namespace backplane::cpu
