// SPDX-License-Identifier: Apache-2.0
// A formula whose type is forgotten: the loop over a row is compiled for each formula and each type of elements, the
// plan and the walk around it once.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

namespace backplane::cpu {

// Holds what a formula read from its node: two numbers at most.
class AnyFormula {
 public:
  template <class Formula>
  explicit AnyFormula(const Formula& formula) {
    static_assert(sizeof(Formula) <= sizeof(state_) && std::is_trivially_copyable_v<Formula>);
    new (state_) Formula(formula);
  }
  template <class Formula>
  const Formula& as() const {
    return *std::launder(reinterpret_cast<const Formula*>(state_));
  }

 private:
  alignas(8) std::byte state_[8] = {};
};

}  // namespace backplane::cpu
