// SPDX-License-Identifier: Apache-2.0
// ai.onnx.preview FlexAttention: attention whose scores and probabilities can be modified by subgraphs of the model.
#include "kernels/attention/attention.h"
#include "kernels/common/values.h"
#include "kernels/float16/compute_type.h"
#include "runtime/body.h"
#include "runtime/coverage.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

namespace {

struct Flex {
  const Body* score_mod = nullptr;
  const Body* prob_mod = nullptr;
  std::optional<float> scale;
  bp_dtype_t precision = BP_DTYPE_FLOAT;  // data type of scores and probabilities
};

std::optional<AttentionSize> size_of(const Shape& q, const Shape& k, const Shape& v) {
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4 || q[0] != k[0] || q[0] != v[0] || k[1] != v[1] || k[1] < 1 ||
      q[1] % k[1] != 0 || k[2] != v[2] || q[3] != k[3])
    return std::nullopt;
  return AttentionSize{q[0], q[1], k[1], q[2], k[2], q[3], v[3]};
}

// Converts the values to a tensor of the float type `dtype`.
template <class C>
Value as_value(std::span<const C> values, bp_dtype_t dtype, const Shape& shape) {
  Value value = Value::allocate(dtype, shape);
  dispatch<Floats>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < values.size(); ++i)
      value.tensor.as<T>()[i] = static_cast<T>(static_cast<compute_t<T>>(values[i]));
  });
  return value;
}

// Passes the scores through the subgraph `body` if there is one. Rounds them to `flex.precision` in either case.
template <class C>
Failed modify(const Body* body, Values captured, const Flex& flex, const Shape& shape, const RunContext& context,
              std::span<C> scores) {
  if (body == nullptr && flex.precision == kDtypeOf<C>) return std::nullopt;
  std::vector<Value> in(1), out(1);
  in[0] = as_value<C>(scores, flex.precision, shape);
  if (body == nullptr) {
    out[0] = std::move(in[0]);
  } else {
    Body::Use(*body, captured).run(in, out, context);
    if (out[0].kind != BP_KIND_TENSOR || out[0].tensor.dtype != flex.precision || !(out[0].tensor.shape == shape))
      return "score_mod or prob_mod returned " +
             (out[0].kind == BP_KIND_TENSOR ? std::string("a ") + dtype_name(out[0].tensor.dtype) +
                                                  " tensor of shape " + to_string(out[0].tensor.shape)
                                            : std::string("no tensor")) +
             "; it must return a " + dtype_name(flex.precision) + " tensor of shape " + to_string(shape);
  }
  dispatch<Floats>(flex.precision, [&](auto tag) {
    const auto* data = out[0].tensor.as<typename decltype(tag)::type>();
    for (size_t i = 0; i < scores.size(); ++i) scores[i] = static_cast<C>(data[i]);
  });
  return std::nullopt;
}

