// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM: the attributes and the reference implementation. The three operators differ only in the cell,
// which computes the next state from the gates. The fast implementation is in kernels/recurrent/recurrent_step.cpp.
#include "kernels/recurrent/recurrent.h"

#include <array>
#include <cmath>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/recurrent/recurrent_step.h"
#include "runtime/implementations.h"
#include "runtime/parallel.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

struct NamedActivation {
  std::string_view name;
  int parameters;  // number of parameters: 1 means alpha, 2 means alpha and beta
  double alpha, beta;
  double (*f)(double x, double alpha, double beta);
  std::optional<Activation::Function> row = {};  // vectorized form for rows, if there is one
};
constexpr NamedActivation kActivations[] = {
    {"Affine", 2, 1, 0, [](double x, double a, double b) { return a * x + b; }},
    {"Elu", 1, 1, 0, [](double x, double a, double) { return x < 0 ? a * std::expm1(x) : x; }, Activation::kElu},
    {"HardSigmoid", 2, 0.2, 0.5, [](double x, double a, double b) { return std::min(1.0, std::max(0.0, a * x + b)); },
     Activation::kHardSigmoid},
    {"LeakyRelu", 1, 0.01, 0, [](double x, double a, double) { return x < 0 ? a * x : x; }, Activation::kLeakyRelu},
    {"Relu", 0, 0, 0, [](double x, double, double) { return std::max(0.0, x); }, Activation::kRelu},
    {"ScaledTanh", 2, 1, 1, [](double x, double a, double b) { return a * std::tanh(b * x); }},
    {"Sigmoid", 0, 0, 0, [](double x, double, double) { return sigmoid(x); }, Activation::kSigmoid},
    {"Softplus", 0, 0, 0,
     [](double x, double, double) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }},
    {"Softsign", 0, 0, 0, [](double x, double, double) { return x / (1 + std::fabs(x)); }},
    {"Tanh", 0, 0, 0, [](double x, double, double) { return std::tanh(x); }, Activation::kTanh},
    {"ThresholdedRelu", 1, 1, 0, [](double x, double a, double) { return x > a ? x : 0; }},
};

// ASCII only, because std::tolower depends on the locale: a Turkish one does not map I to i.
char ascii_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, ascii_lower, ascii_lower);
}

struct CellFacts {
  int gates;
  std::vector<std::string> activations;  // default activations of one direction
};
CellFacts facts_of(Cell cell) {
  switch (cell) {
    case Cell::kRnn:
      return {1, {"Tanh"}};
    case Cell::kGru:
      return {3, {"Sigmoid", "Tanh"}};
    case Cell::kLstm:
      return {4, {"Sigmoid", "Tanh", "Tanh"}};
  }
  return {};
}

// Returns the activations that the node names, or the defaults. If there are too few or one is unknown, returns nullopt
// and sets `error`.
std::optional<std::vector<GateFunction>> functions_of(const Node& node, Cell cell, int64_t directions,
                                                      std::string* error) {
  std::vector<std::string> names;
  if (const bp_attribute_t* a = node.find("activations"); a != nullptr && a->type == BP_ATTR_STRINGS && a->count > 0) {
    for (uint32_t i = 0; i < a->count; ++i) {
      const bp_text_t text = static_cast<const bp_text_t*>(a->data)[i];
      names.emplace_back(text.data, text.size);
    }
  } else {
    for (int64_t d = 0; d < directions; ++d)
      for (const std::string& name : facts_of(cell).activations) names.push_back(name);
  }
  const size_t needed = facts_of(cell).activations.size() * static_cast<size_t>(directions);
  if (names.size() < needed) {
    *error = "activations has " + std::to_string(names.size()) + " entries; it must have " + std::to_string(needed);
    return std::nullopt;
  }
  names.resize(needed);  // ONNX's default for RNN names two functions even for one direction
  const std::vector<float> alphas = node.floats("activation_alpha"), betas = node.floats("activation_beta");
  size_t alpha_at = 0, beta_at = 0;  // the next values that no function has used yet
  std::vector<GateFunction> result;
  for (const std::string& name : names) {
    const auto* found =
        std::ranges::find_if(kActivations, [&](const auto& a) { return equal_ignoring_case(a.name, name); });
    if (found == std::end(kActivations)) {
      *error = "activations contains '" + name + "', which is not supported";
      return std::nullopt;
    }
    const double alpha = found->parameters >= 1 && alpha_at < alphas.size() ? alphas[alpha_at++] : found->alpha;
    const double beta = found->parameters >= 2 && beta_at < betas.size() ? betas[beta_at++] : found->beta;
    result.push_back({found->f, alpha, beta, std::nullopt});
    if (found->row) result.back().row = Activation{*found->row, static_cast<float>(alpha), static_cast<float>(beta)};
  }
  return result;
}

