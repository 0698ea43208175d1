// SPDX-License-Identifier: Apache-2.0
#include "array.h"

#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "convert.h"

namespace backplane::python {
namespace {

constexpr int kDlpackCuda = 2, kDlpackOpencl = 4;

// How DLPack describes a device: its DLPack type (0: none), the kind (BP_EXTERNAL_*) of the handle in DLPack's `data`,
// and the index of the memory space that can import it.
struct Outside {
  int type = 0;
  uint32_t external = 0;
  uint32_t space = 0;
};

bool has(const uint32_t* kinds, uint32_t count, uint32_t kind) {
  return std::find(kinds, kinds + count, kind) != kinds + count;
}

Outside outside(const Environment& env, const bp_device_info_t& device) {
  for (uint32_t i = 0; i < device.space_count; ++i) {
    bp_space_t space{};
    space.size = sizeof space;
    client::detail::call(api().memory_space, env.get(), device.id, i, &space);
    if (has(space.imports, space.import_count, BP_EXTERNAL_CUDA_POINTER))
      return {kDlpackCuda, BP_EXTERNAL_CUDA_POINTER, i};
    if (has(space.imports, space.import_count, BP_EXTERNAL_CL_MEM)) return {kDlpackOpencl, BP_EXTERNAL_CL_MEM, i};
  }
  return {};
}

// Returns the device of DLPack type `type` with DLPack's number `id`. DLPack numbers the devices of each type from 0:
// here in the environment's order of devices.
Device find_device(const Environment& env, int type, int id, Outside& out) {
  int next = 0;
  for (Device& device : env.devices()) {
    out = outside(env, device.info);
    if (out.type == type && next++ == id) return std::move(device);
  }
  throw Error(BP_NOT_FOUND, "the array is on DLPack's device (" + std::to_string(type) + ", " + std::to_string(id) +
                                "), and no backend that was found has it; copy the array to the host first");
}

struct Numbered {
  int type;
  int id;
  uint32_t external;
};

Numbered number_device(const Environment& env, uint64_t id) {
  const bp_device_info_t own = env.device(id).info;
  const Outside out = outside(env, own);
  int next = 0;
  for (const Device& device : env.devices()) {
    if (device.info.id == id) break;
    if (out.type != 0 && outside(env, device.info).type == out.type) ++next;
  }
  return {out.type, next, out.external};
}

// Raises why an object cannot be imported: the exception of its __dlpack__ becomes the cause.
[[noreturn]] void refuse_import(nb::handle value, const std::string& what) {
  const std::string subject = what + ": an object of type '" + nb::type_name(value.type()).c_str() + "'";
  if (!nb::hasattr(value, "__dlpack__"))
    throw nb::type_error((subject + " is not an array: it has neither __dlpack__ nor a buffer").c_str());
  try {
    (void)value.attr("__dlpack__")();
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;  // such as KeyboardInterrupt
    nb::raise_from(error, PyExc_BufferError, "%s cannot be imported: its __dlpack__ failed", subject.c_str());
  }
  throw nb::type_error((subject + " cannot be imported: its __dlpack__ returns no capsule of DLPack").c_str());
}

// A counted view of a run's output. Keeps the run alive.
struct View {
  nb::object run;
  Views views;
};

nb::object shape_of(const Array& array) {
  nb::list shape;
  for (const int64_t extent : array.extents()) shape.append(extent);
  return nb::tuple(shape);
}

std::string device_name(const Array& array) {
  if (array.buffer().device == 0) return "host";
  return array.env().device(array.buffer().device).name;
}

std::string describe(const Array& array) {
  const std::string shape = nb::repr(shape_of(array)).c_str();
  return "Array(shape=" + shape + ", dtype='" + std::string(dtype_name(array.dtype())) + "', device='" +
         device_name(array) + "')";
}

}  // namespace

void Array::keep(nb::object run, Views views) {
  ++*views;
  owner_ = std::move(run);
  views_ = std::move(views);
}

bp_tensor_t Array::abi() const {
  bp_tensor_t tensor{};
  tensor.size = sizeof tensor;
  tensor.dtype = dtype_;
  tensor.rank = static_cast<uint32_t>(extents_.size());
  tensor.extents = extents_.data();
  tensor.buffer = buffer_;
  return tensor;
}

nb::object Array::owner() const {
  if (!owner_.is_valid()) return nb::find(*this);
  if (!views_) return owner_;
  ++*views_;
  return nb::capsule(new View{owner_, views_}, [](void* p) noexcept {
    const Call inside;
    auto* view = static_cast<View*>(p);
    --*view->views;
    delete view;
  });
}

nb::object Array::view(void* data, int device_type, int device_id) const {
  const std::vector<size_t> shape(extents_.begin(), extents_.end());
  const auto cast = [&](auto array) {
    return nb::cast(decltype(array)(data, shape.size(), shape.data(), owner(), nullptr, dlpack_dtype(dtype_),
                                    device_type, device_id, 'C'));
  };
  return is_read_only() ? cast(nb::ndarray<nb::array_api, nb::ro>()) : cast(nb::ndarray<nb::array_api>());
}

uint64_t Array::bytes() const {
  if (dtype_ == BP_DTYPE_STRING) return buffer_.bytes;
  // `buffer_` may be larger: the buffer of an empty array is not empty, and an output's may have room for a larger
  // shape.
  return view::dense_bytes(dtype_, extents_.data(), static_cast<uint32_t>(extents_.size())).value_or(buffer_.bytes);
}

nb::object Array::numpy(bool copy) const {
  if (copy || !is_viewable()) return copy_to_numpy(*env_, abi());
  char* data = static_cast<char*>(buffer_.address) + buffer_.offset;
  return numpy_of(dtype_, extents_.data(), static_cast<uint32_t>(extents_.size()), data, owner(), is_read_only());
}

std::pair<int, int> Array::dlpack_device() const {
  if (on_host()) return {nb::device::cpu::value, 0};
  const Numbered device = number_device(*env_, buffer_.device);
  return {device.type, device.id};
}

nb::object Array::copy_on_host() const {
  const HostMemory memory = allocate_host(bytes());
  const bp_buffer_t to{0, 0, 0, nullptr, memory.data.get(), 0, memory.bytes};
  if (memory.bytes != 0) {
    const UnlockedScope unlocked;
    if (on_host()) {
      std::memcpy(to.address, static_cast<const char*>(buffer_.address) + buffer_.offset, to.bytes);
    } else {
      env_->copy(buffer_, to, to.bytes);
    }
  }
  auto array = std::make_unique<Array>(*env_, dtype_, extents_, to);
  array->keep(nb::capsule(new HostMemory(memory), [](void* p) noexcept { delete static_cast<HostMemory*>(p); }));
  return nb::cast(array.release(), nb::rv_policy::take_ownership);
}

nb::object Array::dlpack(const nb::kwargs& arguments) const {
  const nb::object copy = arguments.attr("get")("copy"), wanted = arguments.attr("get")("dl_device");
  std::pair<int, int> device = dlpack_device();
  const bool is_moved = nb::try_cast<std::pair<int, int>>(wanted, device) && device != dlpack_device();
  const bool must_copy = PyObject_IsTrue(copy.ptr()) == 1, may_copy = copy.is_none() || must_copy;
  if (must_copy || (is_moved && may_copy)) {
    if (device.first != nb::device::cpu::value)
      throw nb::buffer_error("DLPack copies are made on the host only: pass dl_device=(1, 0)");
    auto rest = nb::borrow<nb::kwargs>(nb::object(arguments.attr("copy")()));
    rest["copy"] = nb::none();
    return nb::cast<const Array&>(copy_on_host()).dlpack(rest);
  }
  nb::object view_object;
  if (on_host()) {
    view_object = view(static_cast<char*>(buffer_.address) + buffer_.offset, nb::device::cpu::value, 0);
  } else {
    const Numbered device = number_device(*env_, buffer_.device);
    if (device.type == 0) {
      throw nb::buffer_error("DLPack has no name for memory of this device: take .numpy(), which copies it");
    }
    const bp_export_t what{sizeof what, device.external, &buffer_};
    bp_external_t external{};
    external.size = sizeof external;
    client::detail::call(api().memory_export, env_->get(), &what, &external);
    if (device.type == kDlpackOpencl && external.offset != 0) {
      throw nb::buffer_error(
          "this array does not begin at the start of its cl_mem, as DLPack requires: take .numpy(), which copies it");
    }
    view_object = view(reinterpret_cast<char*>(external.handle) + external.offset, device.type, device.id);
  }
  return view_object.attr("__dlpack__")(**arguments);
}

void check_rank(size_t rank, const std::string& subject) {
  if (rank <= BP_MAX_RANK) return;
  throw std::invalid_argument(subject + ": it has " + std::to_string(rank) + " dimensions, and tensors have at most " +
                              std::to_string(BP_MAX_RANK));
}

uint64_t alignment_of(bp_dtype_t dtype) {
  return std::clamp<uint64_t>(view::dtype_bits(dtype) / 8, 1, 8);
}

namespace {

// Why an array's memory cannot be used as it is; empty if it can.
std::string why_not_in_place(const nb::ndarray<nb::ro>& array, bp_dtype_t dtype, const std::vector<int64_t>& extents) {
  const bool is_empty = std::find(extents.begin(), extents.end(), 0) != extents.end();
  int64_t expected = 1;
  for (size_t i = is_empty ? 0 : extents.size(); i-- > 0;) {
    if (extents[i] > 1 && array.stride(i) != expected) return "the array is not C-contiguous";
    expected *= extents[i];
  }
  if (array.device_type() != nb::device::cpu::value || is_empty) return "";
  const uint64_t alignment = alignment_of(dtype);
  if ((reinterpret_cast<uintptr_t>(array.data_handle()) + array.byte_offset()) % alignment == 0) return "";
  return "the array's address is not a multiple of " + std::to_string(alignment);
}

// Copies the elements of dimension `axis` and those after it, `size` bytes each, to `to`. Returns the end of what was
// written. Strides are in elements.
char* copy_elements(const nb::ndarray<nb::ro>& from, const char* at, size_t axis, size_t size, char* to) {
  if (axis == from.ndim()) {
    std::memcpy(to, at, size);
    return to + size;
  }
  const auto step = from.stride(axis) * static_cast<int64_t>(size);
  for (size_t i = 0; i < from.shape(axis); ++i, at += step) to = copy_elements(from, at, axis + 1, size, to);
  return to;
}

std::unique_ptr<Array> dense_copy(const Environment& env, const nb::ndarray<nb::ro>& from, bp_dtype_t dtype,
                                  std::vector<int64_t> extents) {
  const auto bytes = view::dense_bytes(dtype, extents.data(), static_cast<uint32_t>(extents.size()));
  if (!bytes) throw Error(BP_RESOURCE_EXHAUSTED, "an array of these extents is too large for memory");
  const HostMemory memory = allocate_host(*bytes);
  {
    const UnlockedScope unlocked;
    const char* const begin = static_cast<const char*>(from.data_handle()) + from.byte_offset();
    copy_elements(from, begin, 0, view::dtype_bits(dtype) / 8, memory.data.get());
  }
  auto array = std::make_unique<Array>(env, dtype, std::move(extents),
                                       bp_buffer_t{0, 0, 0, nullptr, memory.data.get(), 0, memory.bytes});
  array->keep(nb::capsule(new HostMemory(memory), [](void* p) noexcept { delete static_cast<HostMemory*>(p); }));
  return array;
}

// Releases the memory of another package, which may run Python code.
void delete_producer(void* array) noexcept {
  const Call inside;
  delete static_cast<nb::ndarray<nb::ro>*>(array);
}

}  // namespace

nb::object import_dlpack(const Environment& env, nb::handle value, const std::string& subject, bool may_copy) {
  bool read_only = false;
  nb::ndarray<> writable;
  nb::ndarray<nb::ro> readable;
  if (!nb::try_cast<nb::ndarray<>>(value, writable)) {
    read_only = true;
    if (!nb::try_cast<nb::ndarray<nb::ro>>(value, readable)) refuse_import(value, subject);
  } else {
    readable = nb::ndarray<nb::ro>(writable);
  }
  const bp_dtype_t dtype = dtype_of_dlpack(readable.dtype());
  if (dtype == BP_DTYPE_UNDEFINED)
    throw nb::type_error((subject + ": ONNX has no data type for elements of " + std::to_string(readable.dtype().bits) +
                          " bits and DLPack's type code " + std::to_string(readable.dtype().code))
                             .c_str());
  check_rank(readable.ndim(), subject);
  std::vector<int64_t> extents(readable.shape_ptr(), readable.shape_ptr() + readable.ndim());
  if (std::ranges::any_of(extents, [](int64_t extent) { return extent < 0; }))
    throw std::invalid_argument(subject + ": an extent is negative");
  const auto bytes = view::dense_bytes(dtype, extents.data(), static_cast<uint32_t>(extents.size()));
  if (!bytes) throw std::invalid_argument(subject + ": its extents are too large for memory");
  const int type = readable.device_type();
  const bool on_host = type == nb::device::cpu::value;
  if (const std::string why = why_not_in_place(readable, dtype, extents); !why.empty()) {
    if (!may_copy || !on_host || is_packed(dtype))
      throw std::invalid_argument(subject + ": " + why + ": make a contiguous copy of it, and pass that");
    return nb::cast(dense_copy(env, readable, dtype, std::move(extents)).release(), nb::rv_policy::take_ownership);
  }
  const uint32_t flags = read_only ? BP_BUFFER_READ_ONLY : 0;
  if (on_host) {
    void* data = readable.data_handle();
    const bp_buffer_t buffer{0, 0, flags, nullptr, data, readable.byte_offset(), *bytes};
    auto array = std::make_unique<Array>(env, dtype, std::move(extents), buffer);
    // the Array owns the reference to the producer's memory
    array->keep(nb::capsule(new nb::ndarray<nb::ro>(readable), &delete_producer),
                PyCapsule_CheckExact(value.ptr()) ? nb::handle() : value);
    return nb::cast(array.release(), nb::rv_policy::take_ownership);
  }
  Outside out;
  const Device device = find_device(env, type, readable.device_id(), out);
  bp_external_t external{};
  external.size = sizeof external;
  external.kind = out.external;
  external.handle = reinterpret_cast<uint64_t>(readable.data_handle());
  external.offset = readable.byte_offset();
  external.bytes = *bytes;
  external.flags = flags;
  auto held = std::make_unique<SharedObject>(nb::capsule(new nb::ndarray<nb::ro>(readable), &delete_producer));
  external.self = held.get();
  external.release = [](void* self) { delete static_cast<SharedObject*>(self); };
  std::optional<Buffer> buffer;
  {
    const UnlockedScope unlocked;
    buffer.emplace(env.import_memory(device.info.id, external, out.space));
  }
  (void)held.release();  // the import now owns it
  auto array = std::make_unique<Array>(env, dtype, std::move(extents), buffer->abi());
  array->keep(*buffer);
  buffer.reset();  // the Array now has the last reference
  return nb::cast(array.release(), nb::rv_policy::take_ownership);
}

HostMemory allocate_host(uint64_t bytes) {
  constexpr uint64_t kAlignment = 64;
  const uint64_t rounded = bytes / kAlignment * kAlignment + kAlignment;
  char* memory = static_cast<char*>(std::aligned_alloc(kAlignment, rounded));
  if (memory == nullptr)
    throw Error(BP_RESOURCE_EXHAUSTED, "host memory is exhausted: cannot allocate " + std::to_string(bytes) + " bytes");
  return {std::shared_ptr<char>(memory, std::free), bytes};
}

nb::object numpy_of(bp_dtype_t dtype, const int64_t* extents, uint32_t rank, void* data, nb::handle owner,
                    bool read_only) {
  size_t shape[BP_MAX_RANK];
  std::copy_n(extents, rank, shape);
  nb::dlpack::dtype type = dlpack_dtype(dtype);
  // Types that NumPy lacks are passed as unsigned integers of at least 8 bits.
  const bool foreign = type.code > static_cast<uint8_t>(nb::dlpack::dtype_code::Bool) ||
                       type.code == static_cast<uint8_t>(nb::dlpack::dtype_code::Bfloat) || type.bits < 8;
  if (type.code == static_cast<uint8_t>(nb::dlpack::dtype_code::Complex)) {
    // passed unchanged, because NumPy has complex types
  } else if (foreign) {
    type.code = static_cast<uint8_t>(nb::dlpack::dtype_code::UInt);
    type.bits = std::max<uint8_t>(type.bits, 8);
  }
  nb::object array = read_only ? nb::cast(nb::ndarray<nb::numpy, nb::ro>(data, rank, shape, owner, nullptr, type))
                               : nb::cast(nb::ndarray<nb::numpy>(data, rank, shape, owner, nullptr, type));
  return foreign ? nb::object(array.attr("view")(numpy_dtype(dtype))) : array;
}

nb::object adopt_host(HostMemory memory, bp_dtype_t dtype, const int64_t* extents, uint32_t rank) {
  char* data = memory.data.get();
  const nb::capsule owner(new HostMemory(std::move(memory)),
                          [](void* p) noexcept { delete static_cast<HostMemory*>(p); });
  return numpy_of(dtype, extents, rank, data, owner, false);
}

nb::object copy_to_numpy(const Environment& env, const bp_tensor_t& tensor) {
  if (tensor.buffer.memory != nullptr && tensor.buffer.bytes != 0) {
    const HostMemory memory = allocate_host(tensor.buffer.bytes);
    bp_tensor_t host = tensor;
    host.buffer = bp_buffer_t{0, 0, 0, nullptr, memory.data.get(), 0, memory.bytes};
    {
      const UnlockedScope unlocked;
      env.copy(tensor.buffer, host.buffer, memory.bytes);
    }
    if (tensor.dtype == BP_DTYPE_STRING || is_packed(tensor.dtype)) return copy_to_numpy(env, host);
    return adopt_host(memory, tensor.dtype, tensor.extents, tensor.rank);
  }
  const char* data = static_cast<const char*>(tensor.buffer.address) + tensor.buffer.offset;
  if (tensor.dtype == BP_DTYPE_STRING) {
    nb::list elements;
    for (const std::string& text : Tensor::copy(tensor).strings()) elements.append(text_of(text));
    nb::list shape;
    for (uint32_t i = 0; i < tensor.rank; ++i) shape.append(tensor.extents[i]);
    nb::object array = imported("numpy", "empty")(nb::len(elements), "O");
    array[nb::slice(nb::none(), nb::none(), nb::none())] = elements;
    return array.attr("reshape")(nb::tuple(shape));
  }
  uint64_t count = 1;
  for (uint32_t i = 0; i < tensor.rank; ++i) count *= static_cast<uint64_t>(tensor.extents[i]);
  if (is_packed(tensor.dtype)) {
    const HostMemory memory = allocate_host(count);
    unpack(tensor.dtype, reinterpret_cast<const uint8_t*>(data), count, reinterpret_cast<uint8_t*>(memory.data.get()));
    return adopt_host(memory, tensor.dtype, tensor.extents, tensor.rank);
  }
  const HostMemory memory = allocate_host(count * view::dtype_bits(tensor.dtype) / 8);
  if (memory.bytes != 0) {
    const UnlockedScope unlocked;
    std::memcpy(memory.data.get(), data, memory.bytes);
  }
  return adopt_host(memory, tensor.dtype, tensor.extents, tensor.rank);
}

namespace {

// NumPy's protocol: `copy` is None if a copy may be made, and false if none may.
nb::object as_array(const Array& self, nb::handle dtype, nb::handle copy) {
  const bool is_never = !copy.is_none() && !nb::cast<bool>(copy);
  const auto check = [&](bool is_view) {
    if (is_never && !is_view)
      throw nb::value_error("this array cannot become a NumPy array of that type without a copy: leave out copy=False");
  };
  check(self.is_viewable());
  const nb::object array = self.numpy(!copy.is_none() && !is_never);
  if (dtype.is_none()) return array;
  const nb::object converted = array.attr("astype")(dtype, nb::arg("copy") = false);
  check(converted.is(array));
  return converted;
}

}  // namespace

void add_array(nb::module_& module) {
  Class<Array>(module, "Array", nb::is_weak_referenceable(), nb::type_slots(Collected<Array>::kSlots),
               "A dense tensor in memory of the loader, of a device, or of another package through DLPack.\n\n"
               "On the host, `numpy()`, `numpy.asarray()` and DLPack see the memory itself; on a device DLPack\n"
               "does, and `numpy()` copies.")
      .def_prop_ro("shape", &shape_of, nb::sig("def shape(self) -> tuple[int, ...]"), "The extents.")
      .def_prop_ro(
          "dtype", [](const Array& self) { return dtype_name(self.dtype()); },
          "The element type's name: 'float32', 'bfloat16', 'string'.")
      .def_prop_ro("device", &device_name, "The device's name, or 'host'.")
      .def_prop_ro(
          "nbytes", [](const Array& self) { return self.bytes(); }, "The size in bytes.")
      .def_prop_ro(
          "address",
          [](const Array& self) { return reinterpret_cast<uint64_t>(self.buffer().address) + self.buffer().offset; },
          "The address of the first element; 0 on devices without addresses.")
      .def("numpy", &Array::numpy, nb::kw_only(), nb::arg("copy") = false,
           nb::sig("def numpy(self, *, copy: bool = False) -> NDArray[Any]"),
           "A NumPy array: a view of this memory if it is on the host, unless `copy`; otherwise a copy on the host.\n"
           "Strings and elements of less than 8 bits are always copied.")
      .def("__array__", &as_array, nb::arg("dtype").none() = nb::none(), nb::arg("copy").none() = nb::none(),
           nb::sig("def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]"))
      .def("__dlpack__", &Array::dlpack,
           nb::sig("def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, "
                   "dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> CapsuleType"),
           "For `from_dlpack` of other packages: no copy is made, except on the host with `copy=True`, or if\n"
           "`dl_device` requests a device's memory on the host.")
      .def("__dlpack_device__", &Array::dlpack_device, nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def("__repr__", &describe);
}

}  // namespace backplane::python
