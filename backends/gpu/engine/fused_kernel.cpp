// SPDX-License-Identifier: Apache-2.0
// Generates the kernel of an expression, with one work item per element. Each leaf (a tensor that the expression reads)
// is read once, with its own strides.
#include "engine/fused_kernel.h"

#include <algorithm>

#include "engine/planner.h"

namespace backplane::gpu {
namespace {

// The dimensions to iterate over: dimension 0 is the innermost.
struct Walk {
  std::vector<int64_t> extents;
  std::vector<std::vector<int64_t>> strides;  // indexed by view, then by dimension
};

// Merges adjacent dimensions that are contiguous in every view, and drops dimensions of extent 1.
Walk walk(const Shape& shape, const std::vector<View>& views) {
  Walk walk;
  walk.strides.resize(views.size());
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1) continue;
    bool joins = !walk.extents.empty();
    for (size_t k = 0; joins && k < views.size(); ++k)
      joins = views[k].strides[d] == walk.strides[k].back() * walk.extents.back();
    if (joins) {
      walk.extents.back() *= shape[d];
      continue;
    }
    walk.extents.push_back(shape[d]);
    for (size_t k = 0; k < views.size(); ++k) walk.strides[k].push_back(views[k].strides[d]);
  }
  if (walk.extents.empty()) {
    walk.extents.push_back(1);
    for (auto& strides : walk.strides) strides.push_back(0);
  }
  return walk;
}

// Writes a kernel's source and collects the numbers that it takes after its buffers.
class Writer {
 public:
  Writer(const Shape& shape, const std::vector<View>& views) : walk_(walk(shape, views)), views_(views) {
    for (const int64_t extent : walk_.extents) number("n", extent);
  }
  const Walk& walked() const { return walk_; }
  const std::vector<int64_t>& numbers() const { return numbers_; }
  const std::string& parameters() const { return parameters_; }

  // Source code of the offset in view k for the work item's coordinates.
  std::string place(size_t k) {
    std::string at;
    for (size_t d = 0; d < walk_.extents.size(); ++d) {
      const int64_t stride = walk_.strides[k][d];
      if (stride == 0) continue;
      at += (at.empty() ? "c" : " + c") + std::to_string(d);
      if (stride != 1) at += " * " + number("s", stride);
    }
    if (views_[k].offset != 0) at += (at.empty() ? "" : " + ") + number("s", views_[k].offset);
    return at.empty() ? "0" : at;
  }

  // Source code that computes the work item's coordinates c0, c1, …; items beyond the extents return.
  std::string coordinates() const {
    const size_t rank = walk_.extents.size();
    std::string code = "  const int c0 = (int)get_global_id(0);\n";
    if (rank > 1) code += "  const int c1 = (int)get_global_id(1);\n";
    if (rank > 2) code += "  int rest = (int)get_global_id(2);\n";
    // The divisions precede the return, so that compilers can move them out of a loop over work items.
    for (size_t d = 2; d < rank; ++d) {
      const std::string n = std::to_string(d);
      if (d + 1 == rank) {
        code += "  const int c" + n + " = rest;\n";
      } else {
        code += "  const int c" + n + " = rest % n" + n + ";\n  rest /= n" + n + ";\n";
      }
    }
    code += rank > 1 ? "  if (c0 >= n0 || c1 >= n1) return;\n" : "  if (c0 >= n0) return;\n";
    return code;
  }

 private:
  std::string number(const char* letter, int64_t value) {
    const std::string name = letter + std::to_string(numbers_.size());
    parameters_ += ", int " + name;
    numbers_.push_back(value);
    return name;
  }

  Walk walk_;
  const std::vector<View>& views_;
  std::string parameters_;
  std::vector<int64_t> numbers_;
};

}  // namespace

void emit_expression(Emit& e, const Expression& expression, const View& y) {
  if (elements(expression.shape) == 0) return;  // there is nothing to compute, and other extents may exceed 32 bits
  std::vector<View> views = expression.leaves;
  views.push_back(y);
  Writer writer(expression.shape, views);
  std::string buffers, loads;
  for (size_t k = 0; k < expression.leaves.size(); ++k) {
    const std::string type = Emit::type(expression.leaves[k].tensor), n = std::to_string(k);
    buffers += ", GLOBAL const S_" + type + "* p" + n;
    loads += "  const C_" + type + " x" + n + " = LOAD(" + type + ", p" + n + ", " + writer.place(k) + ");\n";
  }
  const std::string type = Emit::type(y.tensor);
  const std::string store = "  STORE(" + type + ", y, " + writer.place(views.size() - 1) + ", t" +
                            std::to_string(expression.steps.size() - 1) + ");\n";
  LaunchBuilder launch = e.launch({}, "fused", {},
                                  "kernel void fused(GLOBAL S_" + type + "* y" + buffers + writer.parameters() +
                                      ") {\n" + writer.coordinates() + loads + expression.statements() + store + "}\n");
  launch.out(y.tensor);
  for (const View& leaf : expression.leaves) launch.in(leaf.tensor);
  for (const int64_t number : writer.numbers()) launch.arg(number);
  const std::vector<int64_t>& extents = writer.walked().extents;
  int64_t outer = 1;
  for (size_t d = 2; d < extents.size(); ++d) outer *= extents[d];
  // Square groups are best for transposed views, where neighbors along dimension 1 share cache lines.
  const bool across =
      std::ranges::any_of(writer.walked().strides, [](const auto& s) { return s[0] != 0 && s[0] != 1; });
  launch.range(extents[0], extents.size() > 1 ? extents[1] : 1, outer, across && extents.size() > 1 ? 16 : SIZE_MAX);
}

}  // namespace backplane::gpu
