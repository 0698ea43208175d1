// SPDX-License-Identifier: Apache-2.0
// Oracles of Einsum and Det.
#include <algorithm>
#include <map>

#include "judge/tracked.h"

namespace backplane::conform {
namespace {

struct Equation {
  std::vector<std::string> inputs;  // one letter for each axis
  std::string output;
};

// Accepts letters only, without an ellipsis. Without "->", the output has the letters that occur once, in alphabetical
// order.
Equation parse(std::string_view text) {
  Equation equation{{""}, ""};
  bool is_output = false, has_arrow = false;
  std::map<char, int> counts;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (c == ',' && !is_output) {
      equation.inputs.emplace_back();
    } else if (c == '-' && i + 1 < text.size() && text[i + 1] == '>' && !has_arrow) {
      is_output = has_arrow = true;
      ++i;
    } else {
      require_known((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'),
                    "the oracle supports only equations of letters, commas and at most one ->, after the last comma");
      (is_output ? equation.output : equation.inputs.back()) += c;
      if (!is_output) ++counts[c];
    }
  }
  for (const auto& [letter, count] : counts) {
    if (!has_arrow && count == 1) equation.output += letter;
  }
  return equation;
}

References einsum(const Call& call) {
  const Equation equation = parse(call.text("equation"));
  require(call.input_count() == equation.inputs.size(), "the number of inputs differs from that of the equation");
  const bp_dtype_t dtype = call.in(0).dtype;
  std::string letters = equation.output;  // the letters of the output first, then those summed over
  std::map<char, int64_t> extents;
  for (size_t i = 0; i < equation.inputs.size(); ++i) {
    const Array& x = call.in(i);
    require(x.dtype == dtype, "the inputs have different types");
    require(x.rank() == static_cast<int64_t>(equation.inputs[i].size()),
            "the rank of an input differs from that of its term");
    for (size_t axis = 0; axis < x.extents.size(); ++axis) {
      const char letter = equation.inputs[i][axis];
      const auto [at, is_new] = extents.emplace(letter, x.extents[axis]);
      require(is_new || at->second == x.extents[axis], "a letter has two extents");
      if (letters.find(letter) == std::string::npos) letters += letter;
    }
  }
  Extents shape, summed;
  for (size_t i = 0; i < letters.size(); ++i) {
    require(extents.contains(letters[i]), "a letter of the output is in no input");
    require(letters.find(letters[i]) == i, "a letter is repeated in the output");
    (i < equation.output.size() ? shape : summed).push_back(extents[letters[i]]);
  }
  require_steps(static_cast<double>(count_of(shape)) * static_cast<double>(count_of(summed)) *
                static_cast<double>(call.input_count()));
  const auto place = [&](size_t input, const Index& index, const Index& rest) {
    Index at;
    for (const char letter : equation.inputs[input]) {
      const size_t i = letters.find(letter);
      at.push_back(i < index.size() ? index[i] : rest[i - index.size()]);
    }
    return at;
  };
  // A product of n factors rounds n - 1 times, which n additional terms cover. The device may sum in any order.
  const double terms = static_cast<double>(count_of(summed)) + static_cast<double>(call.input_count());
  Reference result(Array(dtype, shape), Rule::of(Rule::kDot, terms));
  for_each_index(shape, [&](const Index& index) {
    double sum = 0, scale = 0;
    for_each_index(summed, [&](const Index& rest) {
      double product = 1;
      for (size_t i = 0; i < equation.inputs.size(); ++i) product *= call.in(i).at(place(i, index, rest));
      sum += product;
      scale += std::fabs(product);
    });
    result.value.at(index) = sum;
    result.scale.push_back(scale);
  });
  return {Reference(std::move(result))};
}

// Gaussian elimination with partial pivoting: the pivot is the largest element of its column.
References det(const Call& call) {
  const Array& x = call.in(0, 2);
  const int64_t n = x.extents.back();
  require(is_float(x.dtype), "the matrices are not floating-point");
  require(x.extents[x.extents.size() - 2] == n, "the matrices are not square");
  require_steps(static_cast<double>(x.count()) * static_cast<double>(n));
  const Extents shape(x.extents.begin(), x.extents.end() - 2);
  std::vector<Tracked> elements;
  for (int64_t batch = 0; batch < count_of(shape); ++batch) {
    std::vector<std::vector<Tracked>> m(static_cast<size_t>(n));
    for (int64_t i = 0; i < n * n; ++i)
      m[static_cast<size_t>(i / n)].emplace_back(x.values[static_cast<size_t>(batch * n * n + i)]);
    Tracked result(1.0);
    double sign = 1;
    for (size_t c = 0; c < m.size(); ++c) {
      const auto pivot =
          std::max_element(m.begin() + static_cast<int64_t>(c), m.end(),
                           [&](const auto& a, const auto& b) { return std::fabs(a[c].value) < std::fabs(b[c].value); });
      if (pivot != m.begin() + static_cast<int64_t>(c)) {
        std::swap(*pivot, m[c]);
        sign = -sign;
      }
      require(m[c][c].value != 0, "a matrix is singular");
      result = result * m[c][c];
      for (size_t row = c + 1; row < m.size(); ++row) {
        const Tracked factor = m[row][c] / m[c][c];
        for (size_t i = c; i < m.size(); ++i) m[row][i] = m[row][i] - factor * m[c][i];
      }
    }
    elements.emplace_back(sign * result.value, result.error);
  }
  return {tracked_reference(x.dtype, shape, elements)};
}

const Operator kOperators[] = {
    {"Einsum", {12, 28}, einsum},
    {"Det", {11, 22}, det},
};

}  // namespace

std::span<const Operator> einsum_operators() {
  return kOperators;
}

}  // namespace backplane::conform
