// SPDX-License-Identifier: Apache-2.0
// Arithmetic on integers that may be symbolic: extents, and the elements of small integer tensors.
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

// A number, an expression over symbols, or unknown. Elements of floating-point tensors may be real.
struct Scalar {
  enum Kind : uint32_t { kUnknown, kNumber, kReal, kSymbol };
  Kind kind = kUnknown;
  union {
    int64_t value = 0;  // number
    double real_value;  // real
    uint64_t id;        // symbol: its expression
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
  bool is(int64_t n) const { return kind == kNumber && value == n; }
  // Known to be equal; two unknowns are not.
  bool same(const Scalar& other) const { return kind != kUnknown && kind == other.kind && value == other.value; }
};

using Shape = std::vector<Scalar>;

// The expressions of one model: polynomials over atoms, where an atom is a symbol of the model or anything that is not
// a polynomial (a quotient, a minimum). Each is stored once, so that the same computation on the same symbols is the
// same expression: "2*floor((W + 1)/2)". An expression that overflows or grows too long becomes unknown.
class Expressions {
 public:
  // `budget`, which may be null, is charged for each expression.
  Expressions(std::vector<model::Symbol>& symbols, Budget* budget);

  Scalar of_dim(const bp_dim_t& dim);
  // Converts a scalar, which must not be a negative number, to a dimension; adds a symbol if it has none yet.
  bp_dim_t to_dim(const Scalar& scalar);

  Scalar add(const Scalar& a, const Scalar& b);
  Scalar subtract(const Scalar& a, const Scalar& b);
  Scalar multiply(const Scalar& a, const Scalar& b);
  // Rounds down.
  Scalar floor_divide(const Scalar& a, const Scalar& b);
  // Rounds up; b > 0.
  Scalar ceil_divide(const Scalar& a, const Scalar& b);
  // ONNX Div of integers: rounds towards zero.
  Scalar truncate_divide(const Scalar& a, const Scalar& b);
  Scalar min(const Scalar& a, const Scalar& b);
  Scalar max(const Scalar& a, const Scalar& b);
  Scalar product(const Shape& shape);
  // The bounds of an expression or a number; the limits of int64_t mean none.
  int64_t lower(const Scalar& a) const;
  int64_t upper(const Scalar& a) const;
  // "3", "W", "floor(W/2)", "?".
  std::string text(const Scalar& a) const;

 private:
  struct Term {
    int64_t factor;
    std::vector<uint32_t> atoms;  // ascending; empty: the constant
  };
  using Polynomial = std::vector<Term>;  // ascending by atoms, no zero factors
  struct Expression {
    Polynomial terms;
    std::string name;
    int64_t min, max;
    uint32_t symbol = BP_NONE;
    Scalar dividend = {};  // of a quotient by a number
    int64_t divisor = 0;   // 0: the expression is not such a quotient
  };

  bool polynomial(const Scalar& a, Polynomial& out) const;
  static bool accumulate(Polynomial& sum, const Term& term);
  Scalar intern(Polynomial&& terms);
  // If `a` is a quotient by a number plus the number `shift`, returns the quotient; else null.
  const Expression* shifted_quotient(const Scalar& a, int64_t& shift) const;
  Scalar atom(char op, const Scalar& a, const Scalar& b, std::string name, int64_t min, int64_t max);
  uint32_t add_expression(std::string key, std::string name, int64_t min, int64_t max);
  std::string name_of(const Polynomial& terms) const;
  void bounds(const Polynomial& terms, int64_t& min, int64_t& max) const;

  std::vector<model::Symbol>& symbols_;
  Budget* budget_;
  std::vector<Expression> expressions_;
  std::vector<uint32_t> of_symbol_;  // by symbol: its expression, or BP_NONE
  std::unordered_map<std::string, uint32_t, KeyedHash> by_key_;
  std::unordered_set<std::string, KeyedHash> names_;
};

}  // namespace backplane::ops
