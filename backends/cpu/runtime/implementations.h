// SPDX-License-Identifier: Apache-2.0
// Ordered lists of the implementations of an operator: the best first, the reference last. The reference refuses
// nothing.
//
//   constexpr std::array kList = {
//       Implementation<Problem>{"tiled", refuse_tiled, plan_tiled},
//       …
//       Implementation<Problem>{"direct", nullptr, plan_direct},
//   };
//   return plan_best(context, "family", kList, problem);
#pragma once

#include <array>

#include "runtime/choices.h"

namespace backplane::cpu {

template <class Problem>
struct Implementation {
  const char* name;
  // Returns the reason why this implementation cannot compute the problem, or null if it can. May store data for `plan`
  // in `problem`. A null pointer to this function means that no problem is refused.
  const char* (*refuses)(const PlanContext& context, Problem& problem);
  // Called only if the problem was not refused.
  Plan (*plan)(const PlanContext& context, Problem& problem);
};

// Returns the plan of the first implementation that does not refuse the problem. In reference mode, that is always the
// last one. If an implementation is requested by name (Choices), those before it are skipped; if it refuses, those
// after it are tried.
template <class Problem, size_t kCount>
Plan plan_best(const PlanContext& context, const char* family, const std::array<Implementation<Problem>, kCount>& list,
               Problem& problem) {
  const std::string_view forced = context.choices != nullptr ? context.choices->forced(family) : std::string_view();
  bool skips = !forced.empty();
  std::string refused;
  for (const Implementation<Problem>& each : list) {
    skips = skips && each.name != forced;
    const char* why = nullptr;
    if (&each != &list.back()) {
      why = context.reference ? "reference mode" : skips ? "another one is requested" : nullptr;
      if (why == nullptr && each.refuses != nullptr) why = each.refuses(context, problem);
    }
    if (why == nullptr) {
      Plan plan = each.plan(context, problem);
      plan.family = family;
      plan.implementation = each.name;
      plan.refused = std::move(refused);
      return plan;
    }
    if (context.choices != nullptr)
      refused.append(refused.empty() ? "" : "; ").append(each.name).append(": ").append(why);
  }
  return fail("the list of implementations is empty");
}

template <class Problem, size_t kCount>
ImplementationNames names_of(std::string_view family, const std::array<Implementation<Problem>, kCount>& list) {
  ImplementationNames names{family, {}};
  for (const Implementation<Problem>& each : list) names.names.emplace_back(each.name);
  return names;
}

}  // namespace backplane::cpu
