// SPDX-License-Identifier: Apache-2.0
#include "ir/formula.h"

#include <algorithm>
#include <cmath>

#include "ir/graph.h"

namespace backplane::model {
namespace {

constexpr double kLargest = 1e15;  // no memory can hold this many elements, and a double holds the number exactly

double number_of(const Formula::Operand& operand, const std::vector<double>& values) {
  return operand.is_formula ? values[static_cast<size_t>(operand.value)] : static_cast<double>(operand.value);
}

double bounded(const Symbol& symbol, double extent) {
  if (!(std::abs(extent) <= kLargest)) extent = kLargest;  // NaN too
  return std::max(static_cast<double>(symbol.min), std::min(extent, static_cast<double>(symbol.max)));
}

double evaluate(const Graph& graph, const Formula& formula, const std::vector<double>& values) {
  switch (formula.kind) {
    case Formula::kSymbol: {
      const Symbol& symbol = graph.symbols[formula.symbol];
      return bounded(symbol, symbol.formula < values.size() ? values[symbol.formula] : kOpenExtent);
    }
    case Formula::kSum: {
      double sum = 0;
      for (const Formula::Term& term : formula.terms) {
        double product = static_cast<double>(term.factor);
        for (const uint32_t factor : term.factors) product *= values[factor];
        sum += product;
      }
      return sum;
    }
    case Formula::kQuotient: {
      const double divisor = number_of(formula.b, values);
      return divisor == 0 ? 0 : std::floor(number_of(formula.a, values) / divisor);
    }
    case Formula::kMin:
      return std::min(number_of(formula.a, values), number_of(formula.b, values));
    case Formula::kMax:
      return std::max(number_of(formula.a, values), number_of(formula.b, values));
  }
  return kOpenExtent;
}

}  // namespace

void set_expected_extents(Graph& graph) {
  std::vector<double> values;
  values.reserve(graph.formulas.size());
  for (const Formula& formula : graph.formulas) values.push_back(evaluate(graph, formula, values));
  for (Symbol& symbol : graph.symbols) {
    const double extent = bounded(symbol, symbol.formula < values.size() ? values[symbol.formula] : kOpenExtent);
    symbol.expected = static_cast<int64_t>(std::min(extent, kLargest));
  }
}

}  // namespace backplane::model
