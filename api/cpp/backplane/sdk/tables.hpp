// SPDX-License-Identifier: Apache-2.0
// Fills a backend's C tables from its classes. Vendors need not read this file.
#pragma once

#include <deque>
#include <type_traits>

#include "backplane/sdk/backend.hpp"

namespace backplane::sdk {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr uint32_t kSanitizer = BP_SANITIZER_ADDRESS;
#elif defined(__SANITIZE_THREAD__)
inline constexpr uint32_t kSanitizer = BP_SANITIZER_THREAD;
#elif defined(__has_feature)
inline constexpr uint32_t kSanitizer = __has_feature(address_sanitizer)  ? BP_SANITIZER_ADDRESS
                                       : __has_feature(thread_sanitizer) ? BP_SANITIZER_THREAD
                                       : __has_feature(memory_sanitizer) ? BP_SANITIZER_MEMORY
                                                                         : BP_SANITIZER_NONE;
#else
inline constexpr uint32_t kSanitizer = BP_SANITIZER_NONE;
#endif

// Whether a backend lists its settings in `static constexpr std::string_view kOptions[]`. If so, settings that are not
// listed are refused.
template <class B, class = void>
struct HasOptions : std::false_type {};
template <class B>
struct HasOptions<B, std::void_t<decltype(B::kOptions)>> : std::true_type {};

// Whether a backend's devices can be opened in a context of the framework, which the backend declares by `static
// constexpr bool kNativeContexts = true`. Otherwise bp_device_open_t.native is refused.
template <class B, class = void>
struct TakesContexts : std::false_type {};
template <class B>
struct TakesContexts<B, std::void_t<decltype(B::kNativeContexts)>> : std::bool_constant<B::kNativeContexts> {};

// Whether the device class D declares export_semaphore (see Sync).
template <class D, class = void>
struct ExportsSemaphores : std::false_type {};
template <class D>
struct ExportsSemaphores<D, std::void_t<decltype(&D::export_semaphore)>> : std::true_type {};

// The slots of backend B. A handle points to an object of the concrete class, so that overrides and additional bases
// are known at compile time.
template <class B>
struct Tables {
  using D = typename B::Device;
  using P = typename B::Program;
  using I = typename B::Instance;
  static_assert(std::is_base_of_v<Backend, B> && std::is_base_of_v<Device, D>,
                "derive from sdk::Backend and sdk::Device");
  static_assert(std::is_base_of_v<Program, P> && std::is_base_of_v<Instance, I>,
                "derive from sdk::Program and sdk::Instance");

  static B* backend(bp_backend_t* h) { return reinterpret_cast<B*>(h); }
  static D* device(bp_device_t* h) { return reinterpret_cast<D*>(h); }
  static P* program(bp_program_t* h) { return reinterpret_cast<P*>(h); }
  static const P* program(const bp_program_t* h) { return reinterpret_cast<const P*>(h); }
  static I* instance(bp_instance_t* h) { return reinterpret_cast<I*>(h); }

  // Converts `base` to a handle, which is a pointer to the concrete class T.
  template <class T, class Base, class Handle>
  static void hand_over(std::unique_ptr<Base> base, Handle** out) {
    *out = reinterpret_cast<Handle*>(static_cast<T*>(&required(base.release(), "the object that the backend created")));
  }
  // Calls `body`, which creates a handle, within `fence`. `*out` is NULL after any failure, even of the fence.
  template <class Self, class Handle, class Body>
  static bp_status_t creating(const Self* self, Handle** out, const char* name, bp_error_t* error,
                              Body&& body) noexcept {
    if (out != nullptr) *out = nullptr;
    return fence(self, error, [&] {
      required(out, name);
      body();
    });
  }
  // In a forked child, does nothing to a handle that the parent created: its driver and threads exist only in the
  // parent.
  static void destroy(Object* object) noexcept {
    if (object != nullptr && !object->forked()) delete object;
  }

  // ---- the plugin --------------------------------------------------------------------------------------------------

