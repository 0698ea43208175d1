// SPDX-License-Identifier: Apache-2.0
// The boundary between C++ and the C ABI. A backend throws on failure. Each slot runs within `fence`, which converts
// any exception to a status and an error text, because no exception may cross the ABI.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "backplane/plugin.h"
#include "backplane/sizes.hpp"

namespace backplane::sdk {

// A failure: a status and one line that names the object, the value found and the remedy. Copying never fails: a copy
// has no text if there is no memory for it.
class Error : public std::exception {
 public:
  Error(bp_status_t status, std::string text, uint64_t node = BP_NO_NODE, int64_t vendor_code = 0)
      : status(status), text(std::move(text)), node(node), vendor_code(vendor_code) {}
  Error(const Error& other) noexcept
      : std::exception(other),
        status(other.status),
        text(copied(other.text)),
        node(other.node),
        vendor_code(other.vendor_code),
        flags(other.flags),
        run(other.run) {}
  Error(Error&&) noexcept = default;
  Error& operator=(const Error& other) noexcept { return *this = Error(other); }
  Error& operator=(Error&&) noexcept = default;
  // Like the constructor, but without the text if there is no memory for it.
  static Error without_throwing(bp_status_t status, std::string_view text) noexcept { return {status, copied(text)}; }
  // The failure of a lost device: the device and all its objects have become unusable.
  static Error device_lost(std::string text, int64_t vendor_code = 0) {
    Error error(BP_DEVICE_LOST, std::move(text), BP_NO_NODE, vendor_code);
    error.flags = BP_ERROR_DEVICE_LOST;
    return error;
  }
  const char* what() const noexcept override { return text.c_str(); }

  bp_status_t status;
  std::string text;
  uint64_t node;
  int64_t vendor_code;
  uint32_t flags = 0;
  uint64_t run = 0;  // bp_run_t.id of the run that failed, if another run reports the failure

 private:
  static std::string copied(std::string_view text) noexcept {
    try {
      return std::string(text);
    } catch (...) {
      return {};
    }
  }
};

// Writes a failure to the caller's bp_error_t by the rules of status.h. Returns the status.
inline bp_status_t report(bp_error_t* out, bp_status_t status, std::string_view text, uint64_t node = BP_NO_NODE,
                          int64_t vendor_code = 0, uint32_t flags = 0) noexcept {
  if (out == nullptr) return status;
  bp_error_t error{};
  std::memcpy(&error, out, std::min<size_t>(out->size, sizeof error));
  error.status = status;
  error.node = node;
  error.vendor_code = vendor_code;
  error.flags = flags;
  error.run = 0;
  error.text_size = text.size();
  if (error.text != nullptr) std::memcpy(error.text, text.data(), std::min<uint64_t>(text.size(), error.text_capacity));
  std::memcpy(out, &error, std::min<size_t>(out->size, sizeof error));
  return status;
}

// A bp_error_t with a message buffer, for calls of host functions.
class Detail {
 public:
  bp_error_t* get() { return &error_; }
  // Unless `status` is BP_OK, throws an Error with the message that the call wrote, or with `text` if it wrote none.
  void check(bp_status_t status, std::string_view text) const {
    if (status == BP_OK) return;
    const std::string_view given(words_, std::min<uint64_t>(error_.text_size, sizeof words_));
    Error error(status, std::string(given.empty() ? text : given), error_.node, error_.vendor_code);
    error.flags = error_.flags;
    error.run = error_.run;
    throw error;
  }

 private:
  char words_[500];
  bp_error_t error_{sizeof error_, BP_OK, BP_NO_NODE, 0, 0, 0, words_, sizeof words_, 0, 0};
};

inline bp_status_t report(bp_error_t* out, const Error& e) noexcept {
  report(out, e.status, e.text, e.node, e.vendor_code, e.flags);
  if (out != nullptr && BP_HAS(out, out->size, run)) out->run = e.run;
  return e.status;
}

// The status of a system error: BP_RESOURCE_EXHAUSTED if the process can get no further thread or memory.
inline bp_status_t status_of(const std::system_error& error) noexcept {
  const bool exhausted =
      error.code() == std::errc::resource_unavailable_try_again || error.code() == std::errc::not_enough_memory;
  return exhausted ? BP_RESOURCE_EXHAUSTED : BP_INTERNAL;
}

template <class Body>
bp_status_t fence(bp_error_t* error, Body&& body) noexcept {
  try {
    body();
    return BP_OK;
  } catch (const Error& e) {
    return report(error, e);
  } catch (const std::bad_alloc&) {
    return report(error, BP_RESOURCE_EXHAUSTED, "out of host memory");
  } catch (const std::system_error& e) {
    return report(error, status_of(e), e.what());
  } catch (const std::exception& e) {
    return report(error, BP_INTERNAL, e.what());
  } catch (...) {
    return report(error, BP_INTERNAL, "an exception of unknown type");
  }
}

// Runs `body`. Returns an exception of `body` as an Error, or nullopt if there was none. The Error has no text if there
// is no memory for it.
template <class Body>
std::optional<Error> caught(Body&& body) noexcept {
  try {
    body();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Error::without_throwing(BP_RESOURCE_EXHAUSTED, "out of host memory");
  } catch (const std::system_error& error) {
    return Error::without_throwing(status_of(error), error.what());
  } catch (const std::exception& error) {
    return Error::without_throwing(BP_INTERNAL, error.what());
  } catch (...) {
    return Error::without_throwing(BP_INTERNAL, "an exception of unknown type");
  }
}

// The number of forks between the process that loaded the plugin and this process.
inline std::atomic<uint32_t> forks_since_load{0};
// Registered when the plugin is loaded: its first use may coincide with a fork.
[[maybe_unused]] inline const int kForksCounted =
    pthread_atfork(nullptr, nullptr, [] { forks_since_load.fetch_add(1, std::memory_order_relaxed); });
inline uint32_t fork_generation() noexcept {
  return forks_since_load.load(std::memory_order_relaxed);
}

// The base of every handle. Drivers and threads do not survive a fork, so handles created before it are unusable in the
// child: their slots return BP_FORKED, and destroying them does nothing.
class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
  bool forked() const noexcept { return made_under_ != fork_generation(); }

