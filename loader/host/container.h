// SPDX-License-Identifier: Apache-2.0
// Implements bp_container_t: a sequence, optional or map that owns copies of its elements.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backplane/memory.h"
#include "base/status.h"

struct bp_container_t {
 public:
  // BP_KIND_SEQUENCE, BP_KIND_OPTIONAL or BP_KIND_MAP; 0 for a child container, whose kind its parent's type
  // determines.
  explicit bp_container_t(uint32_t kind = 0, uint32_t depth = 0) : kind_(kind), depth_(depth) {}

  uint32_t kind() const { return kind_; }
  uint64_t count() const { return elements_.size(); }
  backplane::Status tensor(uint64_t i, bp_tensor_t* out) const;
  backplane::Status child(uint64_t i, bp_container_t** out) const;
  backplane::Status key(uint64_t i, bp_bytes_t* out) const;
  backplane::Status append(bp_bytes_t key, const bp_tensor_t* tensor);
  backplane::Status append_child(bp_bytes_t key, bp_container_t** out);
  // Replaces the elements with copies of those of `from`, which may be this container or one inside it. After an error,
  // the elements are unchanged.
  backplane::Status assign(const bp_container_t& from);
  void clear() { elements_.clear(); }

 private:
  struct Element {
    std::string key;
    bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
    std::vector<int64_t> extents;
    std::unique_ptr<std::byte[]> data;
    uint64_t bytes = 0;
    std::unique_ptr<bp_container_t> child;  // null for a tensor
  };

  backplane::Status may_append(bp_bytes_t key) const;
  backplane::Result<const Element*> at(uint64_t i) const;

  uint32_t kind_;
  uint32_t depth_;
  std::vector<Element> elements_;
};

namespace backplane {

// The functions of bp_container_t as a table of the ABI. Exceptions become status codes.
const bp_container_api_t* container_api();
// BP_INVALID_ARGUMENT if `kind` is not BP_KIND_SEQUENCE, BP_KIND_OPTIONAL or BP_KIND_MAP.
Result<std::unique_ptr<bp_container_t>> make_container(uint32_t kind);

}  // namespace backplane