int64_t directions_of(const Node& node) {
  return node.attr("direction", "forward") == "bidirectional" ? 2 : 1;
}

template <Cell kCell>
Verdict supports(const Node& node) {
  if (Verdict v = check_layer(node, kCell); !v) return v;
  constexpr bp_dtype_set_t kReal = kFloatTypes, kLengths = just(BP_DTYPE_INT32);
  const Verdict inputs = kCell == Cell::kLstm
                             ? accepts(node, 3, {kReal, kReal, kReal, kReal, kLengths, kReal, kReal, kReal})
                             : accepts(node, 3, {kReal, kReal, kReal, kReal, kLengths, kReal});
  if (!inputs) return inputs;
  for (uint32_t slot : {1u, 2u, 3u, 5u, 6u, 7u})
    if (node.has_input(slot))
      if (Verdict v = same_type(node, 0, slot); !v) return v;
  return yes();
}

// The weights of one direction, converted to the type C in which the layer is computed.
template <class C>
struct Weights {
  std::vector<C> w, r, bias, recurrent_bias, peephole;
};

template <class C, class T>
std::vector<C> converted(const Tensor& tensor, int64_t offset, int64_t n) {
  std::vector<C> result(static_cast<size_t>(n));
  if (tensor.data != nullptr)
    for (int64_t i = 0; i < n; ++i) result[static_cast<size_t>(i)] = static_cast<C>(tensor.as<T>()[offset + i]);
  return result;
}

// Computes y[i] = row i of `matrix` · x + bias[i] for `rows` rows from `first` on.
template <class C>
void multiply(const std::vector<C>& matrix, const std::vector<C>& bias, const std::vector<C>& x, int64_t first,
              int64_t rows, std::vector<C>& y) {
  const size_t n = x.size();
  for (auto row = static_cast<size_t>(first); row < static_cast<size_t>(first + rows); ++row) {
    C sums[4] = {0, 0, 0, 0};
    const C* line = matrix.data() + row * n;
    size_t k = 0;
    for (; k + 4 <= n; k += 4)
      for (size_t lane = 0; lane < 4; ++lane) sums[lane] += line[k + lane] * x[k + lane];
    for (; k < n; ++k) sums[0] += line[k] * x[k];
    y[row] = (sums[0] + sums[1]) + (sums[2] + sums[3]) + bias[row];
  }
}

// The state of one sequence in one direction. step() computes the next state.
template <class C>
class Sequence {
 public:
  Sequence(const Layer& layer, const Weights<C>& weights, const GateFunction* functions, std::vector<C> h,
           std::vector<C> c)
      : layer_(layer),
        w_(weights),
        f_(functions),
        h_(std::move(h)),
        c_(std::move(c)),
        n_(static_cast<size_t>(layer.hidden)),
        from_x_(n_ * static_cast<size_t>(layer.gates)),
        from_h_(from_x_) {}

  const std::vector<C>& h() const { return h_; }
  const std::vector<C>& c() const { return c_; }

