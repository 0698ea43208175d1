// SPDX-License-Identifier: Apache-2.0
// RegexFullMatch, with RE2. Not built with CMake's option BACKPLANE_CPU_REGEX=OFF.
#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <string>

#include "kernels/common/values.h"
#include "runtime/memory.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

std::shared_ptr<const RE2> compile(const Node& node) {
  return std::make_shared<const RE2>(node.attr("pattern", ""), RE2::Quiet);
}

Verdict supports(const Node& node) {
  if (Verdict verdict = expect_operands(node, 1, 1); !verdict) return verdict;
  if (node.input_type(0).dtype != BP_DTYPE_STRING) return no(BP_REASON_DTYPE, "input 0 is not a string tensor");
  std::shared_ptr<const RE2> pattern = compile(node);
  return pattern->ok() ? yes() : no(BP_REASON_ATTRIBUTE, "pattern '" + pattern->pattern() + "': " + pattern->error());
}

std::unique_ptr<Kernel> create(const Node& node) {
  return make_value_kernel([pattern = compile(node)](Values inputs, Values outputs) -> Failed {
    Texts texts(inputs[0].tensor);
    outputs[0] = Value::allocate(BP_DTYPE_BOOL, inputs[0].tensor.shape);
    Pace pace;
    for (int64_t i = 0; i < texts.count(); ++i) {
      // One match cannot be interrupted. In the worst case it takes the product of both sizes, at about 5 ns each.
      constexpr int64_t kMostWork = int64_t{1} << 29;
      const auto size = static_cast<int64_t>(texts[i].size());
      if (size > kMostWork / std::max(pattern->ProgramSize(), 1))
        return "a text of " + std::to_string(size) + " bytes is too long for the pattern, which has " +
               std::to_string(pattern->ProgramSize()) + " instructions";
      pace.spend(64 + 8 * size);
      re2::StringPiece text(texts[i].data(), texts[i].size());
      outputs[0].tensor.as<bool>()[i] = RE2::FullMatch(text, *pattern);
    }
    return std::nullopt;
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> regex_full_match_rows() {
  static constexpr Row kRows[] = {
      {"", "RegexFullMatch", 20, supports, create, kTexts},
  };
  return kRows;
}

}  // namespace backplane::cpu