  static bp_status_t BP_CALL create(const bp_backend_create_t* how, bp_backend_t** out, bp_error_t* error) noexcept {
    return fence(error, [&] {
      required(out, "out_backend") = nullptr;
      const bp_backend_create_t copy = read(how, "how");
      check_chain(copy.chain);
      if constexpr (HasOptions<B>::value) Host(copy.host).check_options(B::kOptions);
      hand_over<B>(std::unique_ptr<Backend>(std::make_unique<B>(copy)), out);
    });
  }
  static void BP_CALL destroy_backend(bp_backend_t* h) noexcept { destroy(backend(h)); }
  static const void* BP_CALL get_extension(bp_backend_t* h, bp_text_t name, uint32_t version) noexcept {
    const void* table = nullptr;
    fence(backend(h), nullptr, [&] { table = backend(h)->extension(text(name), version); });
    return table;
  }

  // ---- devices -----------------------------------------------------------------------------------------------------

  static bp_status_t BP_CALL count(bp_backend_t* h, uint32_t* out, bp_error_t* error) noexcept {
    return fence(backend(h), error, [&] {
      std::string why_none;
      required(out, "out_count") = backend(h)->counted_devices(why_none);
      if (*out == 0) report(error, BP_OK, why_none);
    });
  }
  static void check_index(bp_backend_t* h, uint32_t index) {
    std::string why_none;
    const uint32_t count = backend(h)->counted_devices(why_none);
    if (index < count) return;
    throw Error(BP_NOT_FOUND, "there is no device " + std::to_string(index) + "; " + std::string(B::kAbout.id) +
                                  " has " + std::to_string(count));
  }
  static bp_status_t BP_CALL info(bp_backend_t* h, uint32_t index, bp_device_info_t* out, bp_error_t* error) noexcept {
    return fence(backend(h), error, [&] {
      check_index(h, index);
      bp_device_info_t info = backend(h)->device_info(index);
      info.index = index;
      write(out, info, "out_info");
    });
  }
  static bp_status_t BP_CALL open(bp_backend_t* h, uint32_t index, const bp_device_open_t* how, bp_device_t** out,
                                  bp_error_t* error) noexcept {
    return creating(backend(h), out, "out_device", error, [&] {
      check_index(h, index);
      bp_device_open_t copy{};
      if (how != nullptr) copy = read(how, "how");
      check_chain(copy.chain);
      bp_native_t native;
      copy.native = read_native(copy.native, native);
      if (copy.native != nullptr && !TakesContexts<B>::value)
        throw Error(BP_UNSUPPORTED, "a device of " + std::string(B::kAbout.id) +
                                        " cannot be opened on a native context; leave bp_device_open_t.native NULL");
      hand_over<D>(backend(h)->open(index, Options(copy.options, copy.option_count, copy.option_stride), copy), out);
      device(*out)->set_id(copy.id);
    });
  }
  static void BP_CALL close(bp_device_t* h) noexcept { destroy(device(h)); }
  static bp_status_t BP_CALL health(bp_device_t* h, bp_error_t* error) noexcept {
    return fence(device(h), error, [&] { device(h)->health(); });
  }
  static void BP_CALL abandon(bp_device_t* h) noexcept {
    if (h != nullptr && !device(h)->forked()) device(h)->abandon();
  }

  // ---- coverage ----------------------------------------------------------------------------------------------------

