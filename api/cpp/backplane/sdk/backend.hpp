// SPDX-License-Identifier: Apache-2.0
// The classes that a vendor derives from. Four are required; each creates the next one:
//   Backend → Device → Program → Instance
// Methods that are not noexcept may throw: the SDK converts exceptions to statuses. The marks of a slot in plugin.h
// ([thread-safe], [one at a time]) also hold for its method. A method marked "slot" becomes a slot of the ABI only if
// it is overridden. Otherwise the slot stays NULL, with the meaning documented in plugin.h. Memory, Sync, Cache and
// Refit are optional additional bases of a Device or Program. Overrides must be public: the SDK calls them, and detects
// them by expressions such as &MyDevice::health.
//
// Structs that methods receive, and the structs that those point to, are copies made by the SDK: all fields can be
// read, and fields that an older host lacks are zero. They live until the method returns. Two structs are the host's
// own, and may be shorter than this build's: bp_backend_create_t.host, which the class Host wraps, and the graph with
// all that it contains. Read their fields in place, check BP_HAS before fields that ABI 1.0 lacks, and do not copy them
// whole.
#pragma once

#include <array>
#include <atomic>

#include "backplane/sdk/coverage.hpp"
#include "backplane/sdk/once.hpp"

namespace backplane::sdk {

class Device;
class Program;
class Instance;

// The plugin's description in bp_plugin_query. Texts must be static.
struct About {
  std::string_view id;  // lower case, digits, '_'; the same as in the manifest and the file name
  std::string_view name;
  std::string_view vendor;
  std::string_view release;
  std::string_view build_id = {};
};

// The plugin's root object. A concrete backend also has:
//   static constexpr sdk::About kAbout{…};
//   static constexpr bp_opset_t kOpsets[] = {…};      the newest supported opset of each domain
//   using Device = …; using Program = …; using Instance = …;   its classes; the methods they override become slots
//   explicit MyBackend(const bp_backend_create_t& how) : sdk::Backend(how) {}
class Backend : public Object {
 public:
  explicit Backend(const bp_backend_create_t& how) : host_(how.host), directory_(text(how.directory)) {}

  const Host& host() const { return host_; }
  const std::string& directory() const { return directory_; }  // the folder of the plugin's file

  // May start the driver. If there are no devices, sets `why_none` to a message with the reason. The SDK calls it from
  // one thread at a time until it has returned a number once, and calls `device_info` and `open` only afterwards.
  virtual uint32_t device_count(std::string& why_none) = 0;
  // Texts must live as long as the backend. The SDK fills in `size` and `index`.
  virtual bp_device_info_t device_info(uint32_t index) = 0;
  virtual std::unique_ptr<Device> open(uint32_t index, const Options& options, const bp_device_open_t& how) = 0;
  // slot: returns an extension table by name and version, or NULL.
  virtual const void* extension(std::string_view, uint32_t) { return nullptr; }

  // The number of devices, and why there are none. Thread-safe, because the slot `info` is. Called by the SDK.
  uint32_t counted_devices(std::string& why_none) {
    counted_([this] { count_ = device_count(why_none_); });
    why_none = why_none_;
    return count_;
  }

 private:
  Host host_;
  std::string directory_;
  Once counted_;
  uint32_t count_ = 0;
  std::string why_none_;
};

// The island to compile, and its settings.
class Compile {
 public:
  Compile(const Host& host, const bp_compile_t& raw)
      : host_(host), raw_(raw), graph_(&checked(raw.graph, "what.graph")) {}

