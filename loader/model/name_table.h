// SPDX-License-Identifier: Apache-2.0
// The values of a graph by their names.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "backplane/types.h"

namespace backplane::model {

// A flat table: a look-up of one among very many names reads one line of memory, where a map of nodes reads three. The
// texts stay the caller's.
class NameTable {
 public:
  void reserve(size_t names) {
    size_t slots = 16;
    while (slots < 2 * names) slots *= 2;
    if (slots > slots_.size()) move_to(slots);
  }

  // The number of the name, or BP_NONE.
  uint32_t find(std::string_view name) const {
    if (slots_.empty()) return BP_NONE;
    return slots_[slot_of(name, hash_of(name))].number;
  }

  // The number of the name; where it has none, it gets this one, which is not BP_NONE.
  uint32_t find_or_add(std::string_view name, uint32_t number) {
    reserve(count_ + 1);
    const uint32_t hash = hash_of(name);
    Slot& slot = slots_[slot_of(name, hash)];
    if (slot.number == BP_NONE) {
      slot = {name, hash, number};
      ++count_;
    }
    return slot.number;
  }

 private:
  struct Slot {
    std::string_view name;
    uint32_t hash = 0;
    uint32_t number = BP_NONE;  // the slot is free
  };

  static uint32_t hash_of(std::string_view name) { return static_cast<uint32_t>(std::hash<std::string_view>{}(name)); }

  // Where the name is, or where it would be. At least half of the slots are free.
  size_t slot_of(std::string_view name, uint32_t hash) const {
    size_t at = hash & (slots_.size() - 1);
    while (slots_[at].number != BP_NONE && (slots_[at].hash != hash || slots_[at].name != name))
      at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  void move_to(size_t slots) {
    std::vector<Slot> before(slots);
    before.swap(slots_);
    for (const Slot& slot : before)
      if (slot.number != BP_NONE) slots_[slot_of(slot.name, slot.hash)] = slot;
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace backplane::model