  static bp_status_t BP_CALL query(bp_device_t* h, const bp_coverage_query_t* query, const bp_coverage_sink_t* sink,
                                   bp_error_t* error) noexcept {
    return fence(device(h), error, [&] {
      const bp_coverage_query_t question = read(query, "query");
      check_chain(question.chain);
      checked(question.graph, "query.graph");
      const bp_coverage_sink_t answers = read(sink, "sink");
      if (answers.verdicts == nullptr) throw Error(BP_INVALID_ARGUMENT, "sink.verdicts is NULL");
      Coverage coverage(device(h)->host(), question, answers);
      device(h)->cover(coverage);
      coverage.deliver();
    });
  }
  static bp_status_t BP_CALL review(bp_device_t* h, const bp_compile_t* what, bp_review_t* out,
                                    bp_error_t* error) noexcept {
    return fence(device(h), error, [&] {
      const bp_compile_t copy = read_compile(what);
      bp_review_t review = read(out, "out_review");
      std::string why;
      device(h)->review(Compile(device(h)->host(), copy), review, why);
      write(out, review, "out_review");
      if (review.answer != BP_REVIEW_ACCEPT) report(error, BP_OK, why);
    });
  }
  static bp_status_t BP_CALL infer(bp_device_t* h, const bp_infer_t* what, const bp_infer_sink_t* sink,
                                   bp_error_t* error) noexcept {
    return fence(device(h), error, [&] {
      const bp_infer_t copy = read(what, "what");
      check_chain(copy.chain);
      const Graph graph(&checked(copy.graph, "what.graph"));
      if (copy.node >= graph.node_count())
        throw Error(BP_INVALID_ARGUMENT, "what.node is " + std::to_string(copy.node) + ", but the graph has " +
                                             std::to_string(graph.node_count()) + " nodes");
      const bp_infer_sink_t types = read(sink, "sink");
      device(h)->infer(graph.node(copy.node), Types(types));
    });
  }

  static bp_compile_t read_compile(const bp_compile_t* what) {
    const bp_compile_t copy = read(what, "what");
    check_chain(copy.chain);
    if ((copy.flags & BP_COMPILE_REFIT) != 0 && !std::is_base_of_v<Refit, P>)
      throw Error(BP_UNSUPPORTED, "this backend cannot replace weights of a program; compile without BP_COMPILE_REFIT");
    check_flags(copy.flags, BP_COMPILE_REFIT, "what.flags");
    return copy;
  }
  static bp_status_t BP_CALL opsets(bp_device_t* h, bp_opsets_t* out, bp_error_t* error) noexcept {
    return fence(device(h), error, [&] { write(out, device(h)->opsets(), "out_opsets"); });
  }

  // ---- programs ----------------------------------------------------------------------------------------------------

  static bp_status_t BP_CALL compile(bp_device_t* h, const bp_compile_t* what, bp_program_t** out,
                                     bp_error_t* error) noexcept {
    return creating(device(h), out, "out_program", error, [&] {
      const bp_compile_t copy = read_compile(what);
      hand_over<P>(device(h)->compile(Compile(device(h)->host(), copy)), out);
    });
  }
  static void BP_CALL destroy_program(bp_program_t* h) noexcept { destroy(program(h)); }
  static bp_status_t BP_CALL program_info(const bp_program_t* h, bp_program_info_t* out, bp_error_t* error) noexcept {
    return fence(program(h), error, [&] {
      bp_program_info_t info = program(h)->info();
      info.input_count = program(h)->graph().input_count();
      info.output_count = program(h)->graph().output_count();
      write(out, info, "out_info");
    });
  }
  static bp_status_t BP_CALL output_extents(const bp_program_t* h, const bp_shape_query_t* query,
                                            bp_shape_t* out_shapes, bp_error_t* error) noexcept {
    return fence(program(h), error, [&] {
      const Graph& graph = program(h)->graph();
      const bp_shape_query_t question = read(query, "query");
      if (question.input_count != graph.input_count()) {
        throw Error(BP_INVALID_ARGUMENT, "the island has " + std::to_string(graph.input_count()) +
                                             " inputs, but the query has " + std::to_string(question.input_count));
      }
      if (question.output_stride < kSize10<bp_shape_t>)
        throw Error(BP_INVALID_ARGUMENT, "query.output_stride is " + std::to_string(question.output_stride) +
                                             "; it must be at least " + std::to_string(kSize10<bp_shape_t>));
      if (question.input_count != 0 && question.input_stride < kSize10<bp_tensor_t>)
        throw Error(BP_INVALID_ARGUMENT, "query.input_stride is " + std::to_string(question.input_stride) +
                                             "; it must be at least " + std::to_string(kSize10<bp_tensor_t>));
      std::vector<bp_tensor_t> tensors;
      for (uint32_t i = 0; i < question.input_count; ++i) {
        const char* at = reinterpret_cast<const char*>(question.inputs) + uint64_t{i} * question.input_stride;
        tensors.push_back(read(reinterpret_cast<const bp_tensor_t*>(at), "inputs"));
        check_input(graph.input(i), tensors.back());
      }
      std::vector<bp_shape_t> shapes(graph.output_count(), bp_shape_t{BP_NONE, 0, {}});
      program(h)->output_extents(tensors, shapes);
      if (shapes.empty()) return;
      char* const out = reinterpret_cast<char*>(&required(out_shapes, "out_shapes"));
      for (size_t i = 0; i < shapes.size(); ++i)
        std::memcpy(out + i * question.output_stride, &shapes[i],
                    std::min<size_t>(sizeof shapes[i], question.output_stride));
    });
  }
  // Throws BP_TYPE_MISMATCH if the input cannot have these extents.
  static void check_input(const Value& value, const bp_tensor_t& tensor) {
    const auto refuse = [&](const std::string& why) {
      throw Error(BP_TYPE_MISMATCH, "input '" + std::string(value.name()) + "' " + why);
    };
    if (tensor.rank > BP_MAX_RANK || (value.rank() >= 0 && static_cast<uint32_t>(value.rank()) != tensor.rank))
      refuse("was given rank " + std::to_string(tensor.rank) + "; supported: " +
             (value.rank() < 0 ? "at most " + std::to_string(BP_MAX_RANK) : std::to_string(value.rank())));
    if (tensor.rank != 0 && tensor.extents == nullptr)
      refuse("was given rank " + std::to_string(tensor.rank) + ", but its extents are NULL");
    for (uint32_t d = 0; d < tensor.rank; ++d) {
      const int64_t declared = value.rank() < 0 ? -1 : value.extent(d);
      if (tensor.extents[d] >= 0 && (declared < 0 || declared == tensor.extents[d])) continue;
      refuse("was given extent " + std::to_string(tensor.extents[d]) + " in dimension " + std::to_string(d) +
             "; it must be " + (declared < 0 ? "0 or more" : std::to_string(declared)));
    }
  }

