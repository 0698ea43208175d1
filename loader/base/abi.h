// SPDX-License-Identifier: Apache-2.0
// Checks and copies of the structs that cross the ABI; types.h of the API states the rules.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "backplane/loader.h"
#include "backplane/plugin.h"
#include "backplane/sizes.h"
#include "base/status.h"

namespace backplane::abi {

inline bp_text_t text(std::string_view text) {
  return {text.data(), text.size()};
}
inline std::string_view view(bp_text_t text) {
  return text.data ? std::string_view(text.data, text.size) : std::string_view();
}
inline std::string string(bp_text_t text) {
  return std::string(view(text));
}

// Size<T>::k10 is T's size in ABI 1.0, for use in templates. Defined only for structs of the ABI.
template <class T>
struct Size;
#define BACKPLANE_SIZE(type, bytes)          \
  template <>                                \
  struct Size<type> {                        \
    static constexpr uint32_t k10 = (bytes); \
  };
BP_EACH_SIZE_1_0(BACKPLANE_SIZE)
#undef BACKPLANE_SIZE

template <class T>
Status check_size(const T* given, std::string_view name) {
  if (!given) return {BP_INVALID_ARGUMENT, std::string(name) + " is NULL"};
  if (given->size >= Size<T>::k10) return {};
  return {BP_INVALID_ARGUMENT, std::string(name) + ".size is " + std::to_string(given->size) +
                                   ", but must be at least " + std::to_string(Size<T>::k10) +
                                   ": set it to the sizeof of the struct"};
}

// Copies a struct that the other side of the ABI passed and whose first field is its size. Fields that an older,
// smaller struct lacks are zero, and fields that the loader does not know are not copied. Errors call the struct
// `name`. BP_INVALID_ARGUMENT if it is NULL or smaller than in ABI 1.0.
template <class T>
Result<T> read(const T* given, std::string_view name) {
  BP_TRY(check_size(given, name));
  T known{};
  std::memcpy(&known, given, std::min<size_t>(given->size, sizeof(T)));
  known.size = sizeof(T);
  return known;
}

// Like `read`, but copies the struct (to `room`) only if it is older than the loader's and lacks fields.
template <class T>
Result<const T*> read_in_place(const T* given, std::string_view name, T& room) {
  if (given && given->size >= sizeof(T)) return given;
  BP_ASSIGN(room, read(given, name));
  return static_cast<const T*>(&room);
}

// Writes at most `out->size` bytes and leaves `out->size` unchanged. BP_INVALID_ARGUMENT if `out` is NULL or its size
// is less than 4.
template <class T>
Status write(const T& value, T* out, std::string_view name) {
  if (!out) return {BP_INVALID_ARGUMENT, std::string(name) + " is NULL"};
  if (out->size < sizeof out->size)
    return {BP_INVALID_ARGUMENT,
            std::string(name) + ".size is " + std::to_string(out->size) + ": set it to the sizeof of the struct"};
  const uint32_t size = out->size;
  std::memcpy(static_cast<void*>(out), &value, std::min<size_t>(size, sizeof(T)));
  out->size = size;
  return {};
}

// The loader supports no extension structs: a required one is an error, all others are ignored.
inline Status check_chain(const bp_chain_t* chain) {
  for (; chain; chain = chain->next)
    if (chain->required)
      return {BP_UNSUPPORTED,
              "the extension struct \"" + string(chain->extension) +
                  "\" is required, but this loader does not know it: leave it out or set its `required` to 0"};
  return {};
}

// Copies a path that a framework passes. Files are opened by C strings, so a path that has a null character would name
// another file.
inline Result<std::string> path(bp_text_t text, std::string_view name) {
  const std::string_view given = view(text);
  const size_t null = given.find('\0');
  if (null == given.npos) return std::string(given);
  return Status(BP_INVALID_ARGUMENT, std::string(name) + " has a null character after \"" +
                                         std::string(given.substr(0, null)) + "\", which no path can have");
}

// Refuses flags from a framework that have bits unknown to the loader.
inline Status check_flags(uint32_t given, uint32_t known, std::string_view name) {
  if (!(given & ~known)) return {};
  return {BP_UNSUPPORTED, std::string(name) + " is " + std::to_string(given) +
                              ": it has bits that this loader does not know; those it knows are " +
                              std::to_string(known)};
}

// Whether the whole buffer lies within the address space.
inline bool has_end(const bp_buffer_t& buffer) {
  const uint64_t start = buffer.memory ? 0 : reinterpret_cast<uintptr_t>(buffer.address);
  return buffer.offset <= UINT64_MAX - start && buffer.bytes <= UINT64_MAX - start - buffer.offset;
}

// Checks the rules that apply to every buffer that a framework passes. check_place (run/memory.h) checks its device.
inline Status check_buffer(const bp_buffer_t& buffer, std::string_view name) {
  if (buffer.flags & ~BP_BUFFER_READ_ONLY)
    return check_flags(buffer.flags, BP_BUFFER_READ_ONLY, std::string(name) + ".flags");
  if (buffer.reserved)
    return {BP_UNSUPPORTED, std::string(name) + ".reserved is " + std::to_string(buffer.reserved) + ": set it to 0"};
  if (!has_end(buffer))
    return {BP_INVALID_ARGUMENT, std::string(name) + " has " + std::to_string(buffer.bytes) + " bytes from offset " +
                                     std::to_string(buffer.offset) + ", which exceeds the address space"};
  return {};
}

// Checks a framework's buffer that the loader will write to.
inline Status check_target(const bp_buffer_t& buffer, std::string_view name) {
  BP_TRY(check_buffer(buffer, name));
  if (!(buffer.flags & BP_BUFFER_READ_ONLY)) return {};
  return {BP_INVALID_ARGUMENT,
          std::string(name) + " is read-only (BP_BUFFER_READ_ONLY), but the loader must write to it"};
}

// Checks an array that a framework passes. `stride` is the framework's size of one element, in bytes.
template <class T>
Status check_array(const T* array, uint32_t count, uint32_t stride, std::string_view name) {
  if (!count) return {};
  if (!array) return {BP_INVALID_ARGUMENT, std::string(name) + " is NULL, but its count is " + std::to_string(count)};
  if (stride >= Size<T>::k10) return {};
  return {BP_INVALID_ARGUMENT, "the stride of " + std::string(name) + " is " + std::to_string(stride) +
                                   ", but must be at least " + std::to_string(Size<T>::k10) +
                                   ": set it to the sizeof of an element"};
}

// Copies element `i` of an array whose structs are `stride` bytes apart. Fields that those structs lack are zero.
template <class T>
T element(const T* array, uint32_t i, uint32_t stride) {
  T known{};
  const char* from = reinterpret_cast<const char*>(array) + static_cast<size_t>(i) * stride;
  if (stride >= sizeof(T)) {
    std::memcpy(static_cast<void*>(&known), from, sizeof(T));  // a constant size: a few instructions, not a loop
  } else {
    std::memcpy(static_cast<void*>(&known), from, stride);
  }
  return known;
}

}  // namespace backplane::abi
