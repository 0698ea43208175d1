// SPDX-License-Identifier: Apache-2.0
// Einsum. Each label (a letter, or a dimension of the ellipsis) stands for a dimension; labels that the result does not
// name are summed over. FLOAT operands are contracted in pairs: the first two, then their result with the next one.
#include <array>

#include "kernels/common/function_kernel.h"
#include "kernels/common/odometer.h"
#include "kernels/common/support.h"
#include "kernels/matmul/contraction.h"
#include "runtime/implementations.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

constexpr char kEllipsis = '.';  // in a term: the ellipsis, for all dimensions without a letter

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
    } else if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) {  // independent of the locale
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
  if (!arrow) {  // the result has the letters that occur once, in alphabetical order, after the ellipsis
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

// A dimension: its extent, and each operand's stride along it.
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
        if (!take(letters[static_cast<unsigned char>(c)])) return mismatch(k);
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
  using Acc = std::conditional_t<kIsFloating<T>, double, uint64_t>;
  const int64_t terms = summed[0].positions();
  parallel(kept[0].positions(), std::max<int64_t>(1, kMathGrain / std::max<int64_t>(1, terms)),
           [&](int64_t begin, int64_t end) {
             Pace pace;
             std::vector<Odometer> outer;
             for (const Dimensions& d : kept) outer.emplace_back(d, begin);
             for (int64_t i = begin; i < end; ++i) {
               Acc total = 0;
               std::vector<Odometer> inner;
               for (const Dimensions& d : summed) inner.emplace_back(d);
               for (int64_t j = 0; j < terms; ++j) {
                 pace.spend(static_cast<int64_t>(in.size()));
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

// Contracts the first two operands, then their result with the next, and so on. Sums over each label as soon as no
// later operand needs it.
class Contractions {
 public:
  // The first `kept` labels are those of the result, in order. No extent may be 0.
  Contractions(const std::vector<Label>& labels, size_t kept, size_t operands) : labels_(labels) {
    Operand all = operand(0);
    if (operands == 1) contract(all, kNone, [&](size_t l) { return l < kept; });
    for (size_t k = 1; k < operands; ++k) {
      Operand next = operand(k);
      const auto needed = [&](size_t l) {
        return l < kept || std::any_of(labels[l].strides.begin() + static_cast<std::ptrdiff_t>(k) + 1,
                                       labels[l].strides.end(), [](int64_t stride) { return stride != 0; });
      };
      all = sum_out(all, [&](size_t l) { return needed(l) || next.strides[l] != 0; });
      next = sum_out(next, [&](size_t l) { return needed(l) || all.strides[l] != 0; });
      all = contract(all, next, needed);
    }
  }

  int64_t scratch_bytes() const { return product({scratch_, static_cast<int64_t>(sizeof(float))}); }

  void run(Tensors in, float* y, float* scratch) const {
    static constexpr float kOne = 1;
    const auto data = [&](const Location& location) -> const float* {
      if (location.input == kNowhere) return &kOne;
      return location.input == kScratch ? scratch + location.at : in[static_cast<size_t>(location.input)].as<float>();
    };
    for (const Stage& stage : stages_)
      stage.contraction.run(data(stage.a), data(stage.b), &stage == &stages_.back() ? y : scratch + stage.y,
                            scratch + stage.scratch);
  }

 private:
  static constexpr int kScratch = -1, kNowhere = -2;
  struct Location {
    int input;
    int64_t at;
  };
  struct Operand {
    Location location;
    std::vector<int64_t> strides;  // one per label
  };
  struct Stage {
    Contraction contraction;
    Location a, b;
    int64_t y, scratch;
  };
  static inline const Operand kNone{{kNowhere, 0}, {}};

  Operand operand(size_t k) const {
    Operand result{{static_cast<int>(k), 0}, {}};
    for (const Label& label : labels_) result.strides.push_back(label.strides[k]);
    return result;
  }

  // Sums the operand over labels that neither another operand nor the result needs.
  template <class Needed>
  Operand sum_out(const Operand& a, const Needed& needed) {
    for (size_t l = 0; l < labels_.size(); ++l)
      if (a.strides[l] != 0 && !needed(l)) return contract(a, kNone, needed);
    return a;
  }

  // Appends the stage that contracts two operands. Its result is in scratch memory, with dimensions in the order of the
  // labels.
  template <class Needed>
  Operand contract(const Operand& a, const Operand& b, const Needed& needed) {
    Contraction::Axes kept, summed;
    Operand result{{kScratch, scratch_}, std::vector<int64_t>(labels_.size())};
    int64_t elements = 1;
    for (size_t l = labels_.size(); l-- > 0;) {
      const ContractedAxis axis{labels_[l].extent, a.strides[l], b.strides.empty() ? 0 : b.strides[l]};
      if (axis.a == 0 && axis.b == 0) continue;
      Contraction::Axes& axes = needed(l) ? kept : summed;
      axes.insert(axes.begin(), axis);
      if (!needed(l)) continue;
      result.strides[l] = elements;
      elements = product({elements, axis.extent});
    }
    Contraction contraction(std::move(kept), std::move(summed));
    scratch_ += align_up(elements, kAlignment);
    const int64_t own = contraction.scratch_floats();
    stages_.push_back({std::move(contraction), a.location, b.location, result.location.at, scratch_});
    scratch_ += align_up(own, kAlignment);
    return result;
  }

  std::vector<Label> labels_;
  std::vector<Stage> stages_;
  int64_t scratch_ = 0;  // size in floats
};

Verdict supports(const Node& node) {
  if (Verdict verdict = accepts_variadic(node, set_of(Numbers{})); !verdict) return verdict;
  const auto equation = parse(node.attr("equation", ""));
  if (!equation)
    return no(BP_REASON_ATTRIBUTE, "equation '" + node.attr("equation", "") +
                                       "' is not valid; its terms may have letters and one '...', and its result "
                                       "may repeat none of these and add no others");
  if (equation->operands.size() != node.input_count())
    return no(BP_REASON_ATTRIBUTE, "equation '" + node.attr("equation", "") + "' has " +
                                       std::to_string(equation->operands.size()) + " terms for " +
                                       std::to_string(node.input_count()) + " inputs");
  return yes();
}

// Input to the implementations in kEinsums: an equation for one set of extents.
struct EinsumProblem {
  Tensors inputs;
  Shape to;
  std::vector<Dimensions> kept, summed;  // for each operand
  std::vector<Label> labels;             // those of the result first
};

const char* refuse_empty(const EinsumProblem& p) {
  return p.kept[0].positions() == 0 || p.summed[0].positions() == 0 ? "the result is empty, or a sum of nothing"
                                                                    : nullptr;
}

const char* refuse_copy(const PlanContext&, EinsumProblem& p) {
  if (p.inputs.size() != 1) return "it has several operands";
  return p.summed[0].positions() > 1 ? "it sums" : refuse_empty(p);
}
Plan plan_copy(const PlanContext&, EinsumProblem& p) {
  return make_plan({p.to},
                   [copy = StridedCopy(p.kept[0].extents, p.kept[0].strides, 0, bytes_of(p.inputs[0].dtype, 1))](
                       Tensors in, Tensors out) { copy(in[0].data, out[0].data); });
}

const char* refuse_products(const PlanContext&, EinsumProblem& p) {
  return p.inputs[0].dtype != BP_DTYPE_FLOAT ? "the operands are not fp32" : refuse_empty(p);
}
Plan plan_products(const PlanContext&, EinsumProblem& p) {
  Contractions contractions(p.labels, p.kept[0].extents.size(), p.inputs.size());
  const int64_t scratch = contractions.scratch_bytes();
  return make_plan({p.to},
                   [c = std::move(contractions)](Tensors in, Tensors out, void* memory) {
                     c.run(in, out[0].as<float>(), static_cast<float*>(memory));
                   },
                   {.scratch_bytes = scratch});
}

Plan plan_direct(const PlanContext&, EinsumProblem& p) {
  return make_plan({p.to}, [kept = std::move(p.kept), summed = std::move(p.summed)](Tensors in, Tensors out) {
    dispatch<Numbers>(in[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      contract<T>(in, out[0].as<T>(), kept, summed);
    });
  });
}

constexpr std::array kEinsums = {
    Implementation<EinsumProblem>{"copy", refuse_copy, plan_copy},
    Implementation<EinsumProblem>{"products", refuse_products, plan_products},
    Implementation<EinsumProblem>{"direct", nullptr, plan_direct},
};
ImplementationNames implementations() {
  return names_of("einsum", kEinsums);
}

std::unique_ptr<Kernel> create(const Node& node) {
  return make_kernel(
      [equation = *parse(node.attr("equation", ""))](const PlanContext& context, Tensors inputs) -> Plan {
        std::array<Label, 128> letters;
        std::vector<Label> ellipsis;
        if (auto error = bind(equation, inputs, letters, ellipsis)) return fail(*error);
        Shape to;
        std::vector<Dimensions> kept(inputs.size()), summed(inputs.size());  // for each operand
        std::vector<Label> labels;                                           // those of the result first
        const auto place = [&](const Label& label, bool keep) {
          labels.push_back(label);
          if (keep && to.rank() < BP_MAX_RANK) to.push_back(label.extent);
          for (size_t k = 0; k < inputs.size(); ++k) (keep ? kept : summed)[k].add(label.extent, label.strides[k]);
        };
        const bool keep_ellipsis = equation.result.find(kEllipsis) != std::string::npos;
        const size_t rank = equation.result.size() + (keep_ellipsis ? ellipsis.size() : 0) - (keep_ellipsis ? 1 : 0);
        if (rank > BP_MAX_RANK) return fail("the result has rank " + std::to_string(rank) + "; the maximum is 32");
        for (char c : equation.result) {
          if (c != kEllipsis)
            place(letters[static_cast<unsigned char>(c)], true);
          else
            for (const Label& label : ellipsis) place(label, true);
        }
        for (int c = 'A'; c <= 'z'; ++c)
          if (equation.result.find(static_cast<char>(c)) == std::string::npos &&
              letters[static_cast<unsigned char>(c)].extent != 1)
            place(letters[static_cast<unsigned char>(c)], false);
        for (const Label& label : ellipsis)
          if (!keep_ellipsis) place(label, false);
        EinsumProblem problem{inputs, to, std::move(kept), std::move(summed), std::move(labels)};
        return plan_best(context, "einsum", kEinsums, problem);
      });
}

}  // namespace

[[gnu::cold]] std::span<const Row> einsum_rows() {
  static constexpr Row kRows[] = {Row{"", "Einsum", 12, supports, create}.in_fp32().choosing(implementations)};
  return kRows;
}

}  // namespace backplane::cpu
