// SPDX-License-Identifier: Apache-2.0
// Operators that move or compare elements, for strings. Each string is replaced by a number, the kernel for numbers
// runs, and the numbers in its results are replaced by strings. Number 0 is the empty string, because operators fill
// with 0.
#include "kernels/text/text_movement.h"

#include <algorithm>

#include "kernels/common/values.h"
#include "runtime/dense_plan.h"
#include "runtime/memory.h"
#include "runtime/operators.h"
#include "runtime/planner.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

class TextMovement final : public ValueKernel {
 public:
  TextMovement(const Node& node, std::unique_ptr<Kernel> numbers, bool ranks)
      : numbers_(std::move(numbers)), ranks_(ranks) {
    for (uint32_t i = 0; i < node.output_count(); ++i)
      outputs_.push_back(node.has_output(i) ? node.output_type(i).dtype : BP_DTYPE_UNDEFINED);
  }

  std::optional<std::string> run(Values inputs, Values outputs, const RunContext& context) const override {
    std::vector<std::string_view> texts = {{}};
    std::vector<Value> numbered;  // keeps the numbers alive
    std::vector<Tensor> in;
    Pace pace;
    int64_t count = 1;
    for (const Value& input : inputs) {
      in.push_back(input.tensor);
      if (input.tensor.dtype == BP_DTYPE_STRING) count += input.tensor.shape.elements();
    }
    require_memory(count, sizeof(std::string_view));
    texts.reserve(static_cast<size_t>(count));
    for (Tensor& tensor : in) {
      if (tensor.dtype != BP_DTYPE_STRING) continue;
      const Texts more(tensor);
      Value numbers = Value::allocate(BP_DTYPE_INT64, tensor.shape);
      for (int64_t i = 0; i < more.count(); ++i) {
        pace.spend(4);
        numbers.tensor.as<int64_t>()[i] = std::ssize(texts);
        texts.push_back(more[i]);
      }
      tensor = numbers.tensor;
      numbered.push_back(std::move(numbers));
    }
    if (ranks_) rank(texts, numbered);

    Plan plan = with_dense_operands(context.plan, numbers_->plan(context.plan, in), in);
    if (!plan.step)
      return plan.deferred ? "the extents of its outputs cannot be computed, although all inputs are known"
                           : plan.error;
    std::vector<Value> results(outputs.size());
    std::vector<Tensor> out(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs_[i] == BP_DTYPE_UNDEFINED) continue;
      results[i] = Value::allocate(outputs_[i] == BP_DTYPE_STRING ? BP_DTYPE_INT64 : outputs_[i], plan.shapes.at(i));
      out[i] = results[i].tensor;
    }
    if (int alias = plan.step->alias(); alias >= 0) {
      std::copy_n(in[static_cast<size_t>(alias)].as<int64_t>(), out[0].shape.elements(), out[0].as<int64_t>());
    } else if (!all_empty(out)) {
      Block scratch = allocate(plan.step->scratch_bytes());
      if (auto failed = plan.step->run(in, out, scratch.get())) return failed;
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      outputs[i] = outputs_[i] == BP_DTYPE_STRING ? texts_of(results[i].tensor, texts) : std::move(results[i]);
    return std::nullopt;
  }

 private:
  // Replaces the strings by numbers in their sort order, with equal numbers for equal strings. For UTF-8, bytewise
  // order is that of code points.
  static void rank(std::vector<std::string_view>& texts, std::vector<Value>& numbered) {
    std::vector<std::string_view> sorted = texts;
    Pace pace;
    const auto spend = [&](std::string_view a, std::string_view b) {
      pace.spend(16 + static_cast<int64_t>(std::min(a.size(), b.size()) / 8));
    };
    const auto less = [&](std::string_view a, std::string_view b) {
      spend(a, b);
      return a < b;
    };
    const auto equal = [&](std::string_view a, std::string_view b) {
      spend(a, b);
      return a == b;
    };
    std::ranges::sort(sorted, less);
    sorted.erase(std::unique(sorted.begin(), sorted.end(), equal), sorted.end());
    for (Value& numbers : numbered) {
      auto* number = numbers.tensor.as<int64_t>();
      for (int64_t i = 0; i < numbers.tensor.shape.elements(); ++i) {
        number[i] = std::ranges::lower_bound(sorted, texts[static_cast<size_t>(number[i])], less) - sorted.begin();
      }
    }
    texts = std::move(sorted);
  }

  static Value texts_of(const Tensor& numbers, const std::vector<std::string_view>& texts) {
    require_memory(numbers.shape.elements(), sizeof(std::string_view));
    const int64_t count = numbers.shape.elements();
    std::vector<std::string_view> chosen;
    chosen.reserve(static_cast<size_t>(count));
    Pace pace;
    for (int64_t i = 0; i < count; ++i) {
      pace.spend(4);
      chosen.push_back(texts[static_cast<size_t>(numbers.as<int64_t>()[i])]);
    }
    return make_texts(numbers.shape, chosen);
  }

  std::unique_ptr<Kernel> numbers_;
  bool ranks_;
  std::vector<bp_dtype_t> outputs_;
};

Verdict supports(const Node& node) {
  if (const std::string reduction = node.attr("reduction", "none"); reduction != "none")
    return no(BP_REASON_ATTRIBUTE, "reduction is '" + reduction + "'; for strings it must be 'none'");
  Node numbers = node.with_texts_as_numbers();
  return numbers.operators()->find(numbers)->supports(numbers);
}

template <bool kRanks>
std::unique_ptr<Kernel> create(const Node& node) {
  Node numbers = node.with_texts_as_numbers();
  return std::make_unique<TextMovement>(node, numbers.operators()->find(numbers)->create(numbers), kRanks);
}

}  // namespace

std::vector<Row> text_movement_rows(std::span<const Row> numbers) {
  std::vector<Row> all;
  for (const Row& row : numbers) {
    if ((row.facts & (kMovesTexts | kRanksTexts)) == 0) continue;
    const auto make = (row.facts & kRanksTexts) != 0 ? create<true> : create<false>;
    all.push_back(
        Row{row.domain, row.op_type, row.since_version, supports, make, kTexts}.with(row.facts & kOmitsOutput0));
  }
  return all;
}

}  // namespace backplane::cpu