  const bp_compile_t& raw() const { return raw_; }
  const Graph& graph() const { return graph_; }  // lives as long as the program; in `review`, until it returns
  uint32_t compute_types() const { return raw_.compute_types; }  // BP_COMPUTE_* that are allowed
  bool refit() const { return (raw_.flags & BP_COMPILE_REFIT) != 0; }
  Options options() const { return {raw_.options, raw_.option_count, raw_.option_stride}; }
  void check_cancelled() const { host_.check(raw_.cancel); }
  // The bytes of a weight, at any alignment. Valid as long as the program; in `review`, until it returns.
  const void* weight(uint32_t index) const {
    const void* data = bp_graph_weight(raw_.graph, index)->data;
    if (data != nullptr) return data;
    Detail detail;
    detail.check(raw_.graph->api->weight_map(raw_.graph, index, &data, detail.get()), "the weight cannot be read");
    return data;
  }
  // Call this once the backend has its own copy of the weight. The host may then release the pages.
  void weight_consumed(uint32_t index) const { raw_.graph->api->weight_consumed(raw_.graph, index); }
  void progress(uint32_t done, uint32_t total) const {
    if (raw_.progress != nullptr) raw_.progress(raw_.progress_self, done, total);
  }

 private:
  const Host& host_;
  const bp_compile_t& raw_;
  Graph graph_;
};

// Receives the types of a node's outputs.
class Types {
 public:
  explicit Types(const bp_infer_sink_t& sink) : sink_(sink) {}
  void output(uint32_t slot, bp_dtype_t dtype, const std::vector<bp_dim_t>& dims) const {
    sink_.output(sink_.self, slot, dtype, static_cast<int32_t>(dims.size()), dims.data());
  }
  void output_of_unknown_rank(uint32_t slot, bp_dtype_t dtype) const {
    sink_.output(sink_.self, slot, dtype, -1, nullptr);
  }

 private:
  const bp_infer_sink_t& sink_;
};

class Device : public Object {
 public:
  explicit Device(const Backend& backend) : host_(backend.host()) {}
  const Host& host() const { return host_; }
  // The host's id of the device, for trace spans.
  uint64_t id() const { return id_; }
  void set_id(uint64_t id) { id_ = id; }  // called by the SDK

  // Reports a verdict on every queried node. Usually: table.answer(coverage).
  virtual void cover(Coverage& coverage) = 0;
  virtual std::unique_ptr<Program> compile(const Compile& what) = 0;
  // slot: throws if the device is lost.
  virtual void health() {}
  // slot: fills `out` for a proposed island, and sets `why` if it is not accepted. An accepted island must compile.
  virtual void review(const Compile&, bp_review_t& /*out*/, std::string& /*why*/) {}
  // slot: sets the output types of a node of a domain that the host does not know.
  virtual void infer(const Node&, const Types&) {}
  // slot: this device's newest opsets and IR version, if they differ from the backend's. The SDK fills in `size`. The
  // arrays must live as long as the device.
  virtual bp_opsets_t opsets() { return {}; }
  // slot: the device hangs and was abandoned. Release threads that wait for it, but keep memory that it may still
  // access.
  virtual void abandon() noexcept {}

 private:
  const Host& host_;
  uint64_t id_ = 0;
};

// A compiled island. Immutable, and shared by threads.
class Program : public Object {
 public:
  Program(const Device& device, const Compile& what) : device_(device), graph_(what.graph()) {}
  const Device& device() const { return device_; }
  const Host& host() const { return device_.host(); }
  const Graph& graph() const { return graph_; }

  virtual std::unique_ptr<Instance> instance() const = 0;
  // Describes scratch memory, in-place pairs, and when output shapes become known. The SDK fills in `size`,
  // `input_count` and `output_count`.
  virtual bp_program_info_t info() const { return {}; }
  // slot: sets the extents of all outputs for these inputs, whose extents the SDK has checked against the graph. Leave
  // an output's rank at BP_NONE if it is known only during the run.
  virtual void output_extents(const std::vector<bp_tensor_t>& /*inputs*/, std::vector<bp_shape_t>& /*outputs*/) const {}

 private:
  const Device& device_;
  Graph graph_;
};

// New extents for some slots.
class Slots {
 public:
  Slots(const bp_slot_extents_t* slots, uint32_t count, uint32_t stride)
      : slots_(slots), count_(count), stride_(stride) {
    check_array(slots, count, stride, "slots");
  }
  uint32_t size() const { return count_; }
  bp_slot_extents_t operator[](uint32_t i) const { return element(slots_, i, stride_); }

