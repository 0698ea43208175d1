// SPDX-License-Identifier: Apache-2.0
// Fuses a formula that reads the result of a product or convolution into the last step of its kernel or library call.
#include <algorithm>

#include "engine/planner.h"

namespace backplane::gpu {
namespace {

bool is_dense(const View& view, const Shape& shape) {
  if (view.offset != 0) return false;
  const std::vector<int64_t> dense = dense_strides(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1 && view.strides[d] != dense[d]) return false;
  }
  return true;
}

// The index into `view` for an element of a dense [outer, rows, columns] tensor of extents `shape`: the name of a
// parameter of the generated function `epilogue` ("at", "row", "column"), or "0". Empty if none of them is the index.
std::string_view index_of(const View& view, const Shape& shape, int64_t rows, int64_t columns) {
  if (view.offset != 0) return {};
  // Element i of the shape reads element i / step % period of the view.
  int64_t step = 1, period = 1;
  size_t d = shape.size();
  for (; d > 0 && (shape[d - 1] == 1 || view.strides[d - 1] == 0); --d) step *= shape[d - 1];
  for (; d > 0 && (shape[d - 1] == 1 || view.strides[d - 1] == period); --d) period *= shape[d - 1];
  for (; d > 0 && (shape[d - 1] == 1 || view.strides[d - 1] == 0); --d) {
  }
  if (d != 0) return {};
  if (period == 1) return "0";
  if (step == 1 && period == elements(shape)) return "at";
  if (step == 1 && period == columns) return "column";
  if (step == columns && period == rows) return "row";
  return {};
}

// The operands that a formula adds to the result of a library; NULL if it has no such operand.
struct Addends {
  const View* c = nullptr;
  const View* bias = nullptr;
};

// Adds a step of a formula to the problem. `other` is the step's second operand, which is read at `index`; NULL if it
// has none. Returns false if the library has no such step, or not after the steps added so far.
bool add_step(ProductProblem& problem, Addends& addends, std::string_view code, const View* other,
              std::string_view index) {
  using Activation = ProductProblem::Activation;
  if (problem.activation != Activation::kNone) return false;
  if (other == nullptr) {
    if (code == kReluFormula) problem.activation = Activation::kRelu;
    if (code == kTanhGeluFormula) problem.activation = Activation::kTanhGelu;
    return problem.activation != Activation::kNone;
  }
  if (code != kSumFormula) return false;
  if (index == "column" && !problem.has_bias) return problem.has_bias = true, addends.bias = other, true;
  if (index == "at" && problem.beta == 0) return problem.beta = 1, addends.c = other, true;
  return false;
}

bool add_step(ConvolutionProblem& problem, Addends& addends, std::string_view code, const View* other,
              std::string_view index) {
  if (problem.relu) return false;
  if (other == nullptr) return problem.relu = code == kReluFormula;
  if (code != kSumFormula) return false;
  if (index == "row" && !problem.has_bias) return problem.has_bias = true, addends.bias = other, true;
  if (index == "at" && !problem.has_c) return problem.has_c = true, addends.c = other, true;
  return false;
}

// Adds all steps of `expression`, if they are a chain that starts with the leaf `sum` [.., rows, columns] and the
// library supports it. Otherwise returns false.
template <class Problem>
bool add_steps(Problem& problem, Addends& addends, const Expression& expression, const View& sum, int64_t rows,
               int64_t columns) {
  int before = -1 - static_cast<int>(&sum - expression.leaves.data());
  for (size_t s = 0; s < expression.steps.size(); ++s) {
    const auto& [dtype, code, operands] = expression.steps[s];
    if (dtype != problem.dtype || operands.empty() || operands.size() > 2) return false;
    const bool first = operands.front() == before;
    if (!first && operands.back() != before) return false;
    const View* other = nullptr;
    std::string_view index;
    if (operands.size() == 2) {
      const int operand = first ? operands.back() : operands.front();
      if (operand >= 0 || operand == before) return false;
      other = &expression.leaves[static_cast<size_t>(-1 - operand)];
      index = index_of(*other, expression.shape, rows, columns);
      if (other->tensor.dtype != dtype || other->tensor.id == sum.tensor.id) return false;
    }
    if (!add_step(problem, addends, code, other, index)) return false;
    before = static_cast<int>(s);
  }
  return true;
}

// The number of elements of a bias that the library requires although the model has none; 0 if none is required.
int64_t missing_bias(const ProductProblem&) {
  return 0;
}
int64_t missing_bias(const ConvolutionProblem& problem) {
  return (problem.has_c || problem.relu) && !problem.has_bias ? problem.maps : 0;
}

}  // namespace