  void step(const std::vector<C>& x) {
    const int64_t hidden = layer_.hidden, gates = layer_.gates;
    multiply(w_.w, w_.bias, x, 0, gates * hidden, from_x_);
    multiply(w_.r, w_.recurrent_bias, h_, 0, gates * hidden, from_h_);
    switch (layer_.cell) {
      case Cell::kRnn:
        return rnn();
      case Cell::kGru:
        return gru();
      case Cell::kLstm:
        return lstm();
    }
  }

 private:
  double clipped(double x) const { return std::clamp(x, -layer_.clip, layer_.clip); }
  double gate(size_t g, size_t i) const {
    return static_cast<double>(from_x_[g * n_ + i]) + static_cast<double>(from_h_[g * n_ + i]);
  }
  double peephole(size_t p, size_t i, const std::vector<C>& c) const {
    return static_cast<double>(w_.peephole[p * n_ + i]) * static_cast<double>(c[i]);
  }

  void rnn() {
    for (size_t i = 0; i < n_; ++i) h_[i] = static_cast<C>(f_[0](clipped(gate(0, i))));
  }

  void gru() {  // gates: update, reset, hidden
    std::vector<C> update(n_), reset(n_);
    for (size_t i = 0; i < n_; ++i) {
      update[i] = static_cast<C>(f_[0](clipped(gate(0, i))));
      reset[i] = static_cast<C>(f_[0](clipped(gate(1, i))));
    }
    if (layer_.linear_before_reset) {
      for (size_t i = 0; i < n_; ++i) from_h_[2 * n_ + i] *= reset[i];
    } else {
      std::vector<C> past(n_);
      for (size_t i = 0; i < n_; ++i) past[i] = reset[i] * h_[i];
      multiply(w_.r, w_.recurrent_bias, past, 2 * layer_.hidden, layer_.hidden, from_h_);
    }
    for (size_t i = 0; i < n_; ++i) {
      const C candidate = static_cast<C>(f_[1](clipped(gate(2, i))));
      h_[i] = (1 - update[i]) * candidate + update[i] * h_[i];
    }
  }

  void lstm() {  // gates: input, output, forget, cell
    for (size_t i = 0; i < n_; ++i) {
      const double input = f_[0](clipped(gate(0, i) + peephole(0, i, c_)));
      const double forget = layer_.input_forget ? 1 - input : f_[0](clipped(gate(2, i) + peephole(2, i, c_)));
      const double cell = f_[1](clipped(gate(3, i)));
      c_[i] = static_cast<C>(forget * static_cast<double>(c_[i]) + input * cell);
      const double output = f_[0](clipped(gate(1, i) + peephole(1, i, c_)));
      h_[i] = static_cast<C>(output * f_[2](static_cast<double>(c_[i])));
    }
  }

  const Layer& layer_;
  const Weights<C>& w_;
  const GateFunction* f_;
  std::vector<C> h_, c_;
  size_t n_;
  std::vector<C> from_x_, from_h_;
};

template <class T>
void run_layer(const Layer& layer, RecurrentExtents e, Tensors in, Tensors out) {
  using C = compute_t<T>;
  const int64_t hidden = layer.hidden, directions = layer.directions, rows = layer.gates * hidden;
  const int32_t* lengths = at(in, 4).as<int32_t>();
  const RecurrentOffsets offsets{layer, e};
  const Tensor sequence = at(out, 0);
  if (sequence.data != nullptr) std::fill_n(sequence.as<T>(), e.times * directions * e.batch * hidden, T{});
  for (int64_t d = 0; d < directions; ++d) {
    const Weights<C> weights{
        converted<C, T>(in[1], d * rows * e.input, rows * e.input),
        converted<C, T>(in[2], d * rows * hidden, rows * hidden), converted<C, T>(at(in, 3), d * 2 * rows, rows),
        converted<C, T>(at(in, 3), (d * 2 + 1) * rows, rows), converted<C, T>(at(in, 7), d * 3 * hidden, 3 * hidden)};
    const bool reverse = d == 1 || layer.reverse_first;
    parallel(e.batch, 1, [&](int64_t begin, int64_t end) {
      Pace pace;
      for (int64_t b = begin; b < end; ++b) {
        const int64_t state = offsets.state(b, d);
        Sequence<C> cell(layer, weights, layer.functions_of(d), converted<C, T>(at(in, 5), state, hidden),
                         converted<C, T>(at(in, 6), state, hidden));
        const int64_t length = lengths == nullptr ? e.times : lengths[b];
        for (int64_t s = 0; s < length; ++s) {
          pace.spend(rows * (e.input + hidden) + hidden);
          const int64_t t = reverse ? length - 1 - s : s;
          cell.step(converted<C, T>(in[0], offsets.x(t, b), e.input));
          if (sequence.data == nullptr) continue;
          for (int64_t i = 0; i < hidden; ++i)
            sequence.as<T>()[offsets.y(t, b, d) + i] = static_cast<T>(cell.h()[static_cast<size_t>(i)]);
        }
        for (int64_t i = 0; i < hidden; ++i) {
          if (const Tensor last = at(out, 1); last.data != nullptr)
            last.as<T>()[state + i] = static_cast<T>(cell.h()[static_cast<size_t>(i)]);
          if (const Tensor last = at(out, 2); last.data != nullptr)
            last.as<T>()[state + i] = static_cast<T>(cell.c()[static_cast<size_t>(i)]);
        }
      }
    });
  }
}

