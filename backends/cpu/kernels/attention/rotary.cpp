// SPDX-License-Identifier: Apache-2.0
// RotaryEmbedding of ONNX and of com.microsoft, which differ in the order of their inputs.
#include "kernels/attention/rotary.h"

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/simd/clones.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

namespace {

struct Rotation {
  size_t cosine, sine, positions;  // indices of these inputs
  int64_t heads, dim;
  bool interleaved;
};

struct RotatedTensor {
  int64_t batch, length, heads, size, dim;
  bool packed;         // [batch, length, heads * size]; otherwise [batch, heads, length, size]
  bool one_offset;     // the positions input is one number: the position of the first element of every sequence
  int64_t cached = 0;  // number of positions in the caches; 0: the caches are [batch, length, dim / 2]

  int64_t begin(int64_t b, int64_t s, int64_t h) const {
    return packed ? ((b * length + s) * heads + h) * size : ((b * heads + h) * length + s) * size;
  }
};

// Rotate `half` pairs of elements that are `half` elements apart (rotate_halves) or adjacent (rotate_pairs).
CLONED void rotate_halves(const float* x, float* y, int64_t half, const float* cosine, const float* sine) {
  for (int64_t i = 0; i < half; ++i) {
    const float a = x[i], b = x[i + half];
    y[i] = cosine[i] * a - sine[i] * b;
    y[i + half] = sine[i] * a + cosine[i] * b;
  }
}
CLONED void rotate_pairs(const float* x, float* y, int64_t half, const float* cosine, const float* sine) {
  for (int64_t i = 0; i < half; ++i) {
    const float a = x[2 * i], b = x[2 * i + 1];
    y[2 * i] = cosine[i] * a - sine[i] * b;
    y[2 * i + 1] = sine[i] * a + cosine[i] * b;
  }
}

void rotate_floats(const Rotation& r, const RotatedTensor& t, const float* x, float* y, const float* cosine,
                   const float* sine) {
  (r.interleaved ? clone_of<rotate_pairs> : clone_of<rotate_halves>)(x, y, t.dim / 2, cosine, sine);
  std::copy(x + t.dim, x + t.size, y + t.dim);
}

std::optional<std::string> rotate(const Rotation& r, const RotatedTensor& t, bool plain, Tensors in, Tensors out) {
  const Tensor positions = at(in, r.positions);
  const auto position = [&](int64_t b, int64_t s) {
    if (t.cached == 0) return b * t.length + s;
    const int64_t* const id = positions.as<int64_t>() + (t.one_offset ? 0 : b * t.length + s);
    const int64_t at = __atomic_load_n(id, __ATOMIC_RELAXED) + (t.one_offset ? s : 0);
    return std::clamp<int64_t>(at, 0, t.cached - 1);  // it may have changed since the check: see index.h
  };
  if (t.cached != 0) {
    const int64_t span = t.one_offset ? t.length : 1;  // number of consecutive positions that each given one stands for
    for (int64_t i = 0; i < positions.shape.elements(); ++i) {
      const int64_t p = positions.as<int64_t>()[i];
      if (p < 0 || p > t.cached - span)
        return "position " + std::to_string(p) + " does not fit the " + std::to_string(t.cached) +
               " positions of the caches";
    }
  }
  dispatch<Floats>(in[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *x = in[0].as<T>(), *cosine = in[r.cosine].as<T>(), *sine = in[r.sine].as<T>();
    T* y = out[0].as<T>();
    parallel(t.batch * t.length, 1 + kCheapGrain / (1 + t.heads * t.size), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t b = i / t.length, s = i % t.length, row = position(b, s) * (t.dim / 2);
        for (int64_t h = 0; h < t.heads; ++h) {
          const int64_t at = t.begin(b, s, h);
          if constexpr (std::is_same_v<T, float>) {
            if (!plain) {
              rotate_floats(r, t, x + at, y + at, cosine + row, sine + row);
              continue;
            }
          }
          rotate_head<compute_t<T>>(x + at, y + at, t.size, t.dim, r.interleaved, cosine + row, sine + row);
        }
      }
    });
  });
  return std::nullopt;
}

