// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic with symbols, for extents and for the elements of small integer tensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/keyed_hash.h"
#include "ir/graph.h"

namespace backplane::ops {

// A number, an expression over symbols, or unknown. Elements of floating-point tensors may be real numbers.
struct Scalar {
  enum Kind : uint32_t { kUnknown, kNumber, kReal, kSymbol };
  Kind kind = kUnknown;
  union {
    int64_t value = 0;  // kNumber
    double real_value;  // kReal
    uint64_t id;        // kSymbol: the id of its expression
  };

  Scalar() = default;
  Scalar(int64_t n) : kind(kNumber), value(n) {}
  static Scalar of_real(double x) {
    Scalar s;
    s.kind = kReal;
    s.real_value = x;
    return s;
  }
  bool is_number() const { return kind == kNumber; }
  // Whether it is an integer: a number or an expression.
  bool is_integer() const { return kind == kNumber || kind == kSymbol; }
  bool is(int64_t n) const { return kind == kNumber && value == n; }
  // Whether both are known and equal. Two unknown scalars are not the same.
  bool same(const Scalar& other) const { return kind != kUnknown && kind == other.kind && value == other.value; }
};

using Shape = std::vector<Scalar>;

// The expressions of one model. An expression is a polynomial over atoms; an atom is a symbol of the model or a
// non-polynomial such as a quotient or a minimum. Each expression is stored once, so the same computation on the same
// symbols yields the same expression: "2*floor((W + 1)/2)". An expression that overflows or becomes too long is
// replaced by "unknown".
class Expressions {
 public:
  // Each expression is charged to `budget`, which may be null.
  Expressions(std::vector<model::Symbol>& symbols, Budget* budget);

  Scalar of_dim(const bp_dim_t& dim);
  // Converts a scalar to a dimension; adds a symbol for an expression that has none. The scalar must not be a negative
  // number.
  bp_dim_t to_dim(const Scalar& scalar);

  Scalar add(const Scalar& a, const Scalar& b);
  Scalar subtract(const Scalar& a, const Scalar& b);
  Scalar multiply(const Scalar& a, const Scalar& b);
  // Rounds towards negative infinity.
  Scalar floor_divide(const Scalar& a, const Scalar& b);
  // Rounds towards positive infinity. Requires b > 0.
  Scalar ceil_divide(const Scalar& a, const Scalar& b);
  // ONNX's Div of integers: rounds towards zero.
  Scalar truncate_divide(const Scalar& a, const Scalar& b);
  Scalar min(const Scalar& a, const Scalar& b);
  Scalar max(const Scalar& a, const Scalar& b);
  Scalar product(const Shape& shape);
  // The bounds of an expression or a number. The limits of int64_t mean "no bound".
  int64_t lower(const Scalar& a) const;
  int64_t upper(const Scalar& a) const;
  // Adds the formulas of the symbols to `graph`. Its symbols must be those that were passed to the constructor.
  void keep_formulas(model::Graph& graph) const;
  // As text: "3", "W", "floor(W/2)", "e7" for an expression too long to print, or "?" if unknown.
  std::string text(const Scalar& a) const;

 private:
  struct Term {
    int64_t factor;
    std::vector<uint32_t> atoms;  // ascending; empty for the constant term
  };
  using Polynomial = std::vector<Term>;  // ascending by atoms; no factor is zero
  struct Expression {
    Polynomial terms;
    std::string name;
    int64_t min, max;
    uint32_t symbol = BP_NONE;
    char op = 0;  // of an atom that is not a symbol of the model: '/', '<' (minimum), '>' (maximum)
    Scalar a = {}, b = {};
    Scalar dividend = {};  // set if this is a quotient by a number
    int64_t divisor = 0;   // 0: not a quotient by a number
  };

  bool is_derived(uint32_t id) const;
  bool polynomial(const Scalar& a, Polynomial& out) const;
  static bool accumulate(Polynomial& sum, const Term& term);
  Scalar intern(Polynomial&& terms);
  // If `a` is the sum of a quotient by a number and a constant, returns the quotient and sets `shift` to the constant.
  // Otherwise returns null.
  const Expression* shifted_quotient(const Scalar& a, int64_t& shift) const;
  Scalar atom(char op, const Scalar& a, const Scalar& b, std::string name, int64_t min, int64_t max);
  uint32_t add_expression(std::string key, std::string name, int64_t min, int64_t max);
  std::string name_of(const Polynomial& terms) const;
  void bounds(const Polynomial& terms, int64_t& min, int64_t& max) const;

  std::vector<model::Symbol>& symbols_;
  Budget* budget_;
  std::vector<Expression> expressions_;
  std::vector<uint32_t> of_symbol_;  // for each symbol, its expression or BP_NONE
  std::unordered_map<std::string, uint32_t, KeyedHash> by_key_;
  std::unordered_set<std::string, KeyedHash> names_;
};

}  // namespace backplane::ops
