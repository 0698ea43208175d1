// SPDX-License-Identifier: Apache-2.0
#include "argument.h"

#include <nanobind/stl/vector.h>

#include <cstring>

#include "convert.h"
#include "literal.h"

namespace backplane::python {
namespace {

std::string subject(const Use& use) {
  return use.name.empty() ? std::string("the array") : std::string(use.name);
}

[[noreturn]] void refuse_type(const Use& use, nb::handle value, const std::string& why) {
  const std::string text = subject(use) + ": an object of type '" + nb::type_name(value.type()).c_str() + "' " + why;
  throw nb::type_error(text.c_str());
}

bool is_numpy(nb::handle value) {
  return nb::hasattr(value, "__array_interface__") && nb::hasattr(value, "dtype");
}

std::string element_type(nb::handle array) {
  return nb::hasattr(array, "dtype") ? nb::str(nb::object(array.attr("dtype"))).c_str() : "";
}

uint64_t count_of(const int64_t* extents, uint32_t rank) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < rank; ++i) count *= static_cast<uint64_t>(extents[i]);
  return count;
}

}  // namespace

bp_tensor_t Argument::abi() const {
  bp_tensor_t tensor{};
  tensor.size = sizeof tensor;
  tensor.dtype = dtype_;
  tensor.rank = rank_;
  tensor.extents = extents_.data();
  tensor.buffer = buffer_;
  return tensor;
}

void Argument::set_extents(const int64_t* extents, size_t rank, const Use& use) {
  if (rank > BP_MAX_RANK) check_rank(rank, subject(use));  // otherwise no text is made
  rank_ = static_cast<uint32_t>(rank);
  std::copy_n(extents, rank, extents_.begin());
}

// Uses the memory of an object with a buffer, except that strings are copied. Returns false if the object has no
// buffer.
bool Argument::take_buffer(nb::handle value, const Use& use) {
  auto buffer = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(value.ptr(), buffer.get(), PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();
    return false;
  }
  held_.reset(buffer.release());
  const bp_dtype_t dtype = dtype_of_format(held_->format, held_->itemsize);
  if (dtype == BP_DTYPE_STRING || dtype == BP_DTYPE_UNDEFINED) {
    const std::string format = held_->format == nullptr ? "" : held_->format;
    held_.reset();
    const bool is_big_endian = format.substr(0, 1) == ">" || format.substr(0, 1) == "!";
    if (dtype == BP_DTYPE_UNDEFINED && is_big_endian)
      refuse_type(use, value, "has big-endian elements: pass array.astype(array.dtype.newbyteorder('='))");
    if (dtype == BP_DTYPE_UNDEFINED) {
      const std::string type = element_type(value);
      refuse_type(use, value, "has elements of type '" + (type.empty() ? format : type) + "', which ONNX lacks");
    }
    take_strings(value, use);
    return true;
  }
  if (held_->readonly && use.writes) {
    throw std::invalid_argument(subject(use) + ": the array is read-only, and results are written to it");
  }
  if (!PyBuffer_IsContiguous(held_.get(), 'C')) {
    if (!use.may_copy) {
      throw std::invalid_argument(subject(use) +
                                  ": the array is not C-contiguous; bind numpy.ascontiguousarray(array) instead, and "
                                  "write new data into that");
    }
    held_.reset();
    owner_ = imported("numpy", "ascontiguousarray")(value);
    return take_buffer(owner_, use);
  }
  const uint64_t alignment = alignment_of(dtype);
  if (held_->len != 0 && reinterpret_cast<uintptr_t>(held_->buf) % alignment != 0) {
    if (!use.may_copy) {
      throw std::invalid_argument(subject(use) + ": the array's address is not a multiple of " +
                                  std::to_string(alignment) +
                                  "; bind numpy.array(array) instead, and write new data into that");
    }
    held_.reset();
    owner_ = imported("numpy", "array")(value);
    return take_buffer(owner_, use);
  }
  dtype_ = dtype;
  set_extents(held_->shape, static_cast<size_t>(held_->ndim), use);
  buffer_ = bp_buffer_t{
      0, 0, use.writes ? 0 : uint32_t{BP_BUFFER_READ_ONLY}, nullptr, held_->buf, 0, static_cast<uint64_t>(held_->len)};
  return true;
}

// Takes an array with a type of ml_dtypes as unsigned integers, because NumPy does not export its buffer.
void Argument::take_view(nb::handle array, bp_dtype_t dtype, const Use& use) {
  const bool packed = is_packed(dtype);
  if (packed && !use.may_copy) {
    throw std::invalid_argument(subject(use) + ": tensors of " + std::string(dtype_name(dtype)) +
                                " are packed, and NumPy's arrays are not; it cannot be bound, but run() accepts it");
  }
  const char* integers = view::dtype_bits(dtype) == 16 ? "uint16" : "uint8";
  owner_ = array.attr("view")(integers);
  if (!take_buffer(owner_, use)) refuse_type(use, array, "has no buffer");
  dtype_ = dtype;
  if (!packed) return;
  const uint64_t count = count_of(extents_.data(), rank_);
  copy_ = allocate_host((count * view::dtype_bits(dtype) + 7) / 8);
  pack(dtype, static_cast<const uint8_t*>(held_->buf), count, reinterpret_cast<uint8_t*>(copy_.data.get()));
  buffer_.address = copy_.data.get();
  buffer_.bytes = copy_.bytes;
}

