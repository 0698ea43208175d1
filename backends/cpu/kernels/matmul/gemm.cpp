// SPDX-License-Identifier: Apache-2.0
// Gemm: Y = alpha · A' · B' + beta · C, where A' and B' are A and B or their transposes, and C is broadcast.
#include "kernels/matmul/gemm.h"

#include "kernels/common/broadcast.h"
#include "kernels/common/function_kernel.h"
#include "kernels/common/integer_of.h"
#include "kernels/common/operations.h"
#include "kernels/common/support.h"
#include "kernels/matmul/bf16_product.h"
#include "kernels/matmul/gemv.h"
#include "kernels/matmul/tiled_product.h"
#include "kernels/onednn/onednn.h"
#include "kernels/post_op/activation.h"
#include "runtime/implementations.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

namespace {

struct Gemm {
  float alpha, beta;
  bool a_transposed, b_transposed;
  int64_t m = 0, n = 0, k = 0;
  int64_t row_step = 0, column_step = 0;  // C's strides; 0 where it is broadcast
};

void run_float(const Gemm& g, std::span<const PostOp> post_ops, Tensors in, Tensors out) {
  const float* a = in[0].as<float>();
  const float* b = in[1].as<float>();
  float* y = out[0].as<float>();
  const Tensor c = at(in, 2);
  const bool adds = c.present() && g.beta != 0;
  const bool few_rows = g.m <= kGemvRows && g.k > 0 && (!g.a_transposed || g.m == 1);
  if (few_rows) {
    (g.b_transposed ? gemv_transposed : gemv)(g.m, g.n, g.k, a, b, y);
  } else {
    sgemm(g.m, g.n, g.k, g.alpha, {a, g.a_transposed ? g.m : g.k, g.a_transposed},
          {b, g.b_transposed ? g.k : g.n, g.b_transposed}, 0, y, g.n);
  }
  const float alpha = few_rows ? g.alpha : 1;
  if (!adds && alpha == 1 && post_ops.empty()) return;
  parallel(g.m, 1 + kCheapGrain / (1 + g.n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* row = y + i * g.n;
      const float* add = adds ? c.as<float>() + i * g.row_step : nullptr;
      for (int64_t j = 0; j < g.n; ++j) row[j] = alpha * row[j] + (adds ? g.beta * add[j * g.column_step] : 0);
      for (const PostOp& op : post_ops) activate(op.activation, row, g.n);
    }
  });
}

// Whether alpha is 1 and beta 0 or 1. If so, sums of integers are computed as integers, which wrap around.
bool is_whole(const Gemm& g) {
  return g.alpha == 1 && (g.beta == 0 || g.beta == 1);
}

// `Sum` is the type in which products are added: compute_t<T> for floats; for integers uint64_t if is_whole(g),
// otherwise double.
template <class T, class Sum>
void run_plain(const Gemm& g, Tensors in, Tensors out) {
  const T* a = in[0].as<T>();
  const T* b = in[1].as<T>();
  const Tensor c = at(in, 2);
  parallel(g.m, 1 + (int64_t{1} << 16) / (1 + g.n * g.k), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < g.n; ++j) {
        Sum sum = 0;
        for (int64_t l = 0; l < g.k; ++l) {
          sum += static_cast<Sum>(a[g.a_transposed ? l * g.m + i : i * g.k + l]) *
                 static_cast<Sum>(b[g.b_transposed ? j * g.k + l : l * g.n + j]);
        }
        sum *= static_cast<Sum>(g.alpha);
        if (c.present() && g.beta != 0)
          sum += static_cast<Sum>(g.beta) * static_cast<Sum>(c.as<T>()[i * g.row_step + j * g.column_step]);
        if constexpr (std::is_integral_v<T> && std::is_same_v<Sum, double>)
          out[0].as<T>()[i * g.n + j] = integer_of<T>(sum);
        else
          out[0].as<T>()[i * g.n + j] = static_cast<T>(sum);
      }
    }
  });
}

using GemmTypes = TypeList<float, double, Half, BFloat16, int32_t, int64_t, uint32_t, uint64_t>;

// Input to the implementations in kGemms: a Gemm for one set of extents.
struct GemmProblem {
  const Gemm& gemm;
  std::span<const PostOp> post_ops;  // only activations
  Tensors inputs;
  PackedWeights& packed;

  KnownProduct known() const { return {gemm.m, gemm.n, gemm.k, gemm.b_transposed, post_ops, {gemm.m, gemm.n}}; }
};

const char* refuse_floats(const PlanContext&, GemmProblem& p) {
  return p.inputs[0].dtype != BP_DTYPE_FLOAT ? "its inputs are not in fp32" : nullptr;
}

// Accepts products of more than kGemvRows rows with a known B, unless A is transposed or alpha is not 1. C, if present,
// must be a known row, and beta 1.
const char* refuse_known(const PlanContext& context, GemmProblem& p) {
  if (const char* why = refuse_floats(context, p)) return why;
  const Gemm& g = p.gemm;
  const Tensor c = at(p.inputs, 2);
  if (p.inputs[1].data == nullptr) return "B is not known";
  if (g.alpha != 1) return "alpha is not 1";
  if (g.a_transposed) return "A is transposed";
  if (g.m <= kGemvRows) return "A has too few rows for packing B to pay off";
  if (!c.present()) return nullptr;
  if (g.beta != 1) return "beta is not 1";
  const bool row =
      c.data != nullptr && c.shape.rank() > 0 && c.shape.elements() == g.n && c.shape[c.shape.rank() - 1] == g.n;
  return row ? nullptr : "C is not a known row";
}

