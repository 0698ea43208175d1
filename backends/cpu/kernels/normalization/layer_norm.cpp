// SPDX-License-Identifier: Apache-2.0
// LayerNormalization, RMSNormalization, InstanceNormalization, GroupNormalization, MeanVarianceNormalization and
// LpNormalization. Means and variances are computed in two passes: in double, or for contiguous rows of floats in
// vectorized loops in fp32.
#include "kernels/normalization/layer_norm.h"

#include <array>
#include <cmath>

#include "kernels/common/broadcast.h"
#include "kernels/common/function_kernel.h"
#include "kernels/common/odometer.h"
#include "kernels/common/support.h"
#include "kernels/simd/clones.h"
#include "kernels/simd/vector_math.h"
#include "runtime/implementations.h"
#include "runtime/parallel.h"

namespace backplane::cpu {
namespace {

struct Statistics {
  double mean = 0, inverse = 0;  // `inverse`: 1 / standard deviation
};

template <class T>
Statistics statistics(const T* x, int64_t n, double epsilon, bool centred) {
  double mean = 0, squares = 0;
  if (centred) {
    for (int64_t i = 0; i < n; ++i) mean += static_cast<double>(x[i]);
    mean /= static_cast<double>(n);
  }
  for (int64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(x[i]) - mean;
    squares += d * d;
  }
  return {mean, 1 / std::sqrt(squares / static_cast<double>(n) + epsilon)};
}

// ---- LayerNormalization, RMSNormalization --------------------------------------------------------------------------

template <bool kCentred>
Verdict supports_layer_norm(const Node& node) {
  if (const int64_t stash = node.attr("stash_type", int64_t{1}); stash != 1 && stash != BP_DTYPE_DOUBLE)
    return no(BP_REASON_ATTRIBUTE, "stash_type is " + std::to_string(stash) + "; it must be 1 (FLOAT) or " +
                                       std::to_string(BP_DTYPE_DOUBLE) + " (DOUBLE)");
  if (Verdict verdict = accepts(node, 2, {kFloatTypes, kFloatTypes, kCentred ? kFloatTypes : 0}); !verdict)
    return verdict;
  if (node.has_input(2))
    if (Verdict verdict = same_type(node, 0, 2); !verdict) return verdict;
  return kCentred ? same_type(node, 0, 1) : yes();
}

// T is the type of the input, V that of scale, bias and result. LayerNormalization (kCentred) requires V = T.
template <class T, class V, bool kCentred>
void layer_norm(Tensors in, Tensors out, int64_t rows, int64_t n, float epsilon, const Broadcast<2>& walk) {
  const T* x = in[0].as<T>();
  const V *scale = in[1].as<V>(), *bias = at(in, 2).as<V>();
  V* y = out[0].as<V>();
  parallel(rows, std::max<int64_t>(1, kMathGrain / n), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const Statistics s = statistics(x + row * n, n, epsilon, kCentred);
      const auto stash = [&](size_t slot, double value) {
        const Tensor t = at(out, slot);
        if (t.data == nullptr) return;
        if (t.dtype == BP_DTYPE_DOUBLE)
          t.as<double>()[row] = value;
        else
          t.as<float>()[row] = static_cast<float>(value);
      };
      stash(1, s.mean);
      stash(2, s.inverse);
      walk.rows(row * n, row * n + n, [&](int64_t at, const std::array<int64_t, 2>& offset, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
          const double value = (static_cast<double>(x[at + i]) - s.mean) * s.inverse *
                               static_cast<double>(scale[offset[0] + i * walk.inner_stride(0)]);
          const double shift = bias == nullptr ? 0 : static_cast<double>(bias[offset[1] + i * walk.inner_stride(1)]);
          y[at + i] = static_cast<V>(static_cast<compute_t<V>>(value + shift));
        }
      });
    }
  });
}

// Sets the means and inverse deviations to NaN when rows have no elements.
void write_empty_statistics(Tensors out) {
  for (size_t slot : {1u, 2u}) {
    const Tensor t = at(out, slot);
    if (t.data == nullptr) continue;
    parallel(t.shape.elements(), kCheapGrain, [&](int64_t begin, int64_t end) {
      if (t.dtype == BP_DTYPE_DOUBLE)
        std::fill(t.as<double>() + begin, t.as<double>() + end, std::nan(""));
      else
        std::fill(t.as<float>() + begin, t.as<float>() + end, std::nanf(""));
    });
  }
}