  // ---- running -----------------------------------------------------------------------------------------------------

  static bp_status_t BP_CALL create_instance(const bp_program_t* h, const bp_instance_create_t* how,
                                             bp_instance_t** out, bp_error_t* error) noexcept {
    return creating(program(h), out, "out_instance", error, [&] {
      if (how != nullptr) {
        const bp_instance_create_t copy = read(how, "how");
        check_chain(copy.chain);
        check_flags(copy.flags, 0, "how.flags");
      }
      hand_over<I>(program(h)->instance(), out);
    });
  }
  static void BP_CALL destroy_instance(bp_instance_t* h) noexcept { destroy(instance(h)); }
  static bp_status_t BP_CALL bind(bp_instance_t* h, const bp_binding_t* binding, bp_error_t* error) noexcept {
    return fence(instance(h), error, [&] {
      bp_binding_t copy = read(binding, "binding");
      bp_tensor_t tensor;
      copy.tensor = read_nested(copy.tensor, "binding.tensor", tensor);
      if (copy.tensor != nullptr && copy.slot >= BP_SLOT_OUTPUT)
        check_target(copy.tensor->buffer, "binding.tensor.buffer");
      instance(h)->bind(copy);
    });
  }
  static bp_status_t BP_CALL extents(bp_instance_t* h, const bp_slot_extents_t* slots, uint32_t count, uint32_t stride,
                                     bp_error_t* error) noexcept {
    return fence(instance(h), error, [&] { instance(h)->extents(Slots(slots, count, stride)); });
  }
  static bp_status_t BP_CALL run(bp_instance_t* h, const bp_run_t* run, bp_error_t* error) noexcept {
    return fence(instance(h), error, [&] {
      const bp_run_t copy = read(run, "run");
      check_run(copy);
      check_signals(copy);
      instance(h)->submit(copy);
    });
  }
  static bp_status_t BP_CALL run_synchronously(bp_instance_t* h, const bp_run_t* run, bp_error_t* error) noexcept {
    return fence(instance(h), error, [&] {
      bp_run_t room;
      const bp_run_t& copy = read_in_place(run, "run", room);
      check_run(copy);
      instance(h)->run_synchronously(copy);
    });
  }

