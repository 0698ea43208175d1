// SPDX-License-Identifier: Apache-2.0
// The line between C++ and the C ABI. Inside the engine an sdk::Error is thrown; each slot runs its body within
// `fence`, which turns whatever was thrown into a status and an error text. Nothing is ever thrown across the ABI.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "backplane/sdk/fence.hpp"

namespace backplane::cpu {

// Writes what is known of a failure where the caller wants it; `error` may be null. Returns the status.
bp_status_t report(bp_error_t* error, bp_status_t status, std::string_view text, uint64_t node = BP_NO_NODE) noexcept;

// How many forks lie between this process and the one that loaded the plugin. Objects remember the number they were
// made under: another one means that the worker threads they count on are gone.
uint32_t fork_generation() noexcept;

// `made_under` is the fork generation of the object that is called.
template <class Body>
bp_status_t fence(uint32_t made_under, bp_error_t* error, Body&& body) noexcept {
  if (made_under != fork_generation()) {
    return report(error, BP_FORKED,
                  "the process was forked after the cpu device was opened; create the backend again in the child");
  }
  try {
    body();
    return BP_OK;
  } catch (const sdk::Error& failure) {
    return report(error, failure.status, failure.text, failure.node);
  } catch (const std::bad_alloc&) {
    return report(error, BP_RESOURCE_EXHAUSTED, "out of host memory");
  } catch (const std::exception& exception) {
    return report(error, BP_INTERNAL, exception.what());
  } catch (...) {
    return report(error, BP_INTERNAL, "an exception of unknown type");
  }
}

// A struct of the ABI, which is refused where it is missing or smaller than that of ABI 1.0. Fields that ABI 1.0 does
// not have are read behind BP_HAS.
template <class T>
const T& checked(const T* in, const char* name) {
  if (in == nullptr) throw sdk::Error(BP_INVALID_ARGUMENT, std::string(name) + " is null");
  if (in->size < kSize10<T>) {
    throw sdk::Error(BP_INVALID_ARGUMENT, std::string(name) + ".size is " + std::to_string(in->size) +
                                              ", ABI 1.0 has " + std::to_string(kSize10<T>));
  }
  return *in;
}

// Writes as much of an out-struct as the caller knows; its size stays what the caller set.
template <class T>
void write(T* out, T value, const char* name) {
  value.size = checked(out, name).size;
  std::memcpy(out, &value, std::min<size_t>(value.size, sizeof value));
}

}  // namespace backplane::cpu