// Copies strings (or bytes, unchanged) to the ABI's layout: count + 1 offsets, then the bytes.
void Argument::take_strings(nb::handle value, const Use& use) {
  nb::object array = imported("numpy", "asarray")(value);
  const auto extents = nb::cast<std::vector<int64_t>>(array.attr("shape"));
  set_extents(extents.data(), extents.size(), use);
  std::vector<std::string> strings;
  for (nb::handle element : array.attr("ravel")().attr("tolist")()) {
    nb::object bytes = nb::borrow(element);
    if (PyUnicode_Check(element.ptr()))
      bytes = nb::steal(PyUnicode_AsEncodedString(element.ptr(), "utf-8", "surrogateescape"));
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (!bytes.is_valid() || PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) != 0) {
      PyErr_Clear();
      const bool is_number = use.dtype != BP_DTYPE_UNDEFINED && use.dtype != BP_DTYPE_STRING;
      const std::string remedy = is_number ? ": pass array.astype('" + std::string(dtype_name(use.dtype)) + "')" : "";
      refuse_type(use, element, "is neither text nor bytes, as elements of an array of type 'object' must be" + remedy);
    }
    strings.emplace_back(data, static_cast<size_t>(size));
  }
  const Tensor tensor = Tensor::of_strings(extents, strings);
  copy_ = allocate_host(tensor.bytes());
  std::memcpy(copy_.data.get(), tensor.data(), tensor.bytes());
  dtype_ = BP_DTYPE_STRING;
  buffer_ = bp_buffer_t{0, 0, BP_BUFFER_READ_ONLY, nullptr, copy_.data.get(), 0, copy_.bytes};
}

void Argument::take_array(const Array& array, const Use& use) {
  if (use.writes && array.is_read_only()) {
    throw std::invalid_argument(subject(use) + ": the array is read-only, and results are written to it");
  }
  dtype_ = array.dtype();
  set_extents(array.extents().data(), array.extents().size(), use);
  buffer_ = array.buffer();
}

Argument Argument::of(const Environment& env, nb::handle value, const Use& use) {
  if (value.is_none()) throw nb::type_error((subject(use) + " is None, not an array").c_str());
  Argument argument;
  argument.object_ = nb::borrow(value);
  if (nb::isinstance<Array>(value)) {
    argument.owner_ = argument.object_;
    argument.take_array(nb::cast<const Array&>(value), use);
    return argument;
  }
  if (argument.take_buffer(value, use)) return argument;
  if (is_numpy(value)) {
    bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
    try {
      dtype = dtype_of_name(utf8_of(nb::str(value.attr("dtype").attr("name"))));
    } catch (const std::invalid_argument&) {
      refuse_type(use, value, "has elements of type '" + element_type(value) + "', which ONNX lacks");
    }
    if (dtype == BP_DTYPE_STRING) {
      argument.take_strings(value, use);
    } else if (!nb::isinstance(value, imported("numpy", "ndarray"))) {  // a scalar
      argument.owner_ = imported("numpy", "asarray")(value);
      argument.take_view(argument.owner_, dtype, use);
    } else {
      argument.take_view(value, dtype, use);
    }
    return argument;
  }
  if (nb::hasattr(value, "__dlpack__")) {
    nb::object source = argument.object_;
    if (use.may_copy && nb::hasattr(source, "contiguous")) source = source.attr("contiguous")();
    if (nb::hasattr(source, "requires_grad") && PyObject_IsTrue(nb::object(source.attr("requires_grad")).ptr()) == 1)
      source = source.attr("detach")();
    argument.owner_ = import_dlpack(env, source, subject(use), use.may_copy);
    argument.take_array(nb::cast<const Array&>(argument.owner_), use);
    return argument;
  }
  if (!use.may_copy) refuse_type(use, value, "is not an array: it has neither a buffer nor __dlpack__");
  nb::object array;
  try {
    array = array_of(value, use.dtype, subject(use));
  } catch (nb::python_error& error) {
    if (error.matches(PyExc_OverflowError))
      throw std::invalid_argument(subject(use) + ": a number does not fit " + std::string(dtype_name(use.dtype)) +
                                  " (" + nb::str(error.value()).c_str() + ")");
    refuse_type(use, value, std::string("cannot become an array: ") + nb::str(error.value()).c_str());
  }
  Argument result = of(env, array, use);
  result.object_ = nb::borrow(value);
  if (!result.owner_.is_valid()) result.owner_ = std::move(array);
  return result;
}

}  // namespace backplane::python