// The usual case: floats, with one scale, and optionally one bias, for each element of a row.
template <bool kCentred>
void layer_norm_rows_of_floats(Tensors in, Tensors out, int64_t rows, int64_t n, float epsilon) {
  const Tensor bias = at(in, 2), mean = at(out, 1), inverse = at(out, 2);
  parallel(rows, 1 + kCheapGrain / 2 / n, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float *x = in[0].as<float>() + row * n, *gain = in[1].as<float>();
      float* y = out[0].as<float>() + row * n;
      if constexpr (!kCentred) {
        rms_row(x, gain, epsilon, y, n);
        continue;
      }
      const RowStatistics s = normalize_row(x, gain, bias.as<float>(), epsilon, y, n);
      const auto stash = [&](const Tensor& t, float value) {
        if (t.data == nullptr) return;
        if (t.dtype == BP_DTYPE_DOUBLE)
          t.as<double>()[row] = static_cast<double>(value);
        else
          t.as<float>()[row] = value;
      };
      stash(mean, s.mean);
      stash(inverse, s.inverse);
    }
  });
}

// Input to the implementations in kLayerNorms: a normalization for one set of extents, as `rows` rows of `n` elements.
struct LayerNormProblem {
  Tensors inputs;
  Shape shape, stashed;  // of the result and of the statistics
  int axis;
  int64_t rows, n;
  float epsilon;
  Broadcast<2> walk;
};

// Whether there is one number for each element of a row, the same for all rows. ([3, 1] has one per row instead.)
bool is_per_element(const LayerNormProblem& p, const Tensor& t) {
  if (!t.present()) return true;
  const int before = std::max(0, p.axis - p.shape.rank() + t.shape.rank());
  return t.dtype == BP_DTYPE_FLOAT && t.shape.elements() == p.n && t.shape.elements(0, before) == 1;
}

const char* refuse_rows(const PlanContext&, LayerNormProblem& p) {
  if (p.inputs[0].dtype != BP_DTYPE_FLOAT) return "the elements are not fp32";
  if (p.n == 0) return "the rows are empty";
  return is_per_element(p, p.inputs[1]) && is_per_element(p, at(p.inputs, 2))
             ? nullptr
             : "scale or bias do not have one fp32 number for each element of a row";
}
template <bool kCentred>
Plan plan_rows(const PlanContext&, LayerNormProblem& p) {
  return make_plan({p.shape, p.stashed, p.stashed},
                   [rows = p.rows, n = p.n, epsilon = p.epsilon](Tensors in, Tensors out) {
                     layer_norm_rows_of_floats<kCentred>(in, out, rows, n, epsilon);
                   },
                   {.inplace = 0});
}

template <bool kCentred>
Plan plan_direct(const PlanContext&, LayerNormProblem& p) {
  return make_plan({p.shape, p.stashed, p.stashed},
                   [rows = p.rows, n = p.n, epsilon = p.epsilon, walk = p.walk](Tensors in, Tensors out) {
                     if (n == 0) return write_empty_statistics(out);
                     dispatch<Floats>(in[0].dtype, [&](auto tag) {
                       using T = typename decltype(tag)::type;
                       if constexpr (kCentred) {
                         layer_norm<T, T, true>(in, out, rows, n, epsilon, walk);
                       } else {
                         dispatch<Floats>(in[1].dtype, [&](auto scale_tag) {
                           layer_norm<T, typename decltype(scale_tag)::type, false>(in, out, rows, n, epsilon, walk);
                         });
                       }
                     });
                   });
}

template <bool kCentred>
constexpr std::array kLayerNorms = {
    Implementation<LayerNormProblem>{"rows", refuse_rows, plan_rows<kCentred>},
    Implementation<LayerNormProblem>{"direct", nullptr, plan_direct<kCentred>},
};
ImplementationNames implementations() {
  return names_of("layernorm", kLayerNorms<true>);
}

