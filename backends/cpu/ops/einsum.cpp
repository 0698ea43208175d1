// SPDX-License-Identifier: Apache-2.0
// Einsum: each label is a dimension; those that the result does not name are summed over.
#include <array>
#include <cctype>

#include "ops/function_kernel.h"
#include "ops/odometer.h"
#include "ops/rows.h"
#include "ops/support.h"

namespace backplane::cpu {
namespace {

constexpr char kEllipsis = '.';  // stands for all dimensions that an operand has beyond its letters

// The terms of "ab,bc->ac", each a list of letters with at most one kEllipsis.
struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

std::optional<Equation> parse(std::string_view text) {
  std::vector<std::string> terms(1);
  bool arrow = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (c == ',' && !arrow) {
      terms.emplace_back();
    } else if (text.substr(i, 2) == "->" && !arrow) {
      arrow = true;
      terms.emplace_back();
      ++i;
    } else if (text.substr(i, 3) == "..." && terms.back().find(kEllipsis) == std::string::npos) {
      terms.back() += kEllipsis;
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      terms.back() += c;
    } else {
      return std::nullopt;
    }
  }
  Equation equation;
  if (arrow) {
    equation.result = terms.back();
    terms.pop_back();
  }
  equation.operands = terms;
  std::array<int, 256> uses{};
  for (const std::string& term : terms)
    for (unsigned char c : term) ++uses[c];
  if (!arrow) {  // the letters that occur once, in order of the alphabet, after the ellipsis
    if (uses[kEllipsis] > 0) equation.result += kEllipsis;
    for (int c = 'A'; c <= 'z'; ++c)
      if (uses[static_cast<size_t>(c)] == 1) equation.result += static_cast<char>(c);
  }
  for (size_t i = 0; i < equation.result.size(); ++i)
    if (uses[static_cast<unsigned char>(equation.result[i])] == 0 ||
        equation.result.find(equation.result[i], i + 1) != std::string::npos)
      return std::nullopt;
  return equation;
}

// A dimension: its extent, and the stride that each operand has along it.
struct Label {
  int64_t extent = 1;
  std::vector<int64_t> strides;
};

std::optional<std::string> bind(const Equation& equation, Tensors inputs, std::array<Label, 128>& letters,
                                std::vector<Label>& ellipsis) {
  const auto mismatch = [&](size_t k) {
    return "term '" + equation.operands[k] + "' does not fit shape " + to_string(inputs[k].shape);
  };
  for (Label& label : letters) label.strides.resize(inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    const std::string& term = equation.operands[k];
    const Shape &shape = inputs[k].shape, strides = strides_of(shape);
    const bool open = term.find(kEllipsis) != std::string::npos;
    const int extra = shape.rank() - static_cast<int>(term.size()) + (open ? 1 : 0);
    if (extra < 0 || (!open && extra > 0)) return mismatch(k);
    int d = 0;
    const auto take = [&](Label& label) {
      if (label.extent != 1 && shape[d] != 1 && shape[d] != label.extent) return false;
      if (shape[d] != 1) label.extent = shape[d];
      label.strides[k] += shape[d] == 1 ? 0 : strides[d];
      ++d;
      return true;
    };
    for (char c : term) {
      if (c != kEllipsis) {
        if (!take(letters[static_cast<size_t>(c)])) return mismatch(k);
        continue;
      }
      while (static_cast<int>(ellipsis.size()) < extra)
        ellipsis.insert(ellipsis.begin(), Label{1, std::vector<int64_t>(inputs.size())});
      for (int i = 0; i < extra; ++i)
        if (!take(ellipsis[ellipsis.size() - static_cast<size_t>(extra - i)])) return mismatch(k);
    }
  }
  return std::nullopt;
}

template <class T>
void contract(Tensors in, T* y, const std::vector<Dimensions>& kept, const std::vector<Dimensions>& summed) {
  using Acc = std::conditional_t<is_floating<T>, double, uint64_t>;
  const int64_t terms = summed[0].positions();
  parallel(kept[0].positions(), std::max<int64_t>(1, kMathGrain / std::max<int64_t>(1, terms)),
           [&](int64_t begin, int64_t end) {
             std::vector<Odometer> outer;
             for (const Dimensions& d : kept) outer.emplace_back(d, begin);
             for (int64_t i = begin; i < end; ++i) {
               Acc total = 0;
               std::vector<Odometer> inner;
               for (const Dimensions& d : summed) inner.emplace_back(d);
               for (int64_t j = 0; j < terms; ++j) {
                 Acc product = 1;
                 for (size_t k = 0; k < in.size(); ++k) {
                   product *= static_cast<Acc>(
                       static_cast<compute_t<T>>(in[k].as<T>()[outer[k].offset() + inner[k].offset()]));
                   inner[k].next();
                 }
                 total += product;
               }
               y[i] = static_cast<T>(static_cast<compute_t<T>>(total));
               for (Odometer& o : outer) o.next();
             }
           });
}

Verdict supports(const Node& node) {
  if (Verdict verdict = accepts_variadic(node, set_of(Numbers{})); !verdict) return verdict;
  const auto equation = parse(node.attr("equation", ""));
  if (!equation || equation->operands.size() != node.input_count())
    return no(BP_REASON_ATTRIBUTE, "equation '" + node.attr("equation", "") + "' does not name " +
                                       std::to_string(node.input_count()) + " operands");
  return yes();
}

std::unique_ptr<Kernel> create(const Node& node) {
  return make_kernel([equation = *parse(node.attr("equation", ""))](Tensors inputs) -> Plan {
    std::array<Label, 128> letters;
    std::vector<Label> ellipsis;
    if (auto error = bind(equation, inputs, letters, ellipsis)) return fail(*error);
    Shape to;
    std::vector<Dimensions> kept(inputs.size()), summed(inputs.size());  // for each operand
    const auto place = [&](const Label& label, bool keep) {
      if (keep && to.rank() < BP_MAX_RANK) to.push_back(label.extent);
      for (size_t k = 0; k < inputs.size(); ++k) (keep ? kept : summed)[k].add(label.extent, label.strides[k]);
    };
    const bool keep_ellipsis = equation.result.find(kEllipsis) != std::string::npos;
    if (equation.result.size() + ellipsis.size() > BP_MAX_RANK) return fail("the result's rank is more than 32");
    for (char c : equation.result) {
      if (c != kEllipsis)
        place(letters[static_cast<size_t>(c)], true);
      else
        for (const Label& label : ellipsis) place(label, true);
    }
    for (int c = 'A'; c <= 'z'; ++c)
      if (equation.result.find(static_cast<char>(c)) == std::string::npos &&
          letters[static_cast<size_t>(c)].extent != 1)
        place(letters[static_cast<size_t>(c)], false);
    for (const Label& label : ellipsis)
      if (!keep_ellipsis) place(label, false);
    return make_plan({to}, [=](Tensors in, Tensors out) {
      dispatch<Numbers>(in[0].dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        contract<T>(in, out[0].as<T>(), kept, summed);
      });
    });
  });
}

constexpr Row kRows[] = {{"", "Einsum", 12, supports, create}};

}  // namespace

std::span<const Row> einsum_rows() {
  return kRows;
}

}  // namespace backplane::cpu