// Input to the implementations in kRecurrents: a layer for one set of extents.
struct RecurrentProblem {
  const Layer& layer;
  RecurrentExtents e;
  std::vector<Shape> shapes;  // of the results
  Tensors inputs;
  PackedWeights& packed;
};

const char* refuse_steps(const PlanContext&, RecurrentProblem& p) {
  return p.inputs[0].dtype != BP_DTYPE_FLOAT ? "the elements are not fp32" : nullptr;
}
Plan plan_steps(const PlanContext& context, RecurrentProblem& p) {
  std::shared_ptr<const Step> step = make_recurrent(context, p.layer, p.e, p.inputs, p.packed);
  const int64_t scratch = step->scratch_bytes();
  Plan plan = make_plan(std::move(p.shapes),
                        [step, e = p.e](Tensors in, Tensors out, void* memory) {
                          std::optional<std::string> wrong = wrong_length(at(in, 4), e);
                          return wrong ? wrong : step->run(in, out, memory);
                        },
                        {.scratch_bytes = scratch});
  if (p.inputs[1].data != nullptr) plan.packed = 1;
  return plan;
}

Plan plan_direct(const PlanContext&, RecurrentProblem& p) {
  return make_plan(std::move(p.shapes), [layer = p.layer, e = p.e](Tensors in, Tensors out) {
    std::optional<std::string> wrong = wrong_length(at(in, 4), e);
    if (!wrong)
      dispatch<Floats>(in[0].dtype, [&](auto tag) { run_layer<typename decltype(tag)::type>(layer, e, in, out); });
    return wrong;
  });
}

constexpr std::array kRecurrents = {
    Implementation<RecurrentProblem>{"steps", refuse_steps, plan_steps},
    Implementation<RecurrentProblem>{"direct", nullptr, plan_direct},
};
ImplementationNames implementations() {
  return names_of("recurrent", kRecurrents);
}

class Recurrent final : public Kernel {
 public:
  explicit Recurrent(Layer layer) : layer_(std::move(layer)) {}

