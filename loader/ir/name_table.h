// SPDX-License-Identifier: Apache-2.0
// Maps names to the values of a graph.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "backplane/types.h"
#include "base/keyed_hash.h"

namespace backplane::model {

// Names and numbers are stored in insertion order, and a flat table of 8-byte slots refers to them. Looking up an
// unknown name usually touches only one distant cache line. The caller owns the strings.
class NameTable {
 public:
  void reserve(size_t names) {
    size_t slots = 16;
    while (slots < 2 * names) slots *= 2;
    if (slots <= slots_.size()) return;
    move_to(slots);
    entries_.reserve(names);
  }

  // The number of the name; BP_NONE if the table lacks it.
  uint32_t find(std::string_view name) const {
    if (slots_.empty()) return BP_NONE;
    const Slot& slot = slots_[slot_of(name, hash_of(name))];
    return slot.entry == BP_NONE ? BP_NONE : entries_[slot.entry].number;
  }

  // Returns the name's number. A name that has no number yet gets `number`.
  uint32_t find_or_add(std::string_view name, uint32_t number) {
    if (2 * (entries_.size() + 1) > slots_.size()) move_to(std::max<size_t>(16, 2 * slots_.size()));
    const uint32_t hash = hash_of(name);
    Slot& slot = slots_[slot_of(name, hash)];
    if (slot.entry == BP_NONE) {
      slot = {hash, static_cast<uint32_t>(entries_.size())};
      entries_.push_back({name, number});
    }
    return entries_[slot.entry].number;
  }

 private:
  struct Entry {
    std::string_view name;
    uint32_t number;
  };
  struct Slot {
    uint32_t hash = 0;
    uint32_t entry = BP_NONE;  // index into entries_; BP_NONE: the slot is free
  };

  static uint32_t hash_of(std::string_view name) { return static_cast<uint32_t>(keyed_hash(name)); }

  // The slot of the name, or the free slot where it belongs. The search ends because at least half of the slots are
  // free.
  size_t slot_of(std::string_view name, uint32_t hash) const {
    size_t at = hash & (slots_.size() - 1);
    while (slots_[at].entry != BP_NONE && (slots_[at].hash != hash || entries_[slots_[at].entry].name != name))
      at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  void move_to(size_t slots) {
    std::vector<Slot> before(slots);
    before.swap(slots_);
    for (const Slot& slot : before) {
      if (slot.entry == BP_NONE) continue;
      size_t at = slot.hash & (slots - 1);
      while (slots_[at].entry != BP_NONE) at = (at + 1) & (slots - 1);
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::vector<Entry> entries_;
};

}  // namespace backplane::model