 private:
  const bp_slot_extents_t* slots_;
  uint32_t count_;
  uint32_t stride_;
};

// A program's state for one run at a time. It keeps bindings and checks them against the graph, so a backend only has
// to implement `run`.
class Instance : public Object {
 public:
  explicit Instance(const Program& program)
      : program_(program),
        host_(program.host()),
        inputs_(program.graph().input_count()),
        outputs_(program.graph().output_count()) {
    const bp_program_info_t info = program.info();
    wants_scratch_ = info.scratch_bytes != 0;
    is_data_dependent_ = info.shapes == BP_SHAPES_DATA_DEPENDENT;
  }
  const Program& program() const { return program_; }
  const Host& host() const { return host_; }

  // Executes a run and returns when it is done. Before the call, the waits have ended and all slots are bound, except
  // outputs for which `may_request_memory` returns true.
  virtual void run(const bp_run_t& run) = 0;

  // Prepares a run before its waits have ended, so inputs may not have their values yet. Slots are bound as for `run`.
  virtual void plan(const bp_run_t&) {}

  // Implements the slot `run` if overridden, as asynchronous devices do: wait for the points and start the work;
  // when the work ends, call `done` and advance the signals. If the override throws, it must not have called `done` or
  // advanced a signal, because the host then does both. This version, which an override may call, calls `plan`,
  // waits for host points, calls the method `run` and then `done`, and advances host points.
  virtual void submit(const bp_run_t& what) {
    do_work(what);
    report_end(what);
  }

  // Implements the slot `run` if `submit` is not overridden: one run at a time, without streams and native points.
  void run_synchronously(const bp_run_t& what) {
    {
      const Running running(running_);
      check_synchronous(what);
      do_work(what);
    }
    report_end(what);  // not marked as running: `done` may wake a thread that starts the next run
  }

  virtual void bind(const bp_binding_t& binding) {
    Binding& slot = find(binding.slot);
    const Value v = value(binding.slot);
    const bool is_tensor = !v || v.is_tensor();
    if (is_tensor ? binding.container != nullptr : binding.container == nullptr || binding.tensor != nullptr) {
      throw Error(BP_TYPE_MISMATCH,
                  where(binding.slot) + (is_tensor ? " is a tensor; bind a tensor to it, not a container"
                                                   : " is a container; bind a container to it, not a tensor"));
    }
    if (is_tensor) {
      const bp_tensor_t tensor = read(binding.tensor, "binding.tensor");
      check_tensor(tensor, "binding.tensor");
      check(binding.slot, tensor.dtype, tensor.rank, tensor.extents, capacity(tensor));
      if (!reaches(tensor)) {
        throw Error(BP_UNSUPPORTED, where(binding.slot) + " was bound to memory of space " +
                                        std::to_string(tensor.buffer.space) + " in " + layout_name(tensor.layout) +
                                        ", which this device does not support; bind dense memory of space 0 or of a "
                                        "space with BP_SPACE_DEVICE");
      }
      slot.tensor = tensor;
      slot.tensor.strides = nullptr;
      set_extents(slot, tensor.rank, tensor.extents);
      if (tensor.layout == BP_LAYOUT_STRIDED) {
        std::copy_n(tensor.strides, tensor.rank, slot.strides.begin());
        slot.tensor.strides = slot.strides.data();
      }
    } else {
      check_container(binding);
    }
    slot.container = binding.container;
    slot.bound = true;
  }