  Plan plan(const PlanContext& context, Tensors inputs) const override {
    const Shape &x = inputs[0].shape, &w = inputs[1].shape, &r = inputs[2].shape;
    if (x.rank() != 3 || w.rank() != 3)
      return fail("X and W must have three dimensions, but have shapes " + to_string(x) + " and " + to_string(w));
    Layer layer = layer_;
    // If the attribute hidden_size is missing, the shape of R [directions, gates · hidden, hidden] determines it.
    if (layer.hidden < 0) layer.hidden = r.rank() == 3 ? r[2] : 0;
    const bool batch_first = layer.batch_first;
    const RecurrentExtents e{x[batch_first ? 1 : 0], x[batch_first ? 0 : 1], x[2]};
    const int64_t directions = layer.directions, hidden = layer.hidden, rows = layer.gates * hidden;
    const Shape state = batch_first ? Shape{e.batch, directions, hidden} : Shape{directions, e.batch, hidden};
    const Shape expected[] = {
        x,     {directions, rows, e.input}, {directions, rows, hidden}, {directions, 2 * rows}, {e.batch}, state,
        state, {directions, 3 * hidden}};
    for (size_t slot = 0; slot < inputs.size(); ++slot)
      if (inputs[slot].present() && !(inputs[slot].shape == expected[slot]))
        return fail("input " + std::to_string(slot) + " has shape " + to_string(inputs[slot].shape) + ", but needs " +
                    to_string(expected[slot]));
    const Shape sequence =
        batch_first ? Shape{e.batch, e.times, directions, hidden} : Shape{e.times, directions, e.batch, hidden};
    std::vector<Shape> shapes{sequence, state};
    if (layer.cell == Cell::kLstm) shapes.push_back(state);
    RecurrentProblem problem{layer, e, std::move(shapes), inputs, packed_};
    return plan_best(context, "recurrent", kRecurrents, problem);
  }

  bool packs(size_t input) const override { return input == 1; }

 private:
  Layer layer_;  // `hidden` is negative if only R's shape determines it
  mutable PackedWeights packed_;
};

template <Cell kCell>
std::unique_ptr<Kernel> create(const Node& node) {
  Layer layer = read_layer(node, kCell);
  if (layer.hidden < 0) layer.hidden = node.input_extent(2, 2);
  return std::make_unique<Recurrent>(std::move(layer));
}

}  // namespace

Verdict check_layer(const Node& node, Cell cell) {
  if (Verdict v = attribute_in(node, "direction", "forward", {"forward", "reverse", "bidirectional"}); !v) return v;
  std::string error;
  if (!functions_of(node, cell, directions_of(node), &error)) return no(BP_REASON_ATTRIBUTE, error);
  return yes();
}

Layer read_layer(const Node& node, Cell cell) {
  Layer layer;
  layer.cell = cell;
  layer.gates = facts_of(cell).gates;
  layer.directions = directions_of(node);
  layer.hidden = node.attr("hidden_size", int64_t{-1});
  layer.reverse_first = node.attr("direction", "forward") == "reverse";
  layer.batch_first = node.attr("layout", int64_t{0}) != 0;
  layer.linear_before_reset = node.attr("linear_before_reset", int64_t{0}) != 0;
  layer.input_forget = node.attr("input_forget", int64_t{0}) != 0;
  layer.clip = node.find("clip") == nullptr ? HUGE_VAL : std::fabs(node.attr("clip", 0.0f));
  std::string error;  // not set, as check_layer() accepts the node
  layer.functions = *functions_of(node, cell, layer.directions, &error);
  return layer;
}

std::optional<std::string> wrong_length(const Tensor& tensor, RecurrentExtents e) {
  const int32_t* lengths = tensor.as<int32_t>();
  for (int64_t b = 0; b < e.batch && lengths != nullptr; ++b)
    if (lengths[b] < 0 || lengths[b] > e.times)
      return "sequence length " + std::to_string(lengths[b]) + " is not in [0, " + std::to_string(e.times) + "]";
  return std::nullopt;
}

[[gnu::cold]] std::span<const Row> recurrent_rows() {
  static constexpr Row kRows[] = {
      Row{"", "RNN", 7, supports<Cell::kRnn>, create<Cell::kRnn>}
          .in_fp32(0b110)
          .with(kOmitsOutput0)
          .choosing(implementations),
      Row{"", "GRU", 7, supports<Cell::kGru>, create<Cell::kGru>}
          .in_fp32(0b110)
          .with(kOmitsOutput0)
          .choosing(implementations),
      Row{"", "LSTM", 7, supports<Cell::kLstm>, create<Cell::kLstm>}
          .in_fp32(0b110)
          .with(kOmitsOutput0)
          .choosing(implementations),
  };
  return kRows;
}

}  // namespace backplane::cpu