  // Refuses signals of semaphores that were imported from an event, because only the event signals them. For a device
  // without Sync, native points are refused elsewhere, because their handles are unknown.
  static void check_signals(const bp_run_t& run) {
    if constexpr (std::is_base_of_v<Sync, D>) {
      for (uint32_t i = 0; i < run.signal_count; ++i) {
        const NativeSemaphore* const semaphore = semaphore_of(bp_point_native(&run.signals[i]));
        if (semaphore != nullptr) check_signal(*semaphore);
      }
    }
  }
  static void check_signal(const NativeSemaphore& semaphore) {
    if (semaphore.follows_event())
      throw Error(BP_UNSUPPORTED, "an imported semaphore of a single value is signaled by its event alone");
  }

  // ---- memory: a Device that is also a Memory ----------------------------------------------------------------------

  static bp_status_t BP_CALL space(bp_device_t* h, uint32_t index, bp_space_t* out, bp_error_t* error) noexcept {
    return fence(device(h), error, [&] { write(out, device(h)->space(index), "out_space"); });
  }
  static bp_status_t BP_CALL allocate(bp_device_t* h, const bp_allocate_t* what, bp_buffer_t* out,
                                      bp_error_t* error) noexcept {
    return fence(device(h), error, [&] {
      const bp_allocate_t copy = read(what, "what");
      check_chain(copy.chain);
      required(out, "out_buffer") = device(h)->allocate(copy);
    });
  }
  static void BP_CALL release(bp_device_t* h, const bp_release_t* what) noexcept {
    fence(device(h), nullptr, [&] {
      const bp_release_t copy = read(what, "what");
      device(h)->release(required(copy.buffer, "what.buffer"), copy.stream);
    });
  }
  static bp_status_t BP_CALL map(bp_device_t* h, const bp_map_t* what, void** out, bp_error_t* error) noexcept {
    return fence(device(h), error, [&] {
      const bp_map_t copy = read(what, "what");
      check_flags(copy.access, BP_MAP_READ | BP_MAP_WRITE, "what.access");
      required(out, "out_pointer") = device(h)->map(check_buffer(copy.buffer, "what.buffer"), copy.access);
    });
  }
  static bp_status_t BP_CALL unmap(bp_device_t* h, const bp_map_t* what, void* pointer, bp_error_t* error) noexcept {
    return fence(device(h), error, [&] {
      const bp_map_t copy = read(what, "what");
      check_flags(copy.access, BP_MAP_READ | BP_MAP_WRITE, "what.access");
      device(h)->unmap(check_buffer(copy.buffer, "what.buffer"), pointer);
    });
  }
  static bp_status_t BP_CALL flush(bp_device_t* h, const bp_map_t* what, bp_error_t* error) noexcept {
    return fence(device(h), error, [&] {
      const bp_map_t copy = read(what, "what");
      check_flags(copy.access, BP_MAP_READ | BP_MAP_WRITE, "what.access");
      device(h)->flush(check_buffer(copy.buffer, "what.buffer"), copy.access);
    });
  }
  static bp_status_t BP_CALL copy(bp_device_t* h, const bp_copy_t* what, bp_error_t* error) noexcept {
    return fence(device(h), error, [&] {
      bp_copy_t copy = read(what, "what");
      check_flags(copy.flags, 0, "what.flags");
      static_cast<void>(check_buffer(copy.from, "what.from"));
      check_target(required(copy.to, "what.to"), "what.to");
      bp_run_t run;
      copy.run = read_order(copy.run, run);
      if (copy.run != nullptr) check_signals(run);
      device(h)->copy(copy);
    });
  }
  static bp_status_t BP_CALL fill(bp_device_t* h, const bp_fill_t* what, bp_error_t* error) noexcept {
    return fence(device(h), error, [&] {
      bp_fill_t copy = read(what, "what");
      const uint32_t bytes = copy.pattern_bytes;
      if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
        throw Error(BP_INVALID_ARGUMENT, "a fill pattern has " + std::to_string(bytes) + " bytes, not 1, 2, 4 or 8");
      check_target(required(copy.buffer, "what.buffer"), "what.buffer");
      bp_run_t run;
      copy.run = read_order(copy.run, run);
      if (copy.run != nullptr) check_signals(run);
      device(h)->fill(copy);
    });
  }
  static bp_status_t BP_CALL import_memory(bp_device_t* h, const bp_import_t* what, bp_buffer_t* out,
                                           bp_error_t* error) noexcept {
    return fence(device(h), error, [&] {
      const bp_import_t copy = read(what, "what");
      const bp_external_t external = read(copy.external, "what.external");
      check_chain(external.chain);
      check_flags(external.flags, BP_BUFFER_READ_ONLY, "what.external.flags");
      required(out, "out_buffer") = device(h)->import_memory(copy.space, external);
    });
  }
  static bp_status_t BP_CALL export_memory(bp_device_t* h, const bp_export_t* what, bp_external_t* out,
                                           bp_error_t* error) noexcept {
    return fence(device(h), error, [&] {
      const bp_export_t copy = read(what, "what");
      write(out, device(h)->export_memory(check_buffer(copy.buffer, "what.buffer"), copy.kind), "out_external");
    });
  }