  // Implements the slot `extents`: sets the extents of all given slots, or of none if it throws.
  virtual void extents(const Slots& slots) {
    for (uint32_t i = 0; i < slots.size(); ++i) {
      const bp_slot_extents_t given = slots[i];
      const Binding& slot = find(given.slot);
      if (!slot.bound) throw Error(BP_BAD_STATE, where(given.slot) + " is not bound; call bind before extents");
      if (slot.container != nullptr)
        throw Error(BP_TYPE_MISMATCH, where(given.slot) + " is a container; it has no extents");
      check(given.slot, slot.tensor.dtype, given.rank, given.extents, capacity(slot.tensor));
      if (slot.tensor.layout == BP_LAYOUT_DENSE) continue;
      bp_tensor_t changed = slot.tensor;  // with the strides that were bound
      changed.extents = given.extents;
      if (given.rank != changed.rank || !reaches(changed))
        throw Error(BP_TYPE_MISMATCH, where(given.slot) + " has " + layout_name(changed.layout) +
                                          ", which does not fit the new extents; bind it again");
    }
    for (uint32_t i = 0; i < slots.size(); ++i) {
      const bp_slot_extents_t given = slots[i];
      set_extents(find(given.slot), given.rank, given.extents);
    }
  }

 protected:
  // The bound tensors, with the extents of this run.
  const bp_tensor_t& input(uint32_t i) const { return inputs_[i].tensor; }
  const bp_tensor_t& output(uint32_t i) const { return outputs_[i].tensor; }
  const bp_tensor_t& scratch() const { return scratch_.tensor; }
  bp_container_t* input_container(uint32_t i) const { return inputs_[i].container; }
  bp_container_t* output_container(uint32_t i) const { return outputs_[i].container; }
  bool is_output_bound(uint32_t i) const { return outputs_[i].bound; }
  // The first byte of a tensor in host memory; NULL if no host address is bound.
  static void* address(const bp_tensor_t& tensor) {
    return tensor.buffer.address == nullptr ? nullptr
                                            : static_cast<char*>(tensor.buffer.address) + tensor.buffer.offset;
  }

  // Bytes of memory bound for a tensor; 0 if no memory is bound.
  static uint64_t capacity(const bp_tensor_t& tensor) {
    return tensor.buffer.memory == nullptr && tensor.buffer.address == nullptr ? 0 : tensor.buffer.bytes;
  }
  // The number of elements of a tensor. Its memory may have room for more.
  static uint64_t count(const bp_tensor_t& tensor) {
    uint64_t n = 1;
    for (uint32_t i = 0; i < tensor.rank; ++i) n *= static_cast<uint64_t>(tensor.extents[i]);
    return n;
  }

