// SPDX-License-Identifier: Apache-2.0
// Instances: bindings and runs. A tensor in the loader's shared memory is bound in place. Any other tensor has a copy
// in shared memory; inputs are copied there before a run, and outputs are copied back after it.
#include "isolate/proxy_instance.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include "base/abi.h"
#include "base/counted.h"
#include "base/dtype.h"
#include "base/file_limit.h"
#include "host/shared_memory.h"
#include "isolate/answers.h"
#include "isolate/container_wire.h"
#include "isolate/proxy_call.h"
#include "isolate/proxy_program.h"
#include "isolate/staging.h"

namespace backplane::isolate {
namespace {

struct Slot {
  bool bound = false;
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
  uint32_t layout = BP_LAYOUT_DENSE;
  uint32_t flags = 0;  // BP_BUFFER_*
  std::vector<int64_t> extents, strides;
  char* address = nullptr;  // the caller's memory
  uint64_t capacity = 0;
  bool staged = false;  // the tensor has a copy in `piece`
  Piece piece;
  bp_container_t* container = nullptr;
};

// An output whose size was not known before the run, and whose memory is not shared. The run writes `mapping`, whose
// bytes are then copied to `address`.
struct Found {
  uint32_t slot;
  char* address;
  uint64_t bytes;
  Mapping mapping;
};

// The number of bytes that a tensor's elements occupy, at most `capacity`; `capacity` for strided tensors. `data`
// points to the first element.
uint64_t used_bytes(const Slot& slot, const char* data) {
  const auto rank = static_cast<uint32_t>(slot.extents.size());
  uint64_t bytes = slot.capacity;
  if (slot.dtype == BP_DTYPE_STRING) {
    const uint64_t count = dense_elements(rank, slot.extents.data());
    if (count < slot.capacity / 8) {
      int64_t last;
      std::memcpy(&last, data + count * 8, sizeof last);
      if (last >= 0) bytes = (count + 1) * 8 + static_cast<uint64_t>(last);
    }
  } else if (slot.layout == BP_LAYOUT_DENSE) {
    bytes = dense_bytes(slot.dtype, rank, slot.extents.data());
  }
  return std::min(bytes, slot.capacity);
}

}  // namespace

// The object to which a bp_instance_t of an isolated plugin points.
class ProxyInstance : public Answers {
 public:
  ProxyInstance(ProxyProgram& program, uint64_t handle)
      : program_(program), handle_(handle), inputs_(program.info.input_count), outputs_(program.info.output_count) {}
  ~ProxyInstance() override;

  Status bind(const bp_binding_t& binding);
  Status extents(const bp_slot_extents_t* slots, uint32_t count, uint32_t stride);
  Status run(const bp_run_t& run);
  Status answer(Operation question, Reader& in, Writer& out, std::vector<Descriptor>& out_files) override;

 private:
  ProxyBackend& backend() const { return program_.backend; }
  Process& process() const { return *program_.remote.process; }
  Result<Slot*> slot(uint32_t number);
  Status send_binding(uint32_t number, const Slot& slot, std::optional<SharedRange> shared);
  Status choose_piece(uint32_t number, const Slot& slot, Slot& next);
  // The number of slots that use the piece of shared memory.
  int64_t users(const Piece& piece) const;
  // Keeps a piece for later copies, unless a slot uses it.
  void recycle(const Piece& piece);
  Status wait_before(const bp_run_t& run) const;
  Status execute(const bp_run_t& run);
  Status execute_with_containers(const bp_run_t& run, const RunNumbers& numbers, const Patience& patience);
  Status span(Reader& in) const;
  Status output(Reader& in, Writer& out, std::vector<Descriptor>& out_files);

