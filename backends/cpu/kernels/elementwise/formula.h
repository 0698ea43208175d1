// SPDX-License-Identifier: Apache-2.0
// A formula with its type erased. Only the loop over a row is compiled for each formula and element type; plans and
// outer loops are compiled once.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

namespace backplane::cpu {

// Holds a formula's attributes, at most 8 bytes, such as two floats.
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