 private:
  const uint32_t made_under_ = fork_generation();
};

template <class Self, class Body>
bp_status_t fence(const Self* self, bp_error_t* error, Body&& body) noexcept {
  if (self == nullptr) return report(error, BP_INVALID_ARGUMENT, "the handle is NULL");
  if (self->forked()) {
    return report(error, BP_FORKED,
                  "the process was forked after this object was created; create the environment again in the child");
  }
  return fence(error, std::forward<Body>(body));
}

[[noreturn]] inline void throw_bad_struct(const char* name, const uint32_t* size, uint32_t least) {
  if (size == nullptr) throw Error(BP_INVALID_ARGUMENT, std::string(name) + " is NULL");
  throw Error(BP_INVALID_ARGUMENT, std::string(name) + ".size is " + std::to_string(*size) + "; it must be at least " +
                                       std::to_string(least) + ", as in ABI 1.0: set it to sizeof the struct");
}

// Checks a host's struct and returns it. Guard fields that are newer than ABI 1.0 with BP_HAS.
template <class T>
const T& checked(const T* in, const char* name) {
  if (in == nullptr) throw_bad_struct(name, nullptr, kSize10<T>);
  if (in->size < kSize10<T>) throw_bad_struct(name, &in->size, kSize10<T>);
  return *in;
}

// Copies a host's struct. Fields that an older host lacks are zero. Errors refer to the struct as `name`.
template <class T>
T read(const T* in, const char* name) {
  if (in != nullptr && in->size >= sizeof(T)) return *in;
  const T& older = checked(in, name);
  T copy{};
  std::memcpy(&copy, &older, older.size);
  return copy;
}

// Throws unless the host's array has no elements, or is not NULL and has elements of at least ABI 1.0's size.
template <class T>
void check_array(const T* array, uint32_t count, uint32_t stride, const char* name) {
  if (count == 0) return;
  if (array == nullptr)
    throw Error(BP_INVALID_ARGUMENT, std::string(name) + " is NULL, but its count is " + std::to_string(count));
  if (stride < kSize10<T>)
    throw Error(BP_INVALID_ARGUMENT, "the stride of " + std::string(name) + " is " + std::to_string(stride) +
                                         "; it must be at least " + std::to_string(kSize10<T>) +
                                         ", the size of an element in ABI 1.0");
}

// Copies element `i` of the host's array; `stride` is the size of its elements. Fields that an older host lacks are
// zero. Do not copy elements by assignment: the array of an older host may end before sizeof(T) bytes of its last
// element.
template <class T>
T element(const T* array, uint32_t i, uint32_t stride) {
  T copy{};
  const char* from = reinterpret_cast<const char*>(array) + uint64_t{i} * stride;
  if (stride >= sizeof copy) {
    std::memcpy(static_cast<void*>(&copy), from, sizeof copy);  // a constant size: a few instructions, not a loop
  } else {
    std::memcpy(static_cast<void*>(&copy), from, stride);
  }
  return copy;
}

// Returns the host's struct itself, or a copy in `room` if the host is older. For calls that keep no pointer to it.
template <class T>
const T& read_in_place(const T* in, const char* name, T& room) {
  if (in != nullptr && in->size >= sizeof(T)) return *in;
  return room = read(in, name);
}

// Fills a host's struct, up to the size that the host supports.
template <class T>
void write(T* out, T value, const char* name) {
  value.size = static_cast<uint32_t>(std::min<size_t>(read(out, name).size, sizeof value));
  const uint32_t size = out->size;
  std::memcpy(out, &value, value.size);
  out->size = size;
}

