// SPDX-License-Identifier: Apache-2.0
#include "runtime/tables.h"

#include <utility>

namespace backplane::cpu {

namespace {

thread_local int64_t* left_for_tables = nullptr;

}  // namespace

bool may_build_tables(int64_t bytes) {
  if (left_for_tables == nullptr) return bytes <= kTableBytes;
  if (bytes > *left_for_tables) return false;
  *left_for_tables -= bytes;
  return true;
}

UseTables::UseTables() : before_(std::exchange(left_for_tables, &left_)) {}
UseTables::~UseTables() {
  left_for_tables = before_;
}

}  // namespace backplane::cpu
