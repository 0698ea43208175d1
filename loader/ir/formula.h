// SPDX-License-Identifier: Apache-2.0
// How the extents of a graph follow from each other, kept from shape inference so that costs can be estimated for
// extents that are known only at run time.
#pragma once

#include <cstdint>
#include <vector>

namespace backplane::model {

struct Graph;

// An integer computed from symbols. Formulas refer to earlier ones by their position in Graph::formulas.
struct Formula {
  enum Kind : uint32_t { kSymbol, kSum, kQuotient, kMin, kMax };  // kQuotient rounds towards negative infinity
  struct Term {
    int64_t factor;
    std::vector<uint32_t> factors;  // formulas; the term is `factor` times all of them
  };
  struct Operand {
    bool is_formula;
    int64_t value;  // the formula's position, or the number itself
  };
  Kind kind;
  uint32_t symbol;          // of kSymbol
  std::vector<Term> terms;  // of kSum
  Operand a, b;             // of kQuotient, kMin and kMax
};

// The extent that cost estimates assume for a symbol that follows from no other, within its bounds.
constexpr int64_t kOpenExtent = 64;

// Sets Symbol::expected of all symbols of an outermost graph. Call this again when bounds of symbols have changed.
void set_expected_extents(Graph& graph);

}  // namespace backplane::model
