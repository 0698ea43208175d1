// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "backplane/sizes.h"
#include "base/status_text.h"

namespace backplane {
Status Status::reported(bp_status_t code, const bp_error_t* error) {
  if (!error || error->size < BP_SIZE_1_0(bp_error_t)) return {code, status_text(code)};
  const bool has_text = error->text && error->text_size;
  return Status(code, has_text ? std::string(error->text, std::min(error->text_size, error->text_capacity))
                               : status_text(code))
      .with_node(error->node)
      .with_vendor_code(error->vendor_code)
      .with_flags(error->flags)
      .with_run(error->run);
}

Status&& Status::with_node(uint64_t id) && {
  if (detail_) detail_->node = id;
  return std::move(*this);
}

Status&& Status::with_vendor_code(int64_t code) && {
  if (detail_) detail_->vendor_code = code;
  return std::move(*this);
}

Status&& Status::with_flags(uint32_t flags) && {
  if (detail_) detail_->flags = flags;
  return std::move(*this);
}

Status&& Status::with_run(uint64_t id) && {
  if (detail_) detail_->run = id;
  return std::move(*this);
}

Status&& Status::context(std::string_view words) && {
  if (detail_) detail_->text = std::string(words) + ": " + detail_->text;
  return std::move(*this);
}

bp_status_t Status::write(bp_error_t* error) const {
  if (!detail_ || !error || error->size < BP_SIZE_1_0(bp_error_t)) return code();
  error->status = detail_->code;
  error->node = detail_->node;
  error->vendor_code = detail_->vendor_code;
  error->flags = detail_->flags;
  error->text_size = detail_->text.size();
  error->run = detail_->run < kFirstLoaderRun ? detail_->run : 0;
  if (error->text)
    std::memcpy(error->text, detail_->text.data(), std::min<uint64_t>(error->text_capacity, error->text_size));
  return code();
}

bp_status_t write_code(bp_status_t code, bp_error_t* error) noexcept {
  if (!error || error->size < BP_SIZE_1_0(bp_error_t)) return code;
  error->status = code;
  error->node = BP_NO_NODE;
  error->vendor_code = 0;
  error->flags = 0;
  error->text_size = 0;
  error->run = 0;
  return code;
}

PluginError::PluginError() : error_{}, text_{} {  // zeros, so that a wrong `text_size` shows no memory of the host
  error_.size = sizeof error_;
  error_.node = BP_NO_NODE;
  error_.text = text_;
  error_.text_capacity = sizeof text_;
}

std::string_view PluginError::text() const {
  const std::string_view text(text_, std::min<uint64_t>(error_.text_size, sizeof text_));
  return text.substr(0, text.find('\0'));
}

Status PluginError::status(bp_status_t code, std::string_view what) const {
  if (code == BP_OK) return {};
  std::string text(what);
  text += ": ";
  text += this->text().empty() ? status_text(code) + " (the backend sent no text)" : std::string(this->text());
  return Status(code, std::move(text))
      .with_node(error_.node)
      .with_vendor_code(error_.vendor_code)
      .with_flags(error_.flags)
      .with_run(error_.run);
}

std::string_view status_name(bp_status_t code) {
  switch (code) {
#define BP_NAME(name) \
  case name:          \
    return #name;
    BP_NAME(BP_OK)
    BP_NAME(BP_INVALID_ARGUMENT)
    BP_NAME(BP_INVALID_MODEL)
    BP_NAME(BP_UNSUPPORTED)
    BP_NAME(BP_NOT_FOUND)
    BP_NAME(BP_BUFFER_TOO_SMALL)
    BP_NAME(BP_BAD_STATE)
    BP_NAME(BP_TYPE_MISMATCH)
    BP_NAME(BP_PERMISSION_DENIED)
    BP_NAME(BP_RESOURCE_EXHAUSTED)
    BP_NAME(BP_TIMED_OUT)
    BP_NAME(BP_CANCELLED)
    BP_NAME(BP_BUSY)
    BP_NAME(BP_DEVICE_LOST)
    BP_NAME(BP_DEPENDENCY_FAILED)
    BP_NAME(BP_FORKED)
    BP_NAME(BP_STALE)
    BP_NAME(BP_INTERNAL)
    BP_NAME(BP_INCOMPATIBLE)
    BP_NAME(BP_CORRUPT)
    BP_NAME(BP_IO_ERROR)
#undef BP_NAME
    default:
      return "a status code newer than this loader";
  }
}

}  // namespace backplane
