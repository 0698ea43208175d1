// SPDX-License-Identifier: Apache-2.0
#include "ops/symbolic/scalar.h"

#include <algorithm>
#include <limits>

namespace backplane::ops {
namespace {

constexpr size_t kMaxTerms = 12;
constexpr size_t kMaxAtoms = 8;
constexpr size_t kLongestName = 80;
// Estimated bytes of an expression: its terms, names and table entry, and the temporary expressions created with it.
constexpr uint64_t kBytesOfExpression = 2048;

constexpr int64_t kLow = std::numeric_limits<int64_t>::min();
constexpr int64_t kHigh = std::numeric_limits<int64_t>::max();

// kLow and kHigh mean "no bound".
int64_t saturate(__int128 value) {
  return value <= kLow ? kLow : value >= kHigh ? kHigh : static_cast<int64_t>(value);
}

int64_t bounded_add(int64_t a, int64_t b, int64_t no_bound) {
  return a == no_bound || b == no_bound ? no_bound : saturate(static_cast<__int128>(a) + b);
}

int64_t bounded_multiply(int64_t a, int64_t b) {
  return saturate(static_cast<__int128>(a) * b);
}

int64_t floor_quotient(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

bool divides_safely(int64_t a, int64_t b) {
  return b != 0 && !(a == kLow && b == -1);
}

void append(std::string& key, int64_t value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Puts parentheses around the name of an operand if it is a sum, which has spaces outside of parentheses. A divisor
// also needs them if it is a product.
std::string operand(const std::string& name, bool is_divisor = false) {
  int depth = 0;
  for (const char c : name) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth == 0 && (c == ' ' || (c == '*' && is_divisor))) return "(" + name + ")";
  }
  return name;
}

}  // namespace

Expressions::Expressions(std::vector<model::Symbol>& symbols, Budget* budget) : symbols_(symbols), budget_(budget) {
  for (const model::Symbol& symbol : symbols) names_.insert(symbol.name);
}

Scalar Expressions::of_dim(const bp_dim_t& dim) {
  if (dim.extent >= 0) return dim.extent;
  if (dim.symbol >= symbols_.size()) return {};
  of_symbol_.resize(symbols_.size(), BP_NONE);
  uint32_t& id = of_symbol_[dim.symbol];
  if (id == BP_NONE) {
    const model::Symbol& symbol = symbols_[dim.symbol];
    std::string key = "S";
    append(key, dim.symbol);
    id = add_expression(std::move(key), symbol.name, symbol.min, symbol.max);
    expressions_[id].symbol = dim.symbol;
  }
  Scalar scalar;
  scalar.kind = Scalar::kSymbol;
  scalar.id = id;
  return scalar;
}

bp_dim_t Expressions::to_dim(const Scalar& scalar) {
  if (scalar.kind == Scalar::kNumber) return {scalar.value, BP_NONE, 0};
  if (scalar.kind != Scalar::kSymbol) return {-1, BP_NONE, 0};
  Expression& expression = expressions_[scalar.id];
  if (expression.symbol == BP_NONE) {
    expression.symbol = static_cast<uint32_t>(symbols_.size());
    if (expression.name.empty()) expression.name = "s" + std::to_string(expression.symbol);
    while (!names_.insert(expression.name).second) expression.name += '\'';
    symbols_.push_back({expression.name, std::max<int64_t>(expression.min, 0), std::max<int64_t>(expression.max, 0)});
    of_symbol_.resize(symbols_.size(), BP_NONE);
    of_symbol_.back() = static_cast<uint32_t>(scalar.id);
  }
  return {-1, expression.symbol, 0};
}

Scalar Expressions::add(const Scalar& a, const Scalar& b) {
  if (a.kind == Scalar::kNumber && b.kind == Scalar::kNumber) {
    int64_t sum;
    return __builtin_add_overflow(a.value, b.value, &sum) ? Scalar() : Scalar(sum);
  }
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  Polynomial sum, other;
  if (!polynomial(a, sum) || !polynomial(b, other)) return {};
  for (const Term& term : other) {
    if (!accumulate(sum, term)) return {};
  }
  return intern(std::move(sum));
}

Scalar Expressions::subtract(const Scalar& a, const Scalar& b) {
  if (a.same(b) && a.kind != Scalar::kReal) return 0;
  return add(a, multiply(b, -1));
}

Scalar Expressions::multiply(const Scalar& a, const Scalar& b) {
  if (a.kind == Scalar::kNumber && b.kind == Scalar::kNumber) {
    int64_t product;
    return __builtin_mul_overflow(a.value, b.value, &product) ? Scalar() : Scalar(product);
  }
  if (a.is(0) || b.is(0)) return 0;
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  Polynomial left, right, product;
  if (!polynomial(a, left) || !polynomial(b, right)) return {};
  for (const Term& x : left) {
    for (const Term& y : right) {
      Term term;
      if (__builtin_mul_overflow(x.factor, y.factor, &term.factor)) return {};
      term.atoms.resize(x.atoms.size() + y.atoms.size());
      std::merge(x.atoms.begin(), x.atoms.end(), y.atoms.begin(), y.atoms.end(), term.atoms.begin());
      if (!accumulate(product, term)) return {};
    }
  }
  return intern(std::move(product));
}

Scalar Expressions::floor_divide(const Scalar& a, const Scalar& b) {
  if (b.is(1)) return a;
  if (a.kind == Scalar::kNumber && b.kind == Scalar::kNumber) {
    return divides_safely(a.value, b.value) ? Scalar(floor_quotient(a.value, b.value)) : Scalar();
  }
  if (a.same(b)) return 1;
  Polynomial dividend, divisor;
  if (!polynomial(a, dividend) || !polynomial(b, divisor) || divisor.size() != 1) return {};
  // Terms that are multiples of the divisor divide exactly. Only the remaining terms need rounding.
  Polynomial quotient, rest;
  const Term& by = divisor.front();
  for (const Term& term : dividend) {
    if (!divides_safely(term.factor, by.factor)) return {};
    Term remaining = term;
    if (std::includes(term.atoms.begin(), term.atoms.end(), by.atoms.begin(), by.atoms.end())) {
      Term whole{floor_quotient(term.factor, by.factor), {}};
      std::set_difference(term.atoms.begin(), term.atoms.end(), by.atoms.begin(), by.atoms.end(),
                          std::back_inserter(whole.atoms));
      bool constant = term.atoms.empty();
      if (term.factor % by.factor == 0 || constant) {
        remaining.factor = term.factor - whole.factor * by.factor;
        if (whole.factor != 0 && !accumulate(quotient, whole)) return {};
      }
    }
    if (remaining.factor != 0 && !accumulate(rest, remaining)) return {};
  }
  Scalar whole = intern(std::move(quotient));
  Scalar part = intern(std::move(rest));
  if (part.kind == Scalar::kNumber && b.kind == Scalar::kNumber) return add(whole, floor_quotient(part.value, b.value));
  if (part.is(0)) return whole;
  if (part.kind == Scalar::kUnknown || whole.kind == Scalar::kUnknown) return {};
  // floor((floor(x/m) + c)/n) equals floor((x + c*m)/(m*n)).
  int64_t shift, both;
  const Expression* inner = b.is_number() && b.value > 0 ? shifted_quotient(part, shift) : nullptr;
  if (inner && inner->divisor > 0 && !__builtin_mul_overflow(inner->divisor, b.value, &both)) {
    Scalar x = add(inner->dividend, multiply(shift, inner->divisor));
    return add(whole, floor_divide(x, both));
  }
  int64_t min = kLow, max = kHigh;
  if (b.kind == Scalar::kNumber && b.value > 0) {
    min = lower(part) == kLow ? kLow : floor_quotient(lower(part), b.value);
    max = upper(part) == kHigh ? kHigh : floor_quotient(upper(part), b.value);
  } else if (lower(part) >= 0 && lower(b) >= 0) {
    min = 0;
    max = upper(part);
  }
  const std::string name = "floor(" + operand(text(part)) + "/" + operand(text(b), true) + ")";
  Scalar quotient_of_rest = atom('/', part, b, name, min, max);
  if (b.is_number()) {
    expressions_[quotient_of_rest.id].dividend = part;
    expressions_[quotient_of_rest.id].divisor = b.value;
  }
  return add(whole, quotient_of_rest);
}

Scalar Expressions::ceil_divide(const Scalar& a, const Scalar& b) {
  if (a.is_number() && b.is_number())
    return b.value > 0 ? Scalar(a.value / b.value + (a.value % b.value > 0)) : Scalar();
  return floor_divide(add(a, subtract(b, 1)), b);
}

Scalar Expressions::truncate_divide(const Scalar& a, const Scalar& b) {
  if (a.kind == Scalar::kNumber && b.kind == Scalar::kNumber) {
    return divides_safely(a.value, b.value) ? Scalar(a.value / b.value) : Scalar();
  }
  if (lower(a) >= 0 && lower(b) >= 0) return floor_divide(a, b);
  return {};
}

Scalar Expressions::min(const Scalar& a, const Scalar& b) {
  if (a.same(b)) return a;
  if (!a.is_integer() || !b.is_integer()) return {};
  if (upper(a) <= lower(b)) return a;
  if (upper(b) <= lower(a)) return b;
  if (Scalar gap = subtract(a, b); gap.is_number()) return gap.value < 0 ? a : b;
  if (a.kind == Scalar::kNumber) return min(b, a);
  return atom('<', a, b, "min(" + text(a) + ", " + text(b) + ")", std::min(lower(a), lower(b)),
              std::min(upper(a), upper(b)));
}

Scalar Expressions::max(const Scalar& a, const Scalar& b) {
  if (a.same(b)) return a;
  if (!a.is_integer() || !b.is_integer()) return {};
  if (upper(a) <= lower(b)) return b;
  if (upper(b) <= lower(a)) return a;
  if (Scalar gap = subtract(a, b); gap.is_number()) return gap.value < 0 ? b : a;
  if (a.kind == Scalar::kNumber) return max(b, a);
  return atom('>', a, b, "max(" + text(a) + ", " + text(b) + ")", std::max(lower(a), lower(b)),
              std::max(upper(a), upper(b)));
}

Scalar Expressions::product(const Shape& shape) {
  Scalar product = 1;
  for (const Scalar& extent : shape) product = multiply(product, extent);
  return product;
}

int64_t Expressions::lower(const Scalar& a) const {
  return a.kind == Scalar::kNumber ? a.value : a.kind == Scalar::kSymbol ? expressions_[a.id].min : kLow;
}

int64_t Expressions::upper(const Scalar& a) const {
  return a.kind == Scalar::kNumber ? a.value : a.kind == Scalar::kSymbol ? expressions_[a.id].max : kHigh;
}

void Expressions::keep_formulas(model::Graph& graph) const {
  using model::Formula;
  // Expressions refer only to earlier expressions, so a single pass from last to first finds all that symbols need.
  std::vector<bool> needed(expressions_.size());
  for (uint32_t symbol = 0; symbol < of_symbol_.size(); ++symbol)
    if (of_symbol_[symbol] != BP_NONE && is_derived(of_symbol_[symbol])) needed[of_symbol_[symbol]] = true;
  for (size_t i = expressions_.size(); i-- > 0;) {
    if (!needed[i]) continue;
    for (const Scalar& operand : {expressions_[i].a, expressions_[i].b})
      if (operand.kind == Scalar::kSymbol) needed[operand.id] = true;
    for (const Term& term : expressions_[i].terms)
      for (const uint32_t atom : term.atoms) needed[atom] = true;
  }
  std::vector<uint32_t> position(expressions_.size(), BP_NONE);
  const auto operand = [&](const Scalar& scalar) {
    const bool is_formula = scalar.kind == Scalar::kSymbol;
    return Formula::Operand{is_formula, is_formula ? int64_t{position[scalar.id]} : scalar.value};
  };
  for (uint32_t i = 0; i < expressions_.size(); ++i) {
    if (!needed[i]) continue;
    const Expression& expression = expressions_[i];
    Formula formula{};
    if (expression.op != 0) {
      formula.kind = expression.op == '/' ? Formula::kQuotient : expression.op == '<' ? Formula::kMin : Formula::kMax;
      formula.a = operand(expression.a);
      formula.b = operand(expression.b);
    } else if (is_derived(i)) {
      formula.kind = Formula::kSum;
      for (const Term& term : expression.terms) {
        formula.terms.push_back({term.factor, {}});
        for (const uint32_t atom : term.atoms) formula.terms.back().factors.push_back(position[atom]);
      }
    } else {
      formula.kind = Formula::kSymbol;
      formula.symbol = expression.symbol;
    }
    position[i] = static_cast<uint32_t>(graph.formulas.size());
    graph.formulas.push_back(std::move(formula));
  }
  for (uint32_t symbol = 0; symbol < of_symbol_.size(); ++symbol)
    if (of_symbol_[symbol] != BP_NONE && is_derived(of_symbol_[symbol]))
      graph.symbols[symbol].formula = position[of_symbol_[symbol]];
}

// Whether the expression is computed from others, instead of being a symbol that the model had before.
bool Expressions::is_derived(uint32_t id) const {
  const Expression& one = expressions_[id];
  return one.op != 0 || one.terms.size() != 1 || one.terms[0].factor != 1 || one.terms[0].atoms != std::vector{id};
}

std::string Expressions::text(const Scalar& a) const {
  if (a.kind == Scalar::kNumber) return std::to_string(a.value);
  if (a.kind == Scalar::kReal) return std::to_string(a.real_value);
  if (a.kind == Scalar::kUnknown) return "?";
  const std::string& name = expressions_[a.id].name;
  return name.empty() ? "e" + std::to_string(a.id) : name;
}

bool Expressions::polynomial(const Scalar& a, Polynomial& out) const {
  if (a.kind == Scalar::kSymbol) {
    out = expressions_[a.id].terms;
    return true;
  }
  if (a.kind == Scalar::kNumber && a.value != 0) out.push_back({a.value, {}});
  return a.kind == Scalar::kNumber;
}

bool Expressions::accumulate(Polynomial& sum, const Term& term) {
  auto at =
      std::lower_bound(sum.begin(), sum.end(), term, [](const Term& x, const Term& y) { return x.atoms < y.atoms; });
  if (at == sum.end() || at->atoms != term.atoms) {
    sum.insert(at, term);
    return sum.size() <= kMaxTerms && term.atoms.size() <= kMaxAtoms;
  }
  if (__builtin_add_overflow(at->factor, term.factor, &at->factor)) return false;
  if (at->factor == 0) sum.erase(at);
  return true;
}

Scalar Expressions::intern(Polynomial&& terms) {
  if (terms.empty()) return 0;
  if (terms.size() == 1 && terms[0].atoms.empty()) return terms[0].factor;
  Scalar scalar;
  scalar.kind = Scalar::kSymbol;
  if (terms.size() == 1 && terms[0].factor == 1 && terms[0].atoms.size() == 1) {
    scalar.id = terms[0].atoms[0];
    return scalar;
  }
  std::string key = "P";
  for (const Term& term : terms) {
    append(key, term.factor);
    append(key, static_cast<int64_t>(term.atoms.size()));
    for (uint32_t atom : term.atoms) append(key, atom);
  }
  if (auto found = by_key_.find(key); found != by_key_.end()) {
    scalar.id = found->second;
    return scalar;
  }
  int64_t min, max;
  bounds(terms, min, max);
  scalar.id = add_expression(std::move(key), name_of(terms), min, max);
  expressions_[scalar.id].terms = std::move(terms);
  return scalar;
}

const Expressions::Expression* Expressions::shifted_quotient(const Scalar& a, int64_t& shift) const {
  if (a.kind != Scalar::kSymbol) return nullptr;
  const Polynomial& terms = expressions_[a.id].terms;  // sorted, so a constant term comes first
  bool shifted = terms.size() == 2 && terms[0].atoms.empty();
  const Term& last = terms.back();
  if (!(terms.size() == 1 || shifted) || last.factor != 1 || last.atoms.size() != 1) return nullptr;
  shift = shifted ? terms[0].factor : 0;
  const Expression& quotient = expressions_[last.atoms[0]];
  return quotient.divisor != 0 ? &quotient : nullptr;
}

Scalar Expressions::atom(char op, const Scalar& a, const Scalar& b, std::string name, int64_t min, int64_t max) {
  std::string key(1, op);
  for (const Scalar& operand : {a, b}) {
    append(key, operand.kind);
    append(key, operand.value);
  }
  Scalar scalar;
  scalar.kind = Scalar::kSymbol;
  auto found = by_key_.find(key);
  if (found != by_key_.end()) {
    scalar.id = found->second;
    return scalar;
  }
  scalar.id = add_expression(std::move(key), std::move(name), min, max);
  expressions_[scalar.id].op = op;
  expressions_[scalar.id].a = a;
  expressions_[scalar.id].b = b;
  return scalar;
}

// Adds an expression whose only term is the expression itself, as an atom has. For a polynomial, intern() then replaces
// the terms.
uint32_t Expressions::add_expression(std::string key, std::string name, int64_t min, int64_t max) {
  uint32_t id = static_cast<uint32_t>(expressions_.size());
  if (name.size() > kLongestName) name.clear();
  if (budget_) budget_->charge(kBytesOfExpression + 2 * key.size(), "symbolic arithmetic");
  expressions_.push_back({{{1, {id}}}, std::move(name), min, max});
  by_key_.emplace(std::move(key), id);
  return id;
}

std::string Expressions::name_of(const Polynomial& terms) const {
  std::string name;
  auto write = [&](const Term& term) {
    bool negative = term.factor < 0;
    if (!name.empty()) {
      name += negative ? " - " : " + ";
    } else if (negative) {
      name += '-';
    }
    std::string factor = std::to_string(term.factor).substr(negative);
    bool first = term.atoms.empty() || factor != "1";
    if (first) name += factor;
    const bool is_alone = term.factor == 1 && term.atoms.size() == 1;
    for (uint32_t atom : term.atoms) {
      if (first) name += '*';
      first = true;
      Scalar scalar;
      scalar.kind = Scalar::kSymbol;
      scalar.id = atom;
      name += is_alone ? text(scalar) : operand(text(scalar));  // a symbol of the model may be named "N + 1"
    }
  };
  for (const Term& term : terms) {
    if (!term.atoms.empty()) write(term);
  }
  for (const Term& term : terms) {
    if (term.atoms.empty()) write(term);
  }
  return name;
}

void Expressions::bounds(const Polynomial& terms, int64_t& min, int64_t& max) const {
  min = max = 0;
  for (const Term& term : terms) {
    int64_t low = 1, high = 1;
    for (uint32_t atom : term.atoms) {
      const Expression& e = expressions_[atom];
      if (e.min < 0) low = kLow;  // a factor that may be negative: no bound is computed
      low = low == kLow ? kLow : bounded_multiply(low, e.min);
      high = low == kLow || e.max == kHigh || high == kHigh ? kHigh : bounded_multiply(high, e.max);
    }
    if (term.atoms.size() == 1) {
      low = expressions_[term.atoms[0]].min;
      high = expressions_[term.atoms[0]].max;
    }
    if (term.factor < 0) std::swap(low, high);
    bool low_open = low == kLow || low == kHigh, high_open = high == kLow || high == kHigh;
    min = bounded_add(min, low_open ? kLow : bounded_multiply(low, term.factor), kLow);
    max = bounded_add(max, high_open ? kHigh : bounded_multiply(high, term.factor), kHigh);
  }
}

}  // namespace backplane::ops
