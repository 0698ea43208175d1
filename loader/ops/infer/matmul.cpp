// SPDX-License-Identifier: Apache-2.0
// Matrix products: MatMul and its quantized forms, Gemm, Einsum. Also Det.
#include <algorithm>
#include <array>

#include "base/counted.h"
#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

Status product(Context& c, size_t left, size_t right) {
  BP_TRY(c.expect_rank(left, 1, BP_MAX_RANK));
  BP_TRY(c.expect_rank(right, 1, BP_MAX_RANK));
  if (!c.ranked(left) || !c.ranked(right)) return {};
  Shape a = c.shape(left), b = c.shape(right);
  bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), Scalar(1));
  if (column) b.push_back(1);
  const Scalar& last = a.back();
  const Scalar& first = b[b.size() - 2];
  if (last.is_number() && first.is_number() && last.value != first.value) {
    return c.fail("cannot multiply " + c.describe(c.shape(left)) + " by " + c.describe(c.shape(right)) + ": " +
                  std::to_string(last.value) + " columns do not match " + std::to_string(first.value) + " rows");
  }
  Shape shape;
  BP_TRY(c.broadcast(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2), shape));
  if (!row) shape.push_back(a[a.size() - 2]);
  if (!column) shape.push_back(b.back());
  return c.set_shape(0, shape);
}

Status matmul(Context& c) {
  return product(c, 0, 1);
}
Status quantized_matmul(Context& c) {
  return product(c, 0, 3);
}

Status integer_matmul(Context& c) {
  c.set_dtype(0, BP_DTYPE_INT32);
  return product(c, 0, 1);
}

Status gemm(Context& c) {
  BP_TRY(c.expect_rank(0, 2, 2));
  BP_TRY(c.expect_rank(1, 2, 2));
  int64_t ta = c.integer("transA") != 0, tb = c.integer("transB") != 0;
  Scalar columns = c.dim(0, 1 - ta), rows = c.dim(1, tb);
  if (columns.is_number() && rows.is_number() && columns.value != rows.value) {
    return c.fail("cannot multiply " + c.describe(c.shape(0)) + (ta ? " (transposed)" : "") + " by " +
                  c.describe(c.shape(1)) + (tb ? " (transposed)" : "") + ": " + std::to_string(columns.value) +
                  " columns do not match " + std::to_string(rows.value) + " rows");
  }
  Shape shape{c.dim(0, ta), c.dim(1, 1 - tb)};
  if (c.ranked(2)) {
    Shape sum;
    BP_TRY(c.expect_rank(2, 0, 2));
    BP_TRY(c.broadcast(shape, c.shape(2), sum));
  }
  return c.set_shape(0, shape);
}

// An equation such as "ij,jk->ik", with "..." for axes that broadcast. Without an arrow, the output has the letters
// that occur once, in alphabetical order.
Status einsum(Context& c) {
  std::string equation;
  for (char letter : c.text("equation")) {
    if (letter != ' ') equation += letter;
  }
  size_t arrow = equation.find("->");
  std::string left = equation.substr(0, arrow);
  std::array<Scalar, 256> extents;
  std::array<int, 256> uses{};
  Shape ellipsis;
  bool has_ellipsis = false;
  if (const auto terms = static_cast<size_t>(std::count(left.begin(), left.end(), ',')) + 1; terms != c.inputs()) {
    return c.fail("equation '" + equation + "' has " + counted(terms, "term") + ", but the node has " +
                  counted(c.inputs(), "input"));
  }
  size_t from = 0;
  for (size_t slot = 0; slot < c.inputs(); ++slot) {
    size_t comma = std::min(left.find(',', from), left.size());
    std::string term = left.substr(from, comma - from);
    from = comma + 1;
    if (!c.ranked(slot)) return {};
    Shape shape = c.shape(slot);
    size_t dots = term.find("...");
    size_t letters = term.size() - (dots == std::string::npos ? 0 : 3);
    if (letters > shape.size() || (dots == std::string::npos && letters != shape.size())) {
      return c.fail("equation '" + equation + "' names " + std::to_string(letters) + " axes of input " +
                    std::to_string(slot) + ", which has rank " + std::to_string(shape.size()));
    }
    size_t hidden = shape.size() - letters;
    for (size_t i = 0, axis = 0; i < term.size();) {
      if (i == dots) {
        has_ellipsis = true;
        BP_TRY(c.broadcast(ellipsis, Shape(shape.begin() + axis, shape.begin() + axis + hidden), ellipsis));
        axis += hidden;
        i += 3;
        continue;
      }
      unsigned char letter = term[i++];
      const bool is_letter = (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z');
      if (!is_letter) return c.fail("equation '" + equation + "' has a character that is not a letter");
      Scalar& extent = extents[letter];
      if (uses[letter]++) {
        BP_TRY(c.broadcast(extent, shape[axis], extent, std::string("extents of '") + char(letter) + "'"));
      } else {
        extent = shape[axis];
      }
      ++axis;
    }
  }
  std::string right;
  if (arrow != std::string::npos) {
    right = equation.substr(arrow + 2);
  } else {
    if (has_ellipsis) right = "...";
    for (int letter = 0; letter < 256; ++letter) {
      if (uses[letter] == 1) right += static_cast<char>(letter);
    }
  }
  Shape result;
  for (size_t i = 0; i < right.size(); ++i) {
    unsigned char letter = right[i];
    if (right.compare(i, 3, "...") == 0) {
      result.insert(result.end(), ellipsis.begin(), ellipsis.end());
      i += 2;
    } else if (!uses[letter]) {
      return c.fail("equation '" + equation + "' requests axis '" + right.substr(i, 1) + "', which no input has");
    } else {
      result.push_back(extents[letter]);
    }
  }
  return c.set_shape(0, result);
}

Status determinant(Context& c) {
  BP_TRY(c.expect_rank(0, 2, BP_MAX_RANK));
  if (!c.ranked(0)) return {};
  Shape shape = c.shape(0);
  Scalar side;
  BP_TRY(c.merge(shape[shape.size() - 1], shape[shape.size() - 2], side, "rows and columns"));
  shape.resize(shape.size() - 2);
  return c.set_shape(0, shape);
}

}  // namespace

std::span<const RuleRow> matmul_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "Det", determinant},
      {"", "Einsum", einsum},
      {"", "Gemm", gemm},
      {"", "MatMul", matmul},
      {"", "MatMulInteger", integer_matmul},
      {"", "QLinearMatMul", quantized_matmul},
  };
  return kRows;
}

}  // namespace backplane::ops