  // Whether memory of this space and layout may be bound. By default, only dense host memory may.
  virtual bool reaches(const bp_tensor_t& tensor) const {
    return tensor.layout == BP_LAYOUT_DENSE && tensor.buffer.memory == nullptr;
  }
  // Whether an output may stay unbound because `run` requests its memory from bp_run_t.output.
  virtual bool may_request_memory(uint32_t /*output*/, const bp_run_t& run) const {
    return is_data_dependent_ && run.output != nullptr;
  }
  // Throws if the type or extents contradict the slot's declaration, or if the tensor needs more than `capacity` bytes.
  // Does not measure strings, because their size is known only during the run.
  void check(uint32_t slot, bp_dtype_t dtype, uint32_t rank, const int64_t* extents, uint64_t capacity) const {
    if (rank > BP_MAX_RANK)
      throw Error(BP_INVALID_ARGUMENT, where(slot) + " was given rank " + std::to_string(rank) +
                                           "; tensors have at most " + std::to_string(BP_MAX_RANK) + " dimensions");
    if (rank != 0 && extents == nullptr)
      throw Error(BP_INVALID_ARGUMENT,
                  where(slot) + " was given rank " + std::to_string(rank) + ", but its extents are NULL");
    if (const Value v = value(slot)) {
      if (v.dtype() != dtype) {
        throw Error(BP_TYPE_MISMATCH, where(slot) + " is " + std::string(view::dtype_name(v.dtype())) +
                                          " but was given " + std::string(view::dtype_name(dtype)));
      }
      if (v.rank() >= 0 && static_cast<uint32_t>(v.rank()) != rank) {
        throw Error(BP_TYPE_MISMATCH,
                    where(slot) + " has rank " + std::to_string(v.rank()) + " but was given " + std::to_string(rank));
      }
      for (int32_t i = 0; i < v.rank(); ++i) {
        const int64_t declared = v.extent(static_cast<uint32_t>(i));
        if (declared < 0 || declared == extents[i]) continue;
        throw Error(BP_TYPE_MISMATCH, where(slot) + " has extent " + std::to_string(declared) + " in dimension " +
                                          std::to_string(i) + " but was given " + std::to_string(extents[i]));
      }
    }
    const bool is_text = dtype == BP_DTYPE_STRING;
    int64_t bits = is_text ? 64 : view::dtype_bits(dtype);
    bool is_empty = false, is_addressable = true;
    for (uint32_t i = 0; i < rank; ++i) {
      if (extents[i] < 0)
        throw Error(BP_TYPE_MISMATCH, where(slot) + " was given extent " + std::to_string(extents[i]) +
                                          " in dimension " + std::to_string(i) + "; it must be 0 or more");
      is_empty = is_empty || extents[i] == 0;
      is_addressable = is_addressable && !__builtin_mul_overflow(bits, std::max(extents[i], int64_t{1}), &bits);
    }
    if (!is_addressable) throw Error(BP_TYPE_MISMATCH, where(slot) + " was given more elements than can be addressed");
    const uint64_t bytes = is_empty || is_text ? 0 : static_cast<uint64_t>(bits) / 8 + (bits % 8 != 0);
    if (bytes > capacity) {
      throw Error(BP_BUFFER_TOO_SMALL,
                  where(slot) + " needs " + std::to_string(bytes) + " bytes but was given " + std::to_string(capacity));
    }
  }
  // The slot's name in messages, for example "input 'x'".
  std::string where(uint32_t slot) const {
    if (slot == BP_SLOT_SCRATCH) return "the scratch memory";
    return (slot < BP_SLOT_OUTPUT ? "input '" : "output '") + std::string(value(slot).name()) + "'";
  }

 private:
  struct Binding {
    bp_tensor_t tensor{};
    std::array<int64_t, BP_MAX_RANK> extents{};
    std::array<int64_t, BP_MAX_RANK> strides{};
    bp_container_t* container = nullptr;
    bool bound = false;
  };

  // Marks the instance as running during this object's lifetime.
  class Running {
   public:
    explicit Running(std::atomic<bool>& flag) : flag_(flag) {
      if (flag.exchange(true, std::memory_order_acquire))
        throw Error(BP_BUSY, "this instance still has a run in flight: wait until it ends, or use another instance");
    }
    ~Running() { flag_.store(false, std::memory_order_release); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    std::atomic<bool>& flag_;
  };

  static std::string layout_name(uint32_t layout) {
    if (layout == BP_LAYOUT_DENSE) return "the dense layout";
    if (layout == BP_LAYOUT_STRIDED) return "the strided layout";
    return "layout " + std::to_string(layout);
  }
  static void check_synchronous(const bp_run_t& what) {
    if (what.stream != nullptr)
      throw Error(BP_UNSUPPORTED, "this device is synchronous and has no streams; leave bp_run_t.stream NULL");
    for (uint32_t i = 0; i < what.wait_count + what.signal_count; ++i) {
      const bp_point_t& point = i < what.wait_count ? what.waits[i] : what.signals[i - what.wait_count];
      if (bp_point_host(&point) == nullptr)
        throw Error(BP_UNSUPPORTED, "this device is synchronous and has no native points; use host points in the run");
    }
  }
  void do_work(const bp_run_t& what) {
    if (!all_bound_) check_bound(what);
    plan(what);
    for (uint32_t i = 0; i < what.wait_count; ++i) host().wait(what.waits[i], what.deadline, what.cancel);
    host().check(what.cancel, what.deadline);
    run(what);
  }
  void report_end(const bp_run_t& what) const noexcept {
    if (what.done != nullptr) what.done(what.self, BP_OK, nullptr);
    for (uint32_t i = 0; i < what.signal_count; ++i) host().signal(what.signals[i]);
  }