template <bool kCentred>
std::unique_ptr<Kernel> layer_norm_kernel(int64_t axis_attribute, float epsilon) {
  return make_kernel([axis_attribute, epsilon](const PlanContext& context, Tensors inputs) -> Plan {
    const Shape shape = inputs[0].shape, scale = inputs[1].shape;
    const int axis = axis_of(axis_attribute, shape.rank());
    if (axis < 0) return bad_axis(axis_attribute, shape.rank());
    const Tensor bias = at(inputs, 2);
    for (const Shape& affine : {scale, bias.present() ? bias.shape : scale}) {
      const Shape both[] = {shape, affine};
      if (const auto joint = broadcast_shape(both); !joint || !(*joint == shape))
        return fail("scale or bias of shape " + to_string(affine) + " does not broadcast to " + to_string(shape));
    }
    Shape stashed = shape;
    for (int d = axis; d < shape.rank(); ++d) stashed[d] = 1;
    const int64_t rows = shape.elements(0, axis), n = shape.elements(axis, shape.rank());
    const Broadcast<2> walk(shape, {scale, bias.present() ? bias.shape : scale});
    LayerNormProblem problem{inputs, shape, stashed, axis, rows, n, epsilon, walk};
    return plan_best(context, "layernorm", kLayerNorms<kCentred>, problem);
  });
}

template <bool kCentred>
std::unique_ptr<Kernel> create_layer_norm(const Node& node) {
  return layer_norm_kernel<kCentred>(node.attr("axis", int64_t{-1}), node.attr("epsilon", 1e-5f));
}

// ---- InstanceNormalization, GroupNormalization ---------------------------------------------------------------------

Verdict supports_group_norm(const Node& node) {
  if (Verdict verdict = accepts(node, 3, {kFloatTypes, kFloatTypes, kFloatTypes}); !verdict) return verdict;
  if (Verdict verdict = same_type(node, 0, 1); !verdict) return verdict;
  return same_type(node, 0, 2);
}

template <int kBytes>
CLONED Statistics statistics_of_floats(const float* x, int64_t n, double epsilon) {
  const auto [mean, square] = moments_of<kBytes>(x, n);
  return {mean, 1 / std::sqrt(static_cast<double>(square) / static_cast<double>(n) + epsilon)};
}

CLONED void move_and_scale(const float* x, float* y, int64_t n, float mean, float scale, float bias) {
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * scale + bias;
}

// `groups`: 0 for InstanceNormalization, where each channel is a group.
Plan plan_group_norm(const PlanContext& context, Tensors inputs, int64_t groups, float epsilon) {
  const Shape shape = inputs[0].shape;
  if (shape.rank() < 2) return fail("input of shape " + to_string(shape) + " has no channel dimension");
  const int64_t channels = shape[1], pixels = shape.elements(2, shape.rank());
  const int64_t count = groups == 0 ? channels : groups;
  if (count > 0 && channels % count != 0)
    return fail("num_groups is " + std::to_string(count) + ", which does not divide " + std::to_string(channels) +
                " channels");
  for (size_t i : {1u, 2u})
    if (!(inputs[i].shape == Shape{channels}))
      return fail((i == 1 ? "scale of shape " : "bias of shape ") + to_string(inputs[i].shape) + " does not fit " +
                  std::to_string(channels) + " channels");
  return make_plan({shape}, [=, plain = context.reference](Tensors in, Tensors out) {
    if (shape.elements() == 0) return;
    dispatch<Floats>(in[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const int64_t n = channels / count * pixels;
      const auto statistics_of = [&](const T* x) {
        if constexpr (std::is_same_v<T, float>) {
          if (!plain)
            return clone_of<statistics_of_floats<64>, statistics_of_floats<32>, statistics_of_floats<16>>(x, n,
                                                                                                          epsilon);
        }
        return statistics(x, n, epsilon, true);
      };
      parallel(shape[0] * count, std::max<int64_t>(1, kMathGrain / n), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* x = in[0].as<T>() + row * n;
          T* y = out[0].as<T>() + row * n;
          const Statistics s = statistics_of(x);
          for (int64_t i = 0; i < n; i += pixels) {
            const int64_t channel = row % count * (channels / count) + i / pixels;
            const double scale = static_cast<double>(in[1].as<T>()[channel]) * s.inverse,
                         bias = static_cast<double>(in[2].as<T>()[channel]);
            if constexpr (std::is_same_v<T, float>) {
              if (!plain) {
                clone_of<move_and_scale>(x + i, y + i, pixels, static_cast<float>(s.mean), static_cast<float>(scale),
                                         in[2].as<float>()[channel]);
                continue;
              }
            }
            for (int64_t p = i; p < i + pixels; ++p)
              y[p] = static_cast<T>(static_cast<compute_t<T>>((static_cast<double>(x[p]) - s.mean) * scale + bias));
          }
        }
      });
    });
  });
}

std::unique_ptr<Kernel> create_instance_norm(const Node& node) {
  return make_kernel([epsilon = node.attr("epsilon", 1e-5f)](const PlanContext& context, Tensors inputs) {
    return plan_group_norm(context, inputs, 0, epsilon);
  });
}

