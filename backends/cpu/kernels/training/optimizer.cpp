// SPDX-License-Identifier: Apache-2.0
// The optimizers of ai.onnx.preview.training: Adagrad, Adam, Momentum. Each updates any number of tensors. Inputs: the
// learning rate, the step number, all tensors, all gradients, then all states of each kind. Outputs: all tensors, then
// all states.
#include <cmath>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"

namespace backplane::cpu {

namespace {

struct Optimizer {
  double rate = 0;  // for the current step; set in each run
  double alpha = 0, beta = 0, epsilon = 0, decay = 0, norm = 0, norm_post = 0;
  bool nesterov = false;
};

// update() updates one element: it overwrites the element's states and returns its new value.
struct Adagrad {
  static constexpr size_t kStates = 1;
  static void begin(Optimizer& o, double rate, double step) { o.rate = rate / (1 + step * o.decay); }
  template <class T>
  static T update(const Optimizer& o, T x, T gradient, T* state) {
    const T g = static_cast<T>(o.norm) * x + gradient;
    state[0] += g * g;
    return x - static_cast<T>(o.rate) * g / (std::sqrt(state[0]) + static_cast<T>(o.epsilon));
  }
};

struct Adam {
  static constexpr size_t kStates = 2;
  static void begin(Optimizer& o, double rate, double step) {
    o.rate = step > 0 ? rate * std::sqrt(1 - std::pow(o.beta, step)) / (1 - std::pow(o.alpha, step)) : rate;
  }
  template <class T>
  static T update(const Optimizer& o, T x, T gradient, T* state) {
    const T g = static_cast<T>(o.norm) * x + gradient;
    state[0] = static_cast<T>(o.alpha) * state[0] + static_cast<T>(1 - o.alpha) * g;
    state[1] = static_cast<T>(o.beta) * state[1] + static_cast<T>(1 - o.beta) * g * g;
    const T moved = x - static_cast<T>(o.rate) * state[0] / (std::sqrt(state[1]) + static_cast<T>(o.epsilon));
    return static_cast<T>(1 - o.norm_post) * moved;
  }
};

struct Momentum {
  static constexpr size_t kStates = 1;
  static void begin(Optimizer& o, double rate, double step) {
    o.rate = rate;
    if (!(step > 0)) o.beta = 1;
  }
  template <class T>
  static T update(const Optimizer& o, T x, T gradient, T* state) {
    const T g = static_cast<T>(o.norm) * x + gradient;
    state[0] = static_cast<T>(o.alpha) * state[0] + static_cast<T>(o.beta) * g;
    return x - static_cast<T>(o.rate) * (o.nesterov ? g + static_cast<T>(o.alpha) * state[0] : state[0]);
  }
};

template <class Rule, class T>
void step_tensor(const Optimizer& o, Tensors in, Tensors out, size_t tensor, size_t count) {
  const auto input = [&](size_t kind) { return in[2 + kind * count + tensor].as<T>(); };
  const T *x = input(0), *gradient = input(1);
  parallel(in[2 + tensor].shape.elements(), kMathGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T state[Rule::kStates];
      for (size_t k = 0; k < Rule::kStates; ++k) state[k] = input(2 + k)[i];
      const T moved = Rule::update(o, x[i], gradient[i], state);
      if (Tensor y = at(out, tensor); y.present()) y.as<T>()[i] = moved;
      for (size_t k = 0; k < Rule::kStates; ++k)
        if (Tensor y = at(out, (k + 1) * count + tensor); y.present()) y.as<T>()[i] = state[k];
    }
  });
}

constexpr bp_dtype_set_t kReal = just(BP_DTYPE_FLOAT) | just(BP_DTYPE_DOUBLE);

template <class Rule>
Verdict supports(const Node& node) {
  constexpr uint32_t kKinds = 2 + Rule::kStates;
  if (node.input_count() < 2 + kKinds || (node.input_count() - 2) % kKinds != 0)
    return no(BP_REASON_OPSET, "it has " + std::to_string(node.input_count()) +
                                   " inputs; there must be as many gradients and states of each kind as tensors");
  const uint32_t count = (node.input_count() - 2) / kKinds;
  for (uint32_t slot = 0; slot < node.input_count(); ++slot) {
    if (!node.has_input(slot)) return no(BP_REASON_OPSET, "input " + std::to_string(slot) + " is missing");
    const bp_dtype_t dtype = node.input_type(slot).dtype;
    const bool fits = slot == 1 ? dtype == BP_DTYPE_INT64
                                : dtype < 64 && (kReal >> dtype & 1) != 0 &&
                                      (slot < 2 || dtype == node.input_type(2 + (slot - 2) % count).dtype);
    if (!fits)
      return no(BP_REASON_DTYPE,
                "input " + std::to_string(slot) + " has the unsuitable data type " + dtype_name(dtype));
  }
  if (node.op_type() != "Momentum") return yes();
  return attribute_in(node, "mode", "standard", {"standard", "nesterov"});
}

template <class Rule>
std::unique_ptr<Kernel> create(const Node& node) {
  const bool adam = node.op_type() == "Adam";
  Optimizer o;
  o.alpha = node.attr("alpha", adam ? 0.9f : 0.0f);
  o.beta = node.attr("beta", adam ? 0.999f : 0.0f);
  o.epsilon = node.attr("epsilon", 1e-6f);
  o.decay = node.attr("decay_factor", 0.0f);
  o.norm = node.attr("norm_coefficient", 0.0f);
  o.norm_post = node.attr("norm_coefficient_post", 0.0f);
  o.nesterov = node.attr("mode", "standard") == "nesterov";
  return make_kernel([o](Tensors in) -> Plan {
    constexpr size_t kKinds = 2 + Rule::kStates;
    const size_t count = (in.size() - 2) / kKinds;
    if (in[0].shape.elements() != 1 || in[1].shape.elements() != 1)
      return fail("the learning rate and the step number must have one element each");
    std::vector<Shape> shapes((1 + Rule::kStates) * count);
    for (size_t i = 2; i < in.size(); ++i) {
      const Shape& own = in[2 + (i - 2) % count].shape;
      if (!(in[i].shape == own))
        return fail("input " + std::to_string(i) + " has extents " + to_string(in[i].shape) + ", but its tensor has " +
                    to_string(own));
    }
    for (size_t i = 0; i < shapes.size(); ++i) shapes[i] = in[2 + i % count].shape;
    return make_plan(shapes, [o, count](Tensors inputs, Tensors outputs) {
      Optimizer now = o;
      Rule::begin(now, scalar(inputs[0]), scalar(inputs[1]));
      for (size_t tensor = 0; tensor < count; ++tensor) {
        if (inputs[2 + tensor].dtype == BP_DTYPE_DOUBLE)
          step_tensor<Rule, double>(now, inputs, outputs, tensor, count);
        else
          step_tensor<Rule, float>(now, inputs, outputs, tensor, count);
      }
    });
  });
}

constexpr const char* kTraining = "ai.onnx.preview.training";
}  // namespace

[[gnu::cold]] std::span<const Row> optimizer_rows() {
  static constexpr Row kRows[] = {
      Row{kTraining, "Adagrad", 1, supports<Adagrad>, create<Adagrad>}.with(kOmitsOutput0),
      Row{kTraining, "Adam", 1, supports<Adam>, create<Adam>}.with(kOmitsOutput0),
      Row{kTraining, "Momentum", 1, supports<Momentum>, create<Momentum>}.with(kOmitsOutput0),
  };
  return kRows;
}

}  // namespace backplane::cpu
