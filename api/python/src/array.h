// SPDX-License-Identifier: Apache-2.0
// Arrays: tensors that native code owns, on the host and on devices. Converts them to NumPy and DLPack.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core.h"
#include "dtypes.h"

namespace backplane::python {

// The number of Arrays and of views made from them that refer to memory of a run's outputs. The run refuses to write or
// release that memory unless the number is 0.
using Views = std::shared_ptr<std::atomic<int>>;

// A dense tensor in memory that native code owns. DLPack (except for strings) and, on the host, NumPy (except for
// strings and packed types) view it without a copy. `extents` has passed check_rank.
class Array {
 public:
  Array(Environment env, bp_dtype_t dtype, std::vector<int64_t> extents, const bp_buffer_t& buffer)
      : env_(std::move(env)), dtype_(dtype), extents_(std::move(extents)), buffer_(buffer) {}

  // Each `keep` makes this object keep the owner of the memory alive: a Python object, an allocation, or a run with its
  // count of views.
  void keep(nb::object owner) { owner_ = std::move(owner); }
  // `owner` is a capsule with one reference to `source`.
  void keep(nb::object owner, nb::handle source) {
    owner_ = std::move(owner);
    source_ = source;
  }
  void keep(const Buffer& allocation) { allocation_ = std::make_unique<Unlocked<Buffer>>(allocation); }
  void keep(nb::object run, Views views);
  ~Array() {
    const Call inside;
    if (views_) --*views_;
    owner_.reset();
  }
  // For the garbage collector: this object may be part of a cycle, because an output of a run may be bound to that run,
  // and because the object that owns the memory may refer to a run. The collector does not see the object to which the
  // capsule `owner_` refers, so `source_` is visited too, while only this array holds the capsule.
  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(owner_.ptr());
    if (source_.is_valid() && Py_REFCNT(owner_.ptr()) == 1) Py_VISIT(source_.ptr());
    return 0;
  }

  bp_dtype_t dtype() const { return dtype_; }
  const std::vector<int64_t>& extents() const { return extents_; }
  const bp_buffer_t& buffer() const { return buffer_; }
  bp_tensor_t abi() const;
  uint64_t bytes() const;  // of the elements
  bool on_host() const { return buffer_.memory == nullptr; }
  bool is_viewable() const { return on_host() && dtype_ != BP_DTYPE_STRING && !is_packed(dtype_); }  // by NumPy
  const Environment& env() const { return *env_; }
  bool is_read_only() const { return (buffer_.flags & BP_BUFFER_READ_ONLY) != 0; }

  // Returns an ndarray that views this memory if possible; otherwise, or if `copy`, one with a copy on the host.
  nb::object numpy(bool copy) const;
  nb::object dlpack(const nb::kwargs& arguments) const;
  std::pair<int, int> dlpack_device() const;

 private:
  nb::object owner() const;  // what a view of the memory must keep alive
  nb::object copy_on_host() const;
  nb::object view(void* data, int device_type, int device_id) const;

  Unlocked<Environment> env_;
  bp_dtype_t dtype_;
  std::vector<int64_t> extents_;
  bp_buffer_t buffer_;
  nb::object owner_;
  nb::handle source_;
  Views views_;  // set if the owner is a run
  std::unique_ptr<Unlocked<Buffer>> allocation_;
};

// Throws ValueError if no tensor can have this many dimensions. Call it for each rank that is not the loader's own.
// `subject` begins the text of errors: "input 'x'".
void check_rank(size_t rank, const std::string& subject);

// The alignment in bytes that an element's address on the host must have.
uint64_t alignment_of(bp_dtype_t dtype);

// Imports an object through DLPack. `value` is on the host or on a device of the environment. Memory on the host that
// has gaps or another order, or is not aligned, is copied if `may_copy` and the type is not packed. Otherwise throws
// ValueError.
nb::object import_dlpack(const Environment& env, nb::handle value, const std::string& subject, bool may_copy);

// Returns a new ndarray with the elements of a dense tensor in any memory.
nb::object copy_to_numpy(const Environment& env, const bp_tensor_t& tensor);

// Aligned memory for an output, owned by `data`. adopt_host makes an ndarray that shares the ownership.
struct HostMemory {
  std::shared_ptr<char> data;
  uint64_t bytes = 0;
};
HostMemory allocate_host(uint64_t bytes);
nb::object numpy_of(bp_dtype_t dtype, const int64_t* extents, uint32_t rank, void* data, nb::handle owner,
                    bool read_only);
nb::object adopt_host(HostMemory memory, bp_dtype_t dtype, const int64_t* extents, uint32_t rank);

}  // namespace backplane::python