std::unique_ptr<Kernel> create_group_norm(const Node& node) {
  return make_kernel([groups = node.attr("num_groups", int64_t{1}), epsilon = node.attr("epsilon", 1e-5f)](
                         const PlanContext& context, Tensors inputs) -> Plan {
    if (groups < 1) return fail("num_groups is " + std::to_string(groups) + "; it must be positive");
    return plan_group_norm(context, inputs, groups, epsilon);
  });
}

// ---- MeanVarianceNormalization, LpNormalization: over any axes -----------------------------------------------------

Verdict supports_one(const Node& node) {
  return accepts(node, 1, {kFloatTypes});
}

Verdict supports_lp(const Node& node) {
  const int64_t p = node.attr("p", int64_t{2});
  return p == 1 || p == 2 ? supports_one(node)
                          : no(BP_REASON_ATTRIBUTE, "p is " + std::to_string(p) + "; it must be 1 or 2");
}

// Calls normalize(x, y, group) for each group of elements, in parallel. They lie at the offsets `group` from x and y.
template <class Normalize>
Plan plan_over_axes(const Shape& shape, uint64_t axes, Normalize normalize) {
  Dimensions kept, group;
  const Shape strides = strides_of(shape);
  for (int d = 0; d < shape.rank(); ++d) (axes >> d & 1 ? group : kept).add(shape[d], strides[d]);
  return make_plan({shape}, [=](Tensors in, Tensors out) {
    if (shape.elements() == 0) return;
    dispatch<Floats>(in[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      parallel(kept.positions(), std::max<int64_t>(1, kMathGrain / group.positions()), [&](int64_t begin, int64_t end) {
        Odometer start(kept, begin);
        for (int64_t i = begin; i < end; ++i, start.next())
          normalize(in[0].as<T>() + start.offset(), out[0].as<T>() + start.offset(), group);
      });
    });
  });
}

template <class F>
void for_offsets(const Dimensions& dimensions, const F& f) {
  Odometer position(dimensions);
  for (int64_t n = dimensions.positions(); n > 0; --n, position.next()) f(position.offset());
}

std::unique_ptr<Kernel> create_mean_variance(const Node& node) {
  std::vector<int64_t> axes = node.ints("axes");
  if (node.find("axes") == nullptr) axes = {0, 2, 3};
  return make_kernel([axes](Tensors inputs) -> Plan {
    const auto set = axis_set(axes, inputs[0].shape.rank());
    if (!set) return fail(axes_error(axes, inputs[0].shape.rank()));
    return plan_over_axes(inputs[0].shape, *set, []<class T>(const T* x, T* y, const Dimensions& group) {
      double mean = 0, squares = 0;
      for_offsets(group, [&](int64_t at) { mean += static_cast<double>(x[at]); });
      mean /= static_cast<double>(group.positions());
      for_offsets(group, [&](int64_t at) {
        squares += (static_cast<double>(x[at]) - mean) * (static_cast<double>(x[at]) - mean);
      });
      const double deviation = std::sqrt(squares / static_cast<double>(group.positions())) + 1e-9;
      for_offsets(group, [&](int64_t at) {
        y[at] = static_cast<T>(static_cast<compute_t<T>>((static_cast<double>(x[at]) - mean) / deviation));
      });
    });
  });
}

// Divides the elements at the offsets `group` by their p-norm. If all are zero, they stay zero.
template <class T>
void divide_by_norm(int64_t p, const T* x, T* y, const Dimensions& group) {
  double norm = 0;
  for_offsets(group, [&](int64_t at) {
    norm += p == 1 ? std::fabs(static_cast<double>(x[at])) : static_cast<double>(x[at]) * static_cast<double>(x[at]);
  });
  if (p == 2) norm = std::sqrt(norm);
  for_offsets(group, [&](int64_t at) {
    y[at] = static_cast<T>(static_cast<compute_t<T>>(norm == 0 ? 0 : static_cast<double>(x[at]) / norm));
  });
}