template <class C>
Failed run(const Flex& flex, const AttentionSize& s, Values inputs, const Tensor& y, const RunContext& context) {
  std::vector<C> q_store, k_store, v_store, y_store;
  const auto q = view_heads(as_compute(inputs[0].tensor, q_store), false, s.q_heads, s.q_length, s.head_size);
  const auto k = view_heads(as_compute(inputs[1].tensor, k_store), false, s.kv_heads, s.kv_length, s.head_size);
  const auto v = view_heads(as_compute(inputs[2].tensor, v_store), false, s.kv_heads, s.kv_length, s.v_size);
  const auto result = view_heads(result_buffer(y, y_store), false, s.q_heads, s.q_length, s.v_size);
  const Shape shape{s.batch, s.q_heads, s.q_length, s.kv_length};
  const int64_t rows = s.q_length, columns = s.kv_length, group = s.q_heads / s.kv_heads;
  const double scale = flex.scale ? *flex.scale : 1 / std::sqrt(static_cast<double>(s.head_size));
  const Block memory = allocate_pages(product({shape.elements(), int64_t{sizeof(C)}}));
  const std::span<C> scores(reinterpret_cast<C*>(memory.get()), static_cast<size_t>(shape.elements()));
  const auto each_head = [&](const auto& f) {
    parallel(s.batch * s.q_heads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) f(i / s.q_heads, i % s.q_heads, scores.data() + i * rows * columns);
    });
  };
  Values captured = inputs.subspan(3);
  const size_t of_scores = flex.score_mod == nullptr ? 0 : flex.score_mod->captures().size();

  each_head([&](int64_t b, int64_t h, C* own) {
    attention_product(rows, columns, s.head_size, scale, q.at(b, h), q.row, k.at(b, h / group), k.row, true, own,
                      columns);
  });
  if (Failed failed = modify(flex.score_mod, captured.first(of_scores), flex, shape, context, scores)) return failed;
  each_head([&](int64_t, int64_t, C* own) {
    Pace pace;
    for (int64_t i = 0; i < rows; ++i) {
      pace.spend(8 * columns);
      attention_softmax(own + i * columns, columns, -std::numeric_limits<C>::infinity());
    }
  });
  if (Failed failed = modify(flex.prob_mod, captured.subspan(of_scores), flex, shape, context, scores)) return failed;
  each_head([&](int64_t b, int64_t h, C* own) {
    attention_product(rows, s.v_size, columns, 1, own, columns, v.at(b, h / group), v.row, false, result.at(b, h),
                      result.row);
  });
  store_result(y, y_store);
  return std::nullopt;
}

bp_dtype_t precision_of(const Node& node) {
  const bp_dtype_t usual = node.input_type(0).dtype == BP_DTYPE_DOUBLE ? BP_DTYPE_DOUBLE : BP_DTYPE_FLOAT;
  return static_cast<bp_dtype_t>(node.attr("softmax_precision", int64_t{usual}));
}

Verdict supports(const Node& node) {
  if (Verdict v = accepts(node, 3, {kFloatTypes, kFloatTypes, kFloatTypes}); !v) return v;
  if (Verdict v = same_type(node, 0, 1); !v) return v;
  if (Verdict v = same_type(node, 0, 2); !v) return v;
  const int64_t precision = node.attr("softmax_precision", int64_t{BP_DTYPE_FLOAT});
  if (precision < 0 || precision >= 64 || (kFloatTypes >> precision & 1) == 0)
    return no(BP_REASON_ATTRIBUTE,
              "softmax_precision is " + std::to_string(precision) + ", which is not the number of a float type");
  for (const char* name : {"score_mod", "prob_mod"})
    if (node.find(name) != nullptr)
      if (Verdict v = supports_body(node, name, 1, 1); !v) return v;
  return yes();
}

std::unique_ptr<Kernel> create(const Node& node) {
  Flex flex;
  if (node.find("score_mod") != nullptr) flex.score_mod = &node.body("score_mod");
  if (node.find("prob_mod") != nullptr) flex.prob_mod = &node.body("prob_mod");
  if (node.find("scale") != nullptr) flex.scale = node.attr("scale", 1.0f);
  flex.precision = precision_of(node);
  return make_value_kernel([flex](Values inputs, Values outputs, const RunContext& context) -> Failed {
    const Tensor &q = inputs[0].tensor, &k = inputs[1].tensor, &v = inputs[2].tensor;
    const std::optional<AttentionSize> size = size_of(q.shape, k.shape, v.shape);
    if (!size)
      return "Q " + to_string(q.shape) + ", K " + to_string(k.shape) + " and V " + to_string(v.shape) +
             " do not fit each other";
    outputs[0] = Value::allocate(q.dtype, Shape{size->batch, size->q_heads, size->q_length, size->v_size});
    if (outputs[0].tensor.shape.elements() == 0) return std::nullopt;
    const bool wide = q.dtype == BP_DTYPE_DOUBLE || flex.precision == BP_DTYPE_DOUBLE;
    return wide ? run<double>(flex, *size, inputs, outputs[0].tensor, context)
                : run<float>(flex, *size, inputs, outputs[0].tensor, context);
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> flex_attention_rows() {
  static constexpr Row kRows[] = {
      {"ai.onnx.preview", "FlexAttention", 1, supports, create},
  };
  return kRows;
}

}  // namespace backplane::cpu
