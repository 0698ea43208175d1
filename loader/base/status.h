// SPDX-License-Identifier: Apache-2.0
// Results of functions inside the loader: either a value, or a status code of the ABI with one line of text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "backplane/status.h"

namespace backplane {

// BP_OK, or another code with a text that names the object, the value seen and the remedy. Success is stored as a null
// pointer, so a Status with a text must not have the code BP_OK.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(bp_status_t code, std::string text) : detail_(new Detail{code, std::move(text), BP_NO_NODE, 0, 0, 0}) {}
  Status(Status&&) = default;
  Status& operator=(Status&&) = default;
  Status(const Status& other) : detail_(other.detail_ ? new Detail(*other.detail_) : nullptr) {}
  Status& operator=(const Status& other) { return *this = Status(other); }

  bool ok() const { return !detail_; }
  bp_status_t code() const { return detail_ ? detail_->code : BP_OK; }
  std::string_view text() const { return detail_ ? std::string_view(detail_->text) : std::string_view(); }
  uint64_t node() const { return detail_ ? detail_->node : BP_NO_NODE; }
  int64_t vendor_code() const { return detail_ ? detail_->vendor_code : 0; }
  uint32_t flags() const { return detail_ ? detail_->flags : 0; }
  uint64_t run() const { return detail_ ? detail_->run : 0; }  // bp_run_t.id of the run that failed; 0: unknown

  // Converts a status that a plugin or a framework reported. `code` must not be BP_OK; `error` may be NULL or have no
  // text.
  static Status reported(bp_status_t code, const bp_error_t* error);

  // Each sets one field of the error and returns the status itself, so that calls can be chained. No effect on BP_OK.
  Status&& with_node(uint64_t id) &&;
  Status&& with_vendor_code(int64_t code) &&;
  Status&& with_flags(uint32_t flags) &&;
  Status&& with_run(uint64_t id) &&;
  // Prepends to the text: context("model 'x.onnx'") turns "…" into "model 'x.onnx': …".
  Status&& context(std::string_view words) &&;

  // Fills the caller's bp_error_t by the ABI's rules, unless this is BP_OK, and returns the code. `error` may be NULL.
  bp_status_t write(bp_error_t* error) const;

 private:
  struct Detail {
    bp_status_t code;
    std::string text;
    uint64_t node;
    int64_t vendor_code;
    uint32_t flags;
    uint64_t run;
  };
  std::unique_ptr<Detail> detail_;
};

// Like Status::write, but for an error without a text, which needs no memory.
bp_status_t write_code(bp_status_t code, bp_error_t* error) noexcept;

// The loader assigns values of bp_run_t.id from this one up: to its own runs, and to runs that the framework did not
// number. Frameworks number their runs from 1. Status::write replaces a value of the loader with 0.
constexpr uint64_t kFirstLoaderRun = uint64_t{1} << 63;

// A value, or the status that explains why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  Status take_status() { return std::move(status_); }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T take() { return std::move(*value_); }

 private:
  std::optional<T> value_;
  Status status_;
};

// The bp_error_t and text buffer that a call into a plugin fills; status() converts them to a Status.
class PluginError {
 public:
  PluginError();
  bp_error_t* get() { return &error_; }
  // The status of a call that returned `code`. Its text is "what: " and the plugin's text or, without one, the
  // name of the code.
  Status status(bp_status_t code, std::string_view what) const;
  std::string_view text() const;

 private:
  bp_error_t error_;
  char text_[1000];
};

// The name of a status code, such as "BP_INVALID_MODEL", or a text for a code that the loader does not know. The view
// is of a string literal, so a '\0' follows it.
std::string_view status_name(bp_status_t code);

}  // namespace backplane

#define BP_TRY(expression)                                                                  \
  do {                                                                                      \
    if (::backplane::Status try_status = (expression); !try_status.ok()) return try_status; \
  } while (0)

#define BP_TRY_CONCAT2(a, b) a##b
#define BP_TRY_CONCAT(a, b) BP_TRY_CONCAT2(a, b)
// BP_ASSIGN(auto x, f()): declares x, or returns f's status. It is several statements: use braces after `if`.
#define BP_ASSIGN(declaration, expression)                                                                   \
  auto BP_TRY_CONCAT(try_result_, __LINE__) = (expression);                                                  \
  if (!BP_TRY_CONCAT(try_result_, __LINE__).ok()) return BP_TRY_CONCAT(try_result_, __LINE__).take_status(); \
  declaration = BP_TRY_CONCAT(try_result_, __LINE__).take() /* NOLINT(bugprone-macro-parentheses): "auto x" */