Plan plan_rotary(const PlanContext& context, const Rotation& r, Tensors in) {
  const Shape &x = in[0].shape, &cosine = in[r.cosine].shape;
  const Tensor positions = at(in, r.positions);
  RotatedTensor t{};
  t.packed = x.rank() == 3;
  if (x.rank() != 3 && x.rank() != 4) return fail("X " + to_string(x) + " does not have 3 or 4 dimensions");
  t.batch = x[0];
  t.length = x[t.packed ? 1 : 2];
  const int64_t width = cosine.rank() > 0 ? cosine[cosine.rank() - 1] : 0;
  if (t.packed) {
    // Without the attribute num_heads, the width of the caches determines the size of a head.
    const int64_t heads = r.heads > 0 ? r.heads : width > 0 ? x[2] / (2 * width) : 0;
    if (heads < 1 || x[2] % heads != 0)
      return fail("X " + to_string(x) + " does not hold " + std::to_string(heads) + " heads");
    t.heads = heads;
    t.size = x[2] / heads;
  } else {
    t.heads = x[1];
    t.size = x[3];
  }
  t.dim = r.dim == 0 ? t.size : r.dim;
  if (t.dim < 0 || t.dim > t.size)
    return fail("rotary_embedding_dim is " + std::to_string(t.dim) + "; it must be 0 to " + std::to_string(t.size) +
                ", the head size");
  if (t.dim % 2 != 0)
    return fail((r.dim == 0 ? "the head size " : "rotary_embedding_dim ") + std::to_string(t.dim) + " is not even");
  bool fits = cosine == in[r.sine].shape && width == t.dim / 2;
  if (positions.present()) {
    t.one_offset = positions.shape.elements() == 1 && t.batch * t.length != 1;
    t.cached = cosine.rank() == 2 ? cosine[0] : 0;
    fits = fits && cosine.rank() == 2 && (t.one_offset || positions.shape.elements() == t.batch * t.length);
    if (fits && t.cached == 0 && t.batch * t.length > 0) fits = false;
  } else {
    fits = fits && cosine == Shape{t.batch, t.length, t.dim / 2};
  }
  if (!fits)
    return fail("caches " + to_string(cosine) + " and " + to_string(in[r.sine].shape) + " do not fit X " +
                to_string(x) + (positions.present() ? " and positions " + to_string(positions.shape) : ""));
  return make_plan({x}, [r, t, plain = context.reference](Tensors inputs, Tensors outputs) {
    return rotate(r, t, plain, inputs, outputs);
  });
}

Verdict supports(const Node& node) {
  const bool onnx = node.domain().empty();
  constexpr bp_dtype_set_t kPositions = just(BP_DTYPE_INT64);
  Verdict v = onnx ? accepts(node, 3, {kFloatTypes, kFloatTypes, kFloatTypes, kPositions})
                   : accepts(node, 4, {kFloatTypes, kPositions, kFloatTypes, kFloatTypes});
  if (!v) return v;
  if (const float scale = node.attr("scale", 1.0f); scale != 1.0f)
    return no(BP_REASON_ATTRIBUTE, "scale is " + std::to_string(scale) + "; only 1 is supported");
  if (node.attr("is_packed_batching", int64_t{0}) != 0)
    return no(BP_REASON_ATTRIBUTE, "is_packed_batching is not supported");
  if (Verdict same = same_type(node, 0, 2); !same) return same;
  return same_type(node, 0, onnx ? 1 : 3);
}

std::unique_ptr<Kernel> create(const Node& node) {
  const bool onnx = node.domain().empty();
  const Rotation r{onnx ? 1u : 2u,
                   onnx ? 2u : 3u,
                   onnx ? 3u : 1u,
                   node.attr("num_heads", int64_t{0}),
                   node.attr("rotary_embedding_dim", int64_t{0}),
                   node.attr("interleaved", int64_t{0}) != 0};
  return make_kernel([r](const PlanContext& context, Tensors inputs) { return plan_rotary(context, r, inputs); });
}

}  // namespace

[[gnu::cold]] std::span<const Row> rotary_rows() {
  static constexpr Row kRows[] = {
      Row{"", "RotaryEmbedding", 23, supports, create}.in_fp32(),
      Row{kMicrosoft, "RotaryEmbedding", 1, supports, create}.in_fp32(),
  };
  return kRows;
}

}  // namespace backplane::cpu