  Binding& find(uint32_t slot) {
    if (slot == BP_SLOT_SCRATCH && wants_scratch_) return scratch_;
    std::vector<Binding>& side = slot < BP_SLOT_OUTPUT ? inputs_ : outputs_;
    const uint32_t i = slot % BP_SLOT_OUTPUT;
    if (slot >= BP_SLOT_SCRATCH || i >= side.size()) {
      throw Error(BP_INVALID_ARGUMENT, "there is no slot " + std::to_string(slot) + ": the island has " +
                                           std::to_string(inputs_.size()) + " inputs, " +
                                           std::to_string(outputs_.size()) + " outputs and " +
                                           (wants_scratch_ ? "scratch memory" : "no scratch memory"));
    }
    return side[i];
  }
  // The graph value of a slot; an empty Value for scratch memory.
  Value value(uint32_t slot) const {
    if (slot == BP_SLOT_SCRATCH) return {};
    return slot < BP_SLOT_OUTPUT ? program_.graph().input(slot) : program_.graph().output(slot - BP_SLOT_OUTPUT);
  }
  static void set_extents(Binding& slot, uint32_t rank, const int64_t* extents) {
    std::copy_n(extents, rank, slot.extents.begin());
    slot.tensor.rank = rank;
    slot.tensor.extents = slot.extents.data();
  }
  // Throws if a slot that the run needs is not bound. Slots are never unbound, so the check is not repeated once all
  // are bound.
  void check_bound(const bp_run_t& run) {
    for (uint32_t i = 0; i < inputs_.size(); ++i) check_bound(i, inputs_[i]);
    if (wants_scratch_) check_bound(BP_SLOT_SCRATCH, scratch_);
    bool all = true;
    for (uint32_t i = 0; i < outputs_.size(); ++i) {
      all = all && outputs_[i].bound;
      if (!may_request_memory(i, run)) check_bound(BP_SLOT_OUTPUT + i, outputs_[i]);
    }
    all_bound_ = all;
  }
  // Throws if the host has no containers. Also throws if the container is bound both to an input and to an output,
  // because outputs are written while inputs are still being read.
  void check_container(const bp_binding_t& binding) const {
    if (host().containers() == nullptr)
      throw Error(BP_UNSUPPORTED, where(binding.slot) + " is a container, but the host has no container functions");
    for (const Binding& other : binding.slot < BP_SLOT_OUTPUT ? outputs_ : inputs_) {
      if (other.container == binding.container)
        throw Error(BP_INVALID_ARGUMENT,
                    where(binding.slot) + " was given a container that is bound both as an input and as an output");
    }
  }
  void check_bound(uint32_t slot, const Binding& binding) const {
    if (!binding.bound) throw Error(BP_BAD_STATE, where(slot) + " is not bound; call bind before run");
  }