  ProxyProgram& program_;
  uint64_t handle_;
  std::vector<Slot> inputs_, outputs_;
  bool has_containers_ = false;
  StagingPool staging_;
  std::atomic<bool> running_{false};
  const bp_run_t* run_ = nullptr;  // the run in progress
  std::vector<Found> found_;
};

ProxyInstance::~ProxyInstance() {
  fenced(nullptr, [&]() -> Status {
    if (!process().alive()) return {};
    Writer request;
    request.put(handle_);
    return process().call(Operation::kDestroyInstance, request.bytes(), {}, backend().short_patience()).take_status();
  });
}

Result<Slot*> ProxyInstance::slot(uint32_t number) {
  std::vector<Slot>& side = number < BP_SLOT_OUTPUT ? inputs_ : outputs_;
  const uint32_t index = number < BP_SLOT_OUTPUT ? number : number - BP_SLOT_OUTPUT;
  if (index >= side.size())
    return Status(BP_INVALID_ARGUMENT, "slot " + std::to_string(number) + " does not exist: the program has " +
                                           counted(inputs_.size(), "input") + " and " +
                                           counted(outputs_.size(), "output"));
  return &side[index];
}

Status ProxyInstance::send_binding(uint32_t number, const Slot& slot, std::optional<SharedRange> shared) {
  Writer request;
  request.put(handle_).put(number).put(slot.dtype).put(slot.layout).put(slot.flags);
  request.array(slot.extents.data(), slot.extents.size()).array(slot.strides.data(), slot.strides.size());
  std::vector<int> files;
  const Descriptor file(shared ? shared->descriptor : -1);
  if (shared) {
    request.put(shared->block).put(shared->offset).put(slot.capacity).put<uint32_t>(0);
    files.push_back(file.get());
  } else if (slot.staged) {
    Staging& block = *slot.piece.staging;
    request.put(block.block).put(slot.piece.offset).put(slot.capacity).put<uint32_t>(1).put(block.bytes);
    if (block.file) files.push_back(block.file.get());
  } else {
    request.put(uint64_t{0}).put(uint64_t{0}).put(slot.capacity).put<uint32_t>(0);
  }
  BP_TRY(process().call(Operation::kBind, request.bytes(), files, backend().long_patience(nullptr)).take_status());
  if (slot.staged) slot.piece.staging->file = Descriptor();
  return {};
}

// Chooses the copy of the caller's memory that `next`, the new binding of `slot`, uses: the slot's own one if no other
// slot uses it, else a new one. If an input and an output are bound to the same memory, for a program that works in
// place, both use the same copy.
Status ProxyInstance::choose_piece(uint32_t number, const Slot& slot, Slot& next) {
  const bool fits = slot.staged && slot.piece.bytes >= next.capacity;
  if (fits && slot.address == next.address) {
    next.piece = slot.piece;
    return {};
  }
  const bool is_input = number < BP_SLOT_OUTPUT;
  std::vector<Slot>& others = is_input ? outputs_ : inputs_;
  const auto twin = std::ranges::find_if(
      others, [&](const Slot& other) { return other.bound && other.staged && other.address == next.address; });
  if (twin != others.end() && twin->piece.bytes >= next.capacity) {
    next.piece = twin->piece;
    return {};
  }
  if (fits && users(slot.piece) == 1) {
    next.piece = slot.piece;
  } else {
    BP_ASSIGN(next.piece, staging_.take(next.capacity));
  }
  if (twin == others.end()) return {};
  Slot moved = *twin;
  moved.piece = next.piece;
  const auto twin_number = static_cast<uint32_t>(twin - others.begin()) + (is_input ? BP_SLOT_OUTPUT : 0);
  BP_TRY(send_binding(twin_number, moved, std::nullopt));
  recycle(std::exchange(twin->piece, next.piece));
  return {};
}

int64_t ProxyInstance::users(const Piece& piece) const {
  const auto uses = [&](const Slot& slot) { return slot.staged && slot.piece == piece; };
  return std::ranges::count_if(inputs_, uses) + std::ranges::count_if(outputs_, uses);
}

void ProxyInstance::recycle(const Piece& piece) {
  if (piece.staging && users(piece) == 0) staging_.give_back(piece);
}

Status ProxyInstance::bind(const bp_binding_t& binding) {
  if (binding.slot == BP_SLOT_SCRATCH)
    return {BP_INVALID_ARGUMENT, "BP_SLOT_SCRATCH is bound, but the program needs no scratch memory"};
  BP_ASSIGN(Slot * slot, this->slot(binding.slot));
  if (binding.container || !binding.tensor) {
    const bool is_input = binding.slot < BP_SLOT_OUTPUT;
    const std::vector<uint32_t>& kinds = is_input ? program_.in_kinds : program_.out_kinds;
    const uint32_t index = is_input ? binding.slot : binding.slot - BP_SLOT_OUTPUT;
    if (!binding.container || index >= kinds.size() || kinds[index] == BP_KIND_TENSOR)
      return {BP_TYPE_MISMATCH, "slot " + std::to_string(binding.slot) +
                                    ": bind a tensor, or a container if its kind is sequence, optional or map"};
    if (!backend().host()->containers) return {BP_UNSUPPORTED, "the host does not support containers"};
    slot->container = binding.container;
    slot->bound = has_containers_ = true;
    return {};
  }
  BP_ASSIGN(const bp_tensor_t tensor, abi::read(binding.tensor, "bp_tensor_t"));
  if (tensor.buffer.memory)
    return {BP_UNSUPPORTED, "device memory cannot be passed to an isolated backend: bind host memory"};
  if (tensor.rank > BP_MAX_RANK)
    return {BP_INVALID_ARGUMENT, "the tensor's rank is " + std::to_string(tensor.rank) + "; at most " +
                                     std::to_string(BP_MAX_RANK) + " is accepted"};
  if (tensor.rank && (!tensor.extents || (tensor.layout == BP_LAYOUT_STRIDED && !tensor.strides)))
    return {BP_INVALID_ARGUMENT,
            std::string("the tensor's ") + (tensor.extents ? "strides are" : "extents are") + " NULL"};
  Slot next;
  next.dtype = tensor.dtype;
  next.layout = tensor.layout;
  next.flags = tensor.buffer.flags;
  next.extents.assign(tensor.extents, tensor.extents + tensor.rank);
  if (tensor.layout == BP_LAYOUT_STRIDED) next.strides.assign(tensor.strides, tensor.strides + tensor.rank);
  next.address = static_cast<char*>(tensor.buffer.address);
  if (next.address) next.address += tensor.buffer.offset;
  next.capacity = tensor.buffer.bytes;
  std::optional<SharedRange> shared;
  if (next.address) shared = find_shared(next.address, next.capacity);
  next.staged = !shared && next.address;
  Status status = next.staged ? choose_piece(binding.slot, *slot, next) : Status();
  if (status.ok()) status = send_binding(binding.slot, next, shared);
  if (!status.ok()) {
    recycle(next.piece);
    return status;
  }
  next.bound = true;
  recycle(std::exchange(*slot, std::move(next)).piece);
  return {};
}

Status ProxyInstance::extents(const bp_slot_extents_t* slots, uint32_t count, uint32_t stride) {
  Writer request;
  request.put(handle_).put<uint64_t>(count);
  for (uint32_t i = 0; i < count; ++i) {
    const bp_slot_extents_t each = abi::element(slots, i, stride);
    BP_TRY(slot(each.slot).take_status());
    if (each.rank > BP_MAX_RANK)
      return {BP_INVALID_ARGUMENT, "slot " + std::to_string(each.slot) + " is given " + std::to_string(each.rank) +
                                       " extents; at most " + std::to_string(BP_MAX_RANK) + " are accepted"};
    request.put(each.slot).array(each.extents, each.rank);
  }
  BP_TRY(process().call(Operation::kExtents, request.bytes(), {}, backend().long_patience(nullptr)).take_status());
  for (uint32_t i = 0; i < count; ++i) {
    const bp_slot_extents_t each = abi::element(slots, i, stride);
    BP_ASSIGN(Slot * known, slot(each.slot));
    known->extents.assign(each.extents, each.extents + each.rank);
  }
  return {};
}

// Waits for host semaphores here, because the process cannot reach them.
Status ProxyInstance::wait_before(const bp_run_t& run) const {
  if (run.stream) return {BP_UNSUPPORTED, "an isolated backend has no streams"};
  for (const auto& [points, count] : {std::pair(run.waits, run.wait_count), std::pair(run.signals, run.signal_count)})
    for (uint32_t i = 0; i < count; ++i)
      if (!bp_point_host(&points[i]))
        return {BP_UNSUPPORTED, "native semaphores cannot be passed to an isolated backend: use host semaphores"};
  const bp_host_t* host = backend().host();
  for (uint32_t i = 0; i < run.wait_count; ++i) {
    PluginError error;
    const uint64_t deadline = run.deadline ? run.deadline : BP_FOREVER;
    BP_TRY(error.status(
        host->semaphore_wait(host, bp_point_host(&run.waits[i]), run.waits[i].value, deadline, run.cancel, error.get()),
        "a point that the run waits for"));
  }
  return {};
}

Status ProxyInstance::execute(const bp_run_t& run) {
  for (const Slot& slot : inputs_) {
    if (!slot.staged) continue;
    if (const uint64_t bytes = used_bytes(slot, slot.address)) std::memcpy(slot.piece.data(), slot.address, bytes);
  }
  // Copies outputs with strides too, because copying back must not change the bytes between their elements.
  for (const Slot& slot : outputs_)
    if (slot.staged && slot.layout != BP_LAYOUT_DENSE) std::memcpy(slot.piece.data(), slot.address, slot.capacity);
  const bp_host_t* host = backend().host();
  const uint32_t tracing = host->tracing && host->trace ? host->tracing(host) : 0;
  const RunNumbers numbers{handle_, run.deadline, run.id, run.trace_id, run.priority, tracing};
  Patience patience;
  patience.deadline = run.deadline;
  patience.host = host;
  patience.cancel = run.cancel;
  BP_TRY(has_containers_ ? execute_with_containers(run, numbers, patience) : process().run(numbers, patience, *this));
  for (const Slot& slot : outputs_) {
    if (!slot.staged) continue;
    if (const uint64_t bytes = used_bytes(slot, slot.piece.data())) std::memcpy(slot.address, slot.piece.data(), bytes);
  }
  for (const Found& result : found_)
    if (result.bytes) std::memcpy(result.address, result.mapping.data(), result.bytes);
  return {};
}

Status ProxyInstance::execute_with_containers(const bp_run_t& run, const RunNumbers& numbers,
                                              const Patience& patience) {
  const bp_container_api_t& containers = *backend().host()->containers;
  Writer request;
  request.put(numbers).put<uint32_t>(run.cancel != nullptr);
  for (const Slot& slot : inputs_)
    if (slot.container) BP_TRY(write_container(containers, slot.container, request));
  BP_ASSIGN(const std::string answer, process().call(Operation::kRun, request.bytes(), {}, patience, this));
  Reader in(answer);
  for (const Slot& slot : outputs_)
    if (slot.container) BP_TRY(read_container(containers, slot.container, in));
  return in.complete() ? Status() : process().unreadable(Operation::kRun);
}

Status ProxyInstance::run(const bp_run_t& run) {
  if (running_.exchange(true))
    return {BP_BUSY, "the instance is running: wait until its run has ended, or use another instance"};
  struct Running {
    ProxyInstance& instance;
    ~Running() {
      instance.run_ = nullptr;
      instance.found_.clear();
      instance.running_ = false;
    }
  } running{*this};
  run_ = &run;
  BP_TRY(wait_before(run));
  BP_TRY(execute(run));
  backend().succeeded();
  if (run.done) run.done(run.self, BP_OK, nullptr);
  const bp_host_t* host = backend().host();
  for (uint32_t i = 0; i < run.signal_count; ++i)
    host->semaphore_signal(host, bp_point_host(&run.signals[i]), run.signals[i].value, nullptr);
  return {};
}

Status ProxyInstance::answer(Operation question, Reader& in, Writer& out, std::vector<Descriptor>& out_files) {
  if (question == Operation::kOutput) return output(in, out, out_files);
  if (question == Operation::kSpan) return span(in);
  return GraphAnswers(program_.graphs).answer(question, in, out, out_files);
}

// Reports a span of the run, which the process sent, to the host's trace.
Status ProxyInstance::span(Reader& in) const {
  bp_span_t span{};
  span.size = sizeof span;
  span.kind = in.get<uint32_t>();
  span.flags = in.get<uint32_t>();
  for (uint64_t* field : {&span.begin, &span.end, &span.trace_id, &span.bytes, &span.device})
    *field = in.get<uint64_t>();
  const std::vector<uint64_t> nodes = in.array<uint64_t>();
  span.nodes = nodes.data();
  span.node_count = static_cast<uint32_t>(nodes.size());
  span.name = abi::text(in.text());
  const bp_host_t* host = backend().host();
  if (in.complete() && host->trace) host->trace(host, &span);
  return {};
}

// Provides memory for an output whose extents were determined during the run.
Status ProxyInstance::output(Reader& in, Writer& out, std::vector<Descriptor>& out_files) {
  const auto number = in.get<uint32_t>();
  const std::vector<int64_t> extents = in.array<int64_t>();
  const auto bytes = in.get<uint64_t>();
  if (!in.complete() || extents.size() > BP_MAX_RANK) return {BP_INVALID_ARGUMENT, "the request cannot be read"};
  if (!run_ || !run_->output) return {BP_BAD_STATE, "the run does not accept outputs of unknown extents"};
  std::erase_if(found_, [&](const Found& one) { return one.slot == number; });  // the plugin may request it again
  bp_tensor_t tensor{};
  tensor.size = sizeof tensor;
  if (const bp_status_t code =
          run_->output(run_->self, number, static_cast<uint32_t>(extents.size()), extents.data(), bytes, &tensor))
    return {code, "the host provides no memory for slot " + std::to_string(number)};
  if (tensor.buffer.memory) return {BP_UNSUPPORTED, "device memory cannot be passed to an isolated backend"};
  write_tensor_form(tensor, out);
  char* address = static_cast<char*>(tensor.buffer.address);
  if (address) address += tensor.buffer.offset;
  const uint64_t capacity = address ? tensor.buffer.bytes : 0;
  out.put(capacity);
  if (capacity == 0) return {};
  if (const auto shared = find_shared(address, capacity)) {
    out.put(shared->offset);
    out_files.emplace_back(shared->descriptor);
    return {};
  }
  const FileLimitFails limit;
  Descriptor file(::memfd_create("backplane-output", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  Mapping mapping;
  if (file && ::ftruncate(file.get(), static_cast<off_t>(capacity)) == 0) {
    ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    mapping = Mapping::of(file.get(), 0, capacity, PROT_READ | PROT_WRITE);
  }
  if (!mapping)
    return {BP_RESOURCE_EXHAUSTED,
            "cannot allocate shared memory for an output of " + std::to_string(capacity) + " bytes"};
  const uint64_t used = tensor.dtype == BP_DTYPE_STRING
                            ? bytes
                            : dense_bytes(tensor.dtype, static_cast<uint32_t>(extents.size()), extents.data());
  found_.push_back({number, address, std::min(used, capacity), std::move(mapping)});
  out.put(uint64_t{0});
  out_files.push_back(std::move(file));
  return {};
}

namespace {

ProxyInstance& instance_of(bp_instance_t* instance) {
  return *reinterpret_cast<ProxyInstance*>(instance);
}

bp_status_t create(const bp_program_t* handle, const bp_instance_create_t* how, bp_instance_t** out_instance,
                   bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    *out_instance = nullptr;
    if (how) {
      BP_ASSIGN(const bp_instance_create_t known, abi::read(how, "bp_instance_create_t"));
      BP_TRY(refuse_chain(known.chain));
      BP_TRY(refuse_flags(known.flags, "how.flags"));
    }
    auto& program = *reinterpret_cast<ProxyProgram*>(const_cast<bp_program_t*>(handle));
    Writer request;
    request.put(program.remote.handle);
    BP_ASSIGN(const std::string answer, program.remote.process->call(Operation::kCreateInstance, request.bytes(), {},
                                                                     program.backend.long_patience(nullptr)));
    Reader in(answer);
    const auto instance = in.get<uint64_t>();
    if (!in.complete()) return program.remote.process->unreadable(Operation::kCreateInstance);
    *out_instance = reinterpret_cast<bp_instance_t*>(new ProxyInstance(program, instance));
    return {};
  });
}

void destroy(bp_instance_t* instance) {
  if (instance) delete &instance_of(instance);
}

bp_status_t bind(bp_instance_t* instance, const bp_binding_t* binding, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_ASSIGN(const bp_binding_t known, abi::read(binding, "bp_binding_t"));
    return instance_of(instance).bind(known);
  });
}

bp_status_t extents(bp_instance_t* instance, const bp_slot_extents_t* slots, uint32_t count, uint32_t stride,
                    bp_error_t* error) {
  return fenced(error, [&] { return instance_of(instance).extents(slots, count, stride); });
}

bp_status_t run(bp_instance_t* instance, const bp_run_t* run, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(abi::check_size(run, "bp_run_t"));
    BP_TRY(refuse_flags(run->flags, "run.flags"));
    return instance_of(instance).run(*run);
  });
}

}  // namespace

void fill_instance_table(uint32_t offered, bp_instance_api_t& out) {
  out.size = sizeof out;
  out.create = create;
  out.destroy = destroy;
  out.bind = bind;
  if (offered & kExtents) out.extents = extents;
  out.run = run;
}

}  // namespace backplane::isolate