const char* refuse_bf16(const PlanContext& context, GemmProblem& p) {
  const char* why = refuse_known(context, p);
  return why != nullptr ? why : refuse_bf16_product(context, p.known());
}

const char* refuse_tiled(const PlanContext& context, GemmProblem& p) {
  const char* why = refuse_known(context, p);
  return why != nullptr ? why : refuse_tiled_product(p.known());
}

Plan plan_bf16(const PlanContext& context, GemmProblem& p) {
  return plan_bf16_product(context, p.known(), p.inputs, p.packed, at(p.inputs, 2).present() ? 2 : -1);
}

Plan plan_tiled(const PlanContext& context, GemmProblem& p) {
  return plan_tiled_product(context, p.known(), p.inputs, p.packed, at(p.inputs, 2).present() ? 2 : -1);
}

Plan plan_floats(const PlanContext&, GemmProblem& p) {
  const std::vector<PostOp> all(p.post_ops.begin(), p.post_ops.end());
  return make_plan({Shape{p.gemm.m, p.gemm.n}},
                   [g = p.gemm, all](Tensors in, Tensors out) { run_float(g, all, in, out); });
}

Plan plan_direct(const PlanContext&, GemmProblem& p) {
  const std::vector<PostOp> all(p.post_ops.begin(), p.post_ops.end());
  return make_plan({Shape{p.gemm.m, p.gemm.n}}, [g = p.gemm, all](Tensors in, Tensors out) {
    dispatch<GemmTypes>(in[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (kIsFloating<T>)
        run_plain<T, compute_t<T>>(g, in, out);
      else
        is_whole(g) ? run_plain<T, uint64_t>(g, in, out) : run_plain<T, double>(g, in, out);
    });
    for (const PostOp& op : all) activate(op.activation, out[0].as<float>(), g.m * g.n);
  });
}

constexpr std::array kGemms = {
    Implementation<GemmProblem>{"bf16", refuse_bf16, plan_bf16},
    Implementation<GemmProblem>{"tiled", refuse_tiled, plan_tiled},
    Implementation<GemmProblem>{"sgemm", refuse_floats, plan_floats},
    Implementation<GemmProblem>{"direct", nullptr, plan_direct},
};
ImplementationNames implementations() {
  return names_of("gemm", kGemms);
}

Plan plan_gemm(const PlanContext& context, Gemm g, std::span<const PostOp> post_ops, PackedWeights& packed,
               Tensors inputs) {
  const Shape& a = inputs[0].shape;
  const Shape& b = inputs[1].shape;
  if (a.rank() != 2 || b.rank() != 2) return fail("A " + to_string(a) + " and B " + to_string(b) + " must be matrices");
  g.m = a[g.a_transposed ? 1 : 0];
  g.k = a[g.a_transposed ? 0 : 1];
  g.n = b[g.b_transposed ? 0 : 1];
  if (g.k != b[g.b_transposed ? 1 : 0])
    return fail("A " + to_string(a) + " and B " + to_string(b) + " cannot be multiplied");
  if (Tensor c = at(inputs, 2); c.present()) {
    int64_t rows = c.shape.rank() == 2 ? c.shape[0] : 1;
    int64_t columns = c.shape.rank() == 0 ? 1 : c.shape[c.shape.rank() - 1];
    if (c.shape.rank() > 2 || (rows != 1 && rows != g.m) || (columns != 1 && columns != g.n)) {
      return fail("C " + to_string(c.shape) + " cannot be broadcast to [" + std::to_string(g.m) + "," +
                  std::to_string(g.n) + "]");
    }
    g.row_step = rows == 1 ? 0 : columns;
    g.column_step = columns == 1 ? 0 : 1;
  }
  GemmProblem problem{g, post_ops, inputs, packed};
  return plan_best(context, "gemm", kGemms, problem);
}

Verdict supports(const Node& node) {
  constexpr bp_dtype_set_t kTypes = set_of(GemmTypes{});
  if (Verdict v = accepts(node, 2, {kTypes, kTypes, kTypes}); !v) return v;
  if (Verdict v = same_type(node, 0, 1); !v) return v;
  for (const char* name : {"transA", "transB"}) {
    const bp_attribute_t* attribute = node.find(name);
    if (attribute != nullptr && attribute->type != BP_ATTR_INT)
      return no(BP_REASON_ATTRIBUTE, std::string(name) + " is not an integer");
  }
  return node.has_input(2) ? same_type(node, 0, 2) : yes();
}

class GemmKernel final : public Kernel {
 public:
  explicit GemmKernel(const Node& node)
      : gemm_{node.attr("alpha", 1.0f), node.attr("beta", 1.0f), node.attr("transA", int64_t{0}) != 0,
              node.attr("transB", int64_t{0}) != 0} {}
  Plan plan(const PlanContext& context, Tensors inputs) const override {
    return plan_gemm(context, gemm_, post_ops_, packed_, inputs);
  }
  bool packs(size_t input) const override { return input == 1; }
  bool append(PostOp&& op) override {
    if (op.kind != PostOp::kActivation) return false;
    post_ops_.push_back(std::move(op));
    return true;
  }

 private:
  Gemm gemm_;
  std::vector<PostOp> post_ops_;
  mutable PackedWeights packed_;
};

}  // namespace

std::unique_ptr<Kernel> create_gemm(const Node& node) {
  return std::make_unique<GemmKernel>(node);
}

[[gnu::cold]] std::span<const Row> gemm_rows() {
  static constexpr Row kRows[] = {
      Row{"", "Gemm", 7, supports, create_gemm}
          .in_fp32(0b010)
          .with(kMultipliesInBf16)
          .costing(product_operations)
          .choosing(implementations),
  };
  return kRows;
}

}  // namespace backplane::cpu