  const Program& program_;
  const Host& host_;
  std::vector<Binding> inputs_;
  std::vector<Binding> outputs_;
  Binding scratch_;
  bool wants_scratch_ = false, is_data_dependent_ = false;
  bool all_bound_ = false;
  std::atomic<bool> running_{false};
};

// ---- optional bases ------------------------------------------------------------------------------------------------

// A Device with its own memory.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual bp_space_t space(uint32_t index) = 0;  // throws BP_NOT_FOUND if there is none
  virtual bp_buffer_t allocate(const bp_allocate_t& what) = 0;
  virtual void release(const bp_buffer_t& buffer, bp_stream_t* stream) noexcept = 0;
  virtual void copy(const bp_copy_t& what) = 0;
  virtual void* map(const bp_buffer_t&, uint32_t /*access*/) { return nullptr; }              // slot
  virtual void unmap(const bp_buffer_t&, void* /*pointer*/) {}                                // slot if `map` is
  virtual void flush(const bp_buffer_t&, uint32_t /*access*/) {}                              // slot
  virtual void fill(const bp_fill_t&) {}                                                      // slot
  virtual bp_buffer_t import_memory(uint32_t /*space*/, const bp_external_t&) { return {}; }  // slot
  virtual bp_external_t export_memory(const bp_buffer_t&, uint32_t /*kind*/) { return {}; }   // slot
};

// A queue of work. A bp_stream_t* points to a Stream.
class Stream : public Object {
 public:
  // Waits until all work in the stream has ended. `deadline` is in ns on the monotonic clock. Throws BP_TIMED_OUT at
  // the deadline, and the failures of runs without `done`.
  virtual void wait(uint64_t deadline) = 0;
  virtual bp_native_t native() { throw Error(BP_UNSUPPORTED, "this device's streams have no native handle"); }
};

// A timeline semaphore of the device. A bp_native_semaphore_t* points to a NativeSemaphore. Thread-safe.
class NativeSemaphore : public Object {
 public:
  // Waits for `value`. Returns false if the deadline passed first. `deadline` is in ns on the monotonic clock; 0 checks
  // without waiting.
  virtual bool wait(uint64_t value, uint64_t deadline) = 0;
  // Like `wait` above. If `wakes()` returns true, this also returns false once `stop` is set: to interrupt the wait,
  // another thread sets `stop`, then calls `wake`. Devices whose waits cannot be interrupted need not override it.
  virtual bool wait(uint64_t value, uint64_t deadline, const std::atomic<bool>& /*stop*/) {
    return wait(value, deadline);
  }
  virtual bool wakes() const { return false; }
  virtual void wake() {}
  // Advances the semaphore to `value`. If `failure` is not NULL, the run that was to signal `value` failed with it:
  // waits still succeed, and `failure(value)` returns the error.
  virtual void signal(uint64_t value, const Error* failure) = 0;
  // Whether the semaphore was imported from an event: only the event advances it, and signals are refused.
  virtual bool follows_event() const { return false; }
  virtual uint64_t value() = 0;
  // The failure with which `value` was signaled, or nullopt. Runs that waited for the value report the failure through
  // `done`.
  virtual std::optional<Error> failure(uint64_t value) = 0;
};

inline Stream* stream_of(bp_stream_t* handle) {
  return reinterpret_cast<Stream*>(handle);
}
inline NativeSemaphore* semaphore_of(bp_native_semaphore_t* handle) {
  return reinterpret_cast<NativeSemaphore*>(handle);
}

// A Device with streams. In both descriptors, `native` is the framework's own object, or NULL. A device whose
// semaphores have native handles declares a static function in addition, which throws BP_UNSUPPORTED for kinds that it
// lacks:
//   static bp_native_t export_semaphore(NativeSemaphore& semaphore, const bp_semaphore_export_t& what);  // slot
class Sync {
 public:
  virtual ~Sync() = default;
  virtual std::unique_ptr<Stream> stream(const bp_stream_create_t& how) = 0;
  virtual std::unique_ptr<NativeSemaphore> semaphore(const bp_semaphore_create_t&) { return nullptr; }  // slot
};

// A Device whose programs can be stored. `blob` is untrusted; `deserialize` may keep it as long as the program.
class Cache {
 public:
  virtual ~Cache() = default;
  virtual std::string serialize(const Program& program) = 0;
  virtual uint32_t validate(std::string_view blob, std::string& why) = 0;  // BP_CACHE_*
  virtual std::unique_ptr<Program> deserialize(const Compile& what, std::string_view blob) = 0;
};

// A Program whose weights can be replaced.
class Refit {
 public:
  virtual ~Refit() = default;
  // Replaces all of `weights`, or none of them if it throws.
  virtual void refit(const std::vector<bp_refit_weight_t>& weights) = 0;
  virtual void read_weight(uint32_t weight, bp_tensor_t& tensor) const = 0;
};

}  // namespace backplane::sdk