  // ---- sync: a Device that is also a Sync --------------------------------------------------------------------------

  static bp_status_t BP_CALL stream_create(bp_device_t* h, const bp_stream_create_t* how, bp_stream_t** out,
                                           bp_error_t* error) noexcept {
    return creating(device(h), out, "out_stream", error, [&] {
      bp_stream_create_t copy = read(how, "how");
      check_chain(copy.chain);
      bp_native_t native;
      copy.native = read_native(copy.native, native);
      hand_over<Stream>(device(h)->stream(copy), out);
    });
  }
  static void BP_CALL stream_destroy(bp_stream_t* h) noexcept { destroy(stream_of(h)); }
  static bp_status_t BP_CALL stream_wait(bp_stream_t* h, uint64_t deadline, bp_error_t* error) noexcept {
    return fence(stream_of(h), error, [&] { stream_of(h)->wait(deadline); });
  }
  static bp_status_t BP_CALL stream_export(bp_stream_t* h, bp_native_t* out, bp_error_t* error) noexcept {
    return fence(stream_of(h), error, [&] { write(out, stream_of(h)->native(), "out_native"); });
  }
  static bp_status_t BP_CALL semaphore_create(bp_device_t* h, const bp_semaphore_create_t* how,
                                              bp_native_semaphore_t** out, bp_error_t* error) noexcept {
    return creating(device(h), out, "out_semaphore", error, [&] {
      bp_semaphore_create_t copy = read(how, "how");
      check_chain(copy.chain);
      check_flags(copy.flags, 0, "how.flags");
      bp_native_t native;
      copy.native = read_native(copy.native, native);
      hand_over<NativeSemaphore>(device(h)->semaphore(copy), out);
    });
  }
  static void BP_CALL semaphore_destroy(bp_native_semaphore_t* h) noexcept { destroy(semaphore_of(h)); }
  static bp_status_t BP_CALL semaphore_wait(bp_native_semaphore_t* h, uint64_t value, uint64_t deadline,
                                            bp_error_t* error) noexcept {
    return fence(semaphore_of(h), error, [&] {
      if (!semaphore_of(h)->wait(value, deadline))
        throw Error(BP_TIMED_OUT, "the deadline passed before the semaphore reached " + std::to_string(value));
    });
  }
  static bp_status_t BP_CALL semaphore_signal(bp_native_semaphore_t* h, uint64_t value, bp_error_t* error) noexcept {
    return fence(semaphore_of(h), error, [&] {
      check_signal(*semaphore_of(h));
      semaphore_of(h)->signal(value, nullptr);
    });
  }
  static bp_status_t BP_CALL semaphore_query(bp_native_semaphore_t* h, uint64_t* out, bp_error_t* error) noexcept {
    return fence(semaphore_of(h), error, [&] { required(out, "out_value") = semaphore_of(h)->value(); });
  }
  static bp_status_t BP_CALL semaphore_export(bp_native_semaphore_t* h, const bp_semaphore_export_t* what,
                                              bp_native_t* out, bp_error_t* error) noexcept {
    return fence(semaphore_of(h), error, [&] {
      const bp_semaphore_export_t copy = read(what, "what");
      check_chain(copy.chain);
      write(out, D::export_semaphore(*semaphore_of(h), copy), "out_native");
    });
  }