template <class T>
T& required(T* pointer, const char* name) {
  if (pointer == nullptr) throw Error(BP_INVALID_ARGUMENT, std::string(name) + " is NULL");
  return *pointer;
}

// The SDK supports no extension structs: it refuses required ones and skips optional ones.
inline void check_chain(const bp_chain_t* chain) {
  for (; chain != nullptr; chain = chain->next) {
    if (chain->required == 0) continue;
    throw Error(BP_UNSUPPORTED, "extension '" + std::string(chain->extension.data, chain->extension.size) +
                                    "' is required but not supported; leave it out, or set its `required` to 0");
  }
}

// Refuses unknown flags that must be understood (BP_FLAGS_REQUIRED). Ignores unknown hints.
inline void check_flags(uint32_t given, uint32_t known, const char* name) {
  const uint32_t unknown = given & BP_FLAGS_REQUIRED & ~known;
  if (unknown != 0)
    throw Error(BP_UNSUPPORTED, std::string(name) + " has unsupported bits: " + std::to_string(unknown));
}

// Checks a host's buffer and returns it.
inline const bp_buffer_t& check_buffer(const bp_buffer_t* buffer, const char* name) {
  const bp_buffer_t& given = required(buffer, name);
  check_flags(given.flags, BP_BUFFER_READ_ONLY, name);
  if (given.reserved != 0)
    throw Error(BP_UNSUPPORTED, std::string(name) + ".reserved is " + std::to_string(given.reserved) + "; set it to 0");
  return given;
}

// Checks a host's buffer that a call writes to.
inline void check_target(const bp_buffer_t& buffer, const char* name) {
  if ((check_buffer(&buffer, name).flags & BP_BUFFER_READ_ONLY) != 0)
    throw Error(BP_INVALID_ARGUMENT, std::string(name) + " is read-only (BP_BUFFER_READ_ONLY), but it is written to");
}

// Checks a host's tensor: its buffer, and that its extents and strides can be read.
inline void check_tensor(const bp_tensor_t& tensor, const std::string& name) {
  static_cast<void>(check_buffer(&tensor.buffer, (name + ".buffer").c_str()));
  if (tensor.rank > BP_MAX_RANK)
    throw Error(BP_INVALID_ARGUMENT, name + ".rank is " + std::to_string(tensor.rank) + "; it can be at most " +
                                         std::to_string(BP_MAX_RANK));
  if (tensor.rank == 0) return;
  if (tensor.extents == nullptr) throw Error(BP_INVALID_ARGUMENT, name + ".extents is NULL");
  if (tensor.layout == BP_LAYOUT_STRIDED && tensor.strides == nullptr)
    throw Error(BP_INVALID_ARGUMENT, name + ".strides is NULL, but its layout is strided");
}

inline void check_points(const bp_point_t* points, uint32_t count, const char* name) {
  for (uint32_t i = 0; i < count; ++i) {
    const bp_point_t& point = (&required(points, name))[i];
    if (point.handle == 0)
      throw Error(BP_INVALID_ARGUMENT, name + ("[" + std::to_string(i)) + "].handle is 0; it must be a semaphore");
    if (point.kind != BP_POINT_HOST && point.kind != BP_POINT_NATIVE)
      throw Error(BP_INVALID_ARGUMENT, name + ("[" + std::to_string(i)) + "].kind is " + std::to_string(point.kind) +
                                           "; it must be BP_POINT_HOST or BP_POINT_NATIVE");
    check_flags(point.flags, 0, name);
  }
}

// Checks the flags and points of a run.
inline void check_run(const bp_run_t& run) {
  check_flags(run.flags, 0, "run.flags");
  check_points(run.waits, run.wait_count, "run.waits");
  check_points(run.signals, run.signal_count, "run.signals");
}

// Copies a struct that another one points to, and returns the copy, or NULL for NULL. Vendors receive only such copies,
// because the host's struct may end before sizeof(T) bytes.
template <class T>
T* read_nested(const T* in, const char* name, T& room) {
  if (in == nullptr) return nullptr;
  room = read(in, name);
  return &room;
}

// Copies and checks a native object of the framework.
inline const bp_native_t* read_native(const bp_native_t* native, bp_native_t& room) {
  if (read_nested(native, "native", room) == nullptr) return nullptr;
  check_chain(room.chain);
  return &room;
}

// Copies and checks the run of a copy or a fill.
inline const bp_run_t* read_order(const bp_run_t* run, bp_run_t& room) {
  if (read_nested(run, "what.run", room) == nullptr) return nullptr;
  check_run(room);
  if (room.stream == nullptr)
    throw Error(BP_INVALID_ARGUMENT,
                "what.run.stream is NULL: set it, or what.run to NULL for a copy or fill without a stream");
  if (room.output != nullptr) throw Error(BP_INVALID_ARGUMENT, "what.run.output must be NULL: a copy has no outputs");
  return &room;
}

}  // namespace backplane::sdk