// Returns the p-norm of a row.
template <int kBytes>
CLONED float norm_of_row(const float* x, int64_t n, int64_t p) {
  using Lanes = FloatLanes<kBytes>;
  const int64_t whole = n - n % kFloatLanes;
  Lanes sums = Lanes::all(0);
  float norm = 0;
  if (p == 2) {
    for (int64_t i = 0; i < whole; i += kFloatLanes) {
      const Lanes v = Lanes::load(x + i);
      sums = sums + v * v;
    }
    for (int64_t i = whole; i < n; ++i) norm += x[i] * x[i];
    return std::sqrt(norm + sums.sum());
  }
  for (int64_t i = 0; i < whole; i += kFloatLanes) {
    const Lanes v = Lanes::load(x + i);
    sums = sums + v.or_larger(Lanes::all(0) - v);
  }
  for (int64_t i = whole; i < n; ++i) norm += std::fabs(x[i]);
  return norm + sums.sum();
}
CLONED void divide_row(const float* x, float* y, int64_t n, float norm) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] / norm;
}

Plan plan_lp_rows(const Shape& shape, int64_t p) {
  const int64_t n = shape[shape.rank() - 1], rows = shape.elements(0, shape.rank() - 1);
  return make_plan({shape},
                   [=](Tensors in, Tensors out) {
                     parallel(rows, 1 + kCheapGrain / (1 + n), [&](int64_t begin, int64_t end) {
                       Dimensions whole;
                       whole.add(n, 1);
                       for (int64_t row = begin; row < end; ++row) {
                         const float* x = in[0].as<float>() + row * n;
                         float* y = out[0].as<float>() + row * n;
                         const float norm = clone_of<norm_of_row<64>, norm_of_row<32>, norm_of_row<16>>(x, n, p);
                         // For a norm outside this range, squares in fp32 may be imprecise, 0 or infinite.
                         if (norm > 0x1p-50f && norm < 0x1p60f)
                           clone_of<divide_row>(x, y, n, norm);
                         else
                           divide_by_norm(p, x, y, whole);
                       }
                     });
                   },
                   {.inplace = 0});
}

std::unique_ptr<Kernel> create_lp(const Node& node) {
  return make_kernel([axis_attribute = node.attr("axis", int64_t{-1}), p = node.attr("p", int64_t{2})](
                         const PlanContext& context, Tensors inputs) -> Plan {
    const int axis = axis_of(axis_attribute, inputs[0].shape.rank());
    if (axis < 0) return bad_axis(axis_attribute, inputs[0].shape.rank());
    if (axis == inputs[0].shape.rank() - 1 && inputs[0].dtype == BP_DTYPE_FLOAT && !context.reference)
      return plan_lp_rows(inputs[0].shape, p);
    return plan_over_axes(inputs[0].shape, uint64_t{1} << axis,
                          [p](const auto* x, auto* y, const Dimensions& group) { divide_by_norm(p, x, y, group); });
  });
}

template <int kBytes>
CLONED float rms(const float* x, const float* gain, float epsilon, float* y, int64_t n) {
  using Lanes = FloatLanes<kBytes>;
  const int64_t whole = n - n % kFloatLanes;
  Lanes squares = Lanes::all(0);
  for (int64_t i = 0; i < whole; i += kFloatLanes) {
    const Lanes v = Lanes::load(x + i);
    squares = squares + v * v;
  }
  float square = squares.sum();
  for (int64_t i = whole; i < n; ++i) square += x[i] * x[i];
  const float inverse = 1.0f / std::sqrt(square / static_cast<float>(n) + epsilon);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * inverse * gain[i];
  return inverse;
}

}  // namespace

std::unique_ptr<Kernel> make_layer_norm(int64_t axis, float epsilon) {
  return layer_norm_kernel<true>(axis, epsilon);
}

float rms_row(const float* x, const float* gain, float epsilon, float* y, int64_t n) {
  return clone_of<rms<64>, rms<32>, rms<16>>(x, gain, epsilon, y, n);
}

[[gnu::cold]] std::span<const Row> layer_norm_rows() {
  static constexpr Row kRows[] = {
      Row{"", "LayerNormalization", 17, supports_layer_norm<true>, create_layer_norm<true>}.in_fp32().choosing(
          implementations),
      Row{"", "RMSNormalization", 23, supports_layer_norm<false>, create_layer_norm<false>}.in_fp32().choosing(
          implementations),
      Row{"", "InstanceNormalization", 6, supports_group_norm, create_instance_norm}.in_fp32(),
      Row{"", "GroupNormalization", 21, supports_group_norm, create_group_norm}.in_fp32(),
      Row{"", "MeanVarianceNormalization", 9, supports_one, create_mean_variance}.in_fp32(),
      Row{"", "LpNormalization", 1, supports_lp, create_lp}.in_fp32(),
  };
  return kRows;
}

}  // namespace backplane::cpu