  // ---- cache: a Device that is also a Cache ------------------------------------------------------------------------

  static bp_status_t BP_CALL serialize(const bp_program_t* h, bp_text_sink_t sink, void* context,
                                       bp_error_t* error) noexcept {
    return fence(program(h), error, [&] {
      auto& device = static_cast<D&>(const_cast<Device&>(program(h)->device()));
      const std::string blob = device.serialize(*program(h));
      sink(context, text(blob));
    });
  }
  static bp_status_t BP_CALL validate(bp_device_t* h, bp_bytes_t blob, uint32_t* out, bp_error_t* error) noexcept {
    return fence(device(h), error, [&] {
      std::string why;
      required(out, "out_answer") = device(h)->validate({static_cast<const char*>(blob.data), blob.size}, why);
      report(error, BP_OK, why);
    });
  }
  static bp_status_t BP_CALL deserialize(bp_device_t* h, const bp_compile_t* what, bp_bytes_t blob, bp_program_t** out,
                                         bp_error_t* error) noexcept {
    return creating(device(h), out, "out_program", error, [&] {
      const bp_compile_t copy = read_compile(what);
      const Compile compile(device(h)->host(), copy);
      hand_over<P>(device(h)->deserialize(compile, {static_cast<const char*>(blob.data), blob.size}), out);
    });
  }

  // ---- weights: a Program that is also a Refit ---------------------------------------------------------------------

  static bp_status_t BP_CALL refit(bp_program_t* h, const bp_refit_t* what, bp_error_t* error) noexcept {
    return fence(program(h), error, [&] {
      const bp_refit_t copy = read(what, "what");
      check_flags(copy.flags, 0, "what.flags");
      std::vector<bp_refit_weight_t> weights;
      std::deque<bp_tensor_t> tensors;  // never moves its elements
      for (uint32_t i = 0; i < copy.count; ++i) {
        weights.push_back(element(&required(copy.weights, "what.weights"), i, copy.stride));
        weights.back().tensor = &tensors.emplace_back(read(weights.back().tensor, "what.weights.tensor"));
        check_tensor(tensors.back(), "what.weights.tensor");
        if (weights.back().weight >= program(h)->graph().raw()->weight_count)
          throw Error(BP_NOT_FOUND, "the island has no weight " + std::to_string(weights.back().weight));
      }
      program(h)->refit(weights);
    });
  }
  static bp_status_t BP_CALL read_weight(const bp_program_t* h, uint32_t weight, bp_tensor_t* out,
                                         bp_error_t* error) noexcept {
    return fence(program(h), error, [&] {
      if (weight >= program(h)->graph().raw()->weight_count)
        throw Error(BP_NOT_FOUND, "the island has no weight " + std::to_string(weight));
      bp_tensor_t tensor = read(out, "out_tensor");
      check_tensor(tensor, "out_tensor");
      check_target(tensor.buffer, "out_tensor.buffer");
      program(h)->read_weight(weight, tensor);
      write(out, tensor, "out_tensor");
    });
  }
};

// Whether `method`, written &D::name, is declared in Base and not overridden. The type of a member pointer names the
// class that declares the member.
template <class Base, class Method>
struct DeclaredIn : std::false_type {};
template <class Base, class R, class... A>
struct DeclaredIn<Base, R (Base::*)(A...)> : std::true_type {};
template <class Base, class R, class... A>
struct DeclaredIn<Base, R (Base::*)(A...) const> : std::true_type {};
template <class Base, class R, class... A>
struct DeclaredIn<Base, R (Base::*)(A...) noexcept> : std::true_type {};
template <class Base, class R, class... A>
struct DeclaredIn<Base, R (Base::*)(A...) const noexcept> : std::true_type {};
template <class Base, class Method>
constexpr bool overrides(Method) {
  return !DeclaredIn<Base, Method>::value;
}

}  // namespace backplane::sdk