const View* Planner::open_leaf(const Expression& expression, const Tensor& y, Open& out_open) const {
  // Chooses the operand whose launch is the last in the plan: by then, all other operands have been computed.
  const View* sum = nullptr;
  for (const View& leaf : expression.leaves) {
    const auto at = open_.find(leaf.tensor.id);
    if (at == open_.end() || !is_dense(leaf, expression.shape) || leaf.tensor.count() != y.count()) continue;
    if (sum != nullptr && at->second.launch < out_open.launch) continue;
    sum = &leaf;
    out_open = at->second;
  }
  return sum;
}

bool Planner::fuse_epilogue(const Expression& expression, const Tensor& y) {
  Open open{};
  const View* const sum = open_leaf(expression, y, open);
  if (sum == nullptr) return false;
  if (plan_.launches[open.launch].call) return fuse_into_call(expression, *sum, open, y);

  std::string parameters, arguments, loads;
  for (size_t k = 0; k < expression.leaves.size(); ++k) {
    const View& leaf = expression.leaves[k];
    if (&leaf == sum) continue;
    const std::string_view index = index_of(leaf, expression.shape, open.rows, open.columns);
    if (index.empty() || leaf.tensor.id == sum->tensor.id) return false;
    const std::string type = Emit::type(leaf.tensor), n = std::to_string(k);
    parameters += ", GLOBAL const S_" + type + "* p" + n;
    arguments += ", p" + n;
    loads += "  const C_" + type + " x" + n + " = LOAD(" + type + ", p" + n + ", " + std::string(index) + ");\n";
  }
  Launch& launch = move_to_end(open, sum->tensor, y);
  const std::string type = Emit::type(sum->tensor), out = Emit::type(y);
  launch.source.code += "#define EPILOGUE_PARAMETERS " + parameters + "\n#define EPILOGUE(v, at, row, column) " +
                        "epilogue(v, at, row, column" + arguments + ")\ninline C_" + out + " epilogue(C_" + type +
                        " x" + std::to_string(sum - expression.leaves.data()) + ", int at, int row, int column" +
                        parameters + ") {\n" + loads + expression.statements() + "  return t" +
                        std::to_string(expression.steps.size() - 1) + ";\n}\n";
  launch.source.options += " -DOUT=" + out;
  for (const View& leaf : expression.leaves) {
    if (&leaf == sum) continue;
    const uint32_t storage = storage_of_[leaf.tensor.id];
    launch.arguments.push_back({.storage = storage});
    launch.reads.push_back(storage);
  }
  return true;
}

// A library supports few formulas: the whole expression must be a chain of those.
bool Planner::fuse_into_call(const Expression& expression, const View& sum, const Open& open, const Tensor& y) {
  const auto fuse = [&](auto problem) {
    Addends addends;
    if (!add_steps(problem, addends, expression, sum, open.rows, open.columns)) return false;
    const int64_t zeros = missing_bias(problem);
    problem.has_bias = problem.has_bias || zeros != 0;
    if (!context_.libraries.of(problem)->refusal(problem).empty()) return false;
    Launch& launch = move_to_end(open, sum.tensor, y);
    launch.call->problem = problem;
    const auto set = [&](LibraryArgument argument, const Tensor& tensor) {
      const uint32_t storage = storage_of_[tensor.id];
      launch.arguments[argument] = {.storage = storage};
      launch.reads.push_back(storage);
    };
    if (addends.c != nullptr) set(kLibraryC, addends.c->tensor);
    if (addends.bias != nullptr) set(kLibraryBias, addends.bias->tensor);
    if (zeros != 0) {
      const std::vector<std::byte> bytes(static_cast<size_t>(zeros) * bytes_of(problem.dtype));
      set(kLibraryBias, Emit(*this, graph_.node(node_)).table(problem.dtype, {zeros}, bytes));
    }
    return true;
  };
  return std::visit(fuse, plan_.launches[open.launch].call->problem);
}

Launch& Planner::move_to_end(const Open& open, const Tensor& sum, const Tensor& y) {
  const auto place = plan_.launches.begin() + static_cast<ptrdiff_t>(open.launch);
  Launch launch = std::move(*place);
  plan_.launches.erase(place);
  open_.erase(sum.id);
  for (auto& [id, other] : open_) other.launch -= other.launch > open.launch ? 1 : 0;
  const uint32_t before = storage_of_[sum.id], after = storage_of_[y.id];
  for (Argument& argument : launch.arguments) {
    if (argument.storage == before) argument.storage = after;
  }
  std::ranges::replace(launch.writes, before, after);
  launch.node = node_;
  plan_.launches.push_back(std::move(launch));
  return plan_.launches.back();
}

}  // namespace backplane::gpu
