// SPDX-License-Identifier: Apache-2.0
// The C tables of a backend, made from its classes. Nothing here is written by a vendor.
#pragma once

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

// What a handle points at: the object of the concrete class, so that overrides and further bases are known when
// compiling.
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

  // `base` becomes a handle: a pointer to the concrete class T.
  template <class T, class Base, class Handle>
  static void hand_over(std::unique_ptr<Base> base, Handle** out) {
    *out = reinterpret_cast<Handle*>(static_cast<T*>(&required(base.release(), "what the backend made")));
  }
  // In a child of the process that made it there is nothing to close: driver and threads stayed with the parent.
  static void destroy(Object* object) noexcept {
    if (object != nullptr && !object->forked()) delete object;
  }

  // ---- the plugin --------------------------------------------------------------------------------------------------

  static bp_status_t BP_CALL create(const bp_backend_create_t* how, bp_backend_t** out, bp_error_t* error) noexcept {
    return fence(error, [&] {
      required(out, "out_backend") = nullptr;
      const bp_backend_create_t copy = read(how, "how");
      check_chain(copy.chain);
      fork_generation();  // from here on forks are counted
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
      required(out, "out_count") = backend(h)->device_count(why_none);
      if (*out == 0) report(error, BP_OK, why_none);
    });
  }
  static void check_index(bp_backend_t* h, uint32_t index) {
    std::string why_none;
    const uint32_t count = backend(h)->device_count(why_none);
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
    return fence(backend(h), error, [&] {
      required(out, "out_device") = nullptr;
      check_index(h, index);
      bp_device_open_t copy{};
      if (how != nullptr) copy = read(how, "how");
      check_chain(copy.chain);
      backend(h)->mark_opened();
      hand_over<D>(backend(h)->open(index, Options(copy.options, copy.option_count, copy.option_stride), copy), out);
    });
  }
  static void BP_CALL close(bp_device_t* h) noexcept { destroy(device(h)); }
  static bp_status_t BP_CALL health(bp_device_t* h, bp_error_t* error) noexcept {
    return fence(device(h), error, [&] { device(h)->health(); });
  }

  // ---- coverage ----------------------------------------------------------------------------------------------------

  static bp_status_t BP_CALL query(bp_device_t* h, const bp_coverage_query_t* query, const bp_coverage_sink_t* sink,
                                   bp_error_t* error) noexcept {
    return fence(device(h), error, [&] {
      const bp_coverage_query_t question = read(query, "query");
      check_chain(question.chain);
      checked(question.graph, "query.graph");
      const bp_coverage_sink_t answers = read(sink, "sink");
      Coverage coverage(device(h)->host(), question, answers);
      device(h)->cover(coverage);
      coverage.deliver();
    });
  }
  static bp_status_t BP_CALL review(bp_device_t* h, const bp_compile_t* what, bp_review_t* out,
                                    bp_error_t* error) noexcept {
    return fence(device(h), error, [&] {
      const bp_compile_t copy = read(what, "what");
      check_chain(copy.chain);
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
        throw Error(BP_INVALID_ARGUMENT, "the graph has no node " + std::to_string(copy.node));
      device(h)->infer(graph.node(copy.node), Types(required(sink, "sink")));
    });
  }

  // ---- programs ----------------------------------------------------------------------------------------------------

  static bp_status_t BP_CALL compile(bp_device_t* h, const bp_compile_t* what, bp_program_t** out,
                                     bp_error_t* error) noexcept {
    return fence(device(h), error, [&] {
      required(out, "out_program") = nullptr;
      const bp_compile_t copy = read(what, "what");
      check_chain(copy.chain);
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
  static bp_status_t BP_CALL output_extents(const bp_program_t* h, const bp_tensor_t* inputs, uint32_t input_count,
                                            uint32_t input_stride, uint32_t output, uint32_t* out_rank,
                                            int64_t* out_extents, bp_error_t* error) noexcept {
    return fence(program(h), error, [&] {
      const Graph& graph = program(h)->graph();
      if (input_count != graph.input_count() || output >= graph.output_count()) {
        throw Error(BP_INVALID_ARGUMENT, "the island has " + std::to_string(graph.input_count()) + " inputs and " +
                                             std::to_string(graph.output_count()) + " outputs; asked with " +
                                             std::to_string(input_count) + " inputs for output " +
                                             std::to_string(output));
      }
      std::vector<bp_tensor_t> tensors;
      for (uint32_t i = 0; i < input_count; ++i) {
        const char* at = reinterpret_cast<const char*>(inputs) + uint64_t{i} * input_stride;
        tensors.push_back(read(reinterpret_cast<const bp_tensor_t*>(at), "inputs"));
      }
      const std::vector<int64_t> extents = program(h)->output_extents(tensors, output);
      required(out_rank, "out_rank") = static_cast<uint32_t>(extents.size());
      std::copy(extents.begin(), extents.end(), &required(out_extents, "out_extents"));
    });
  }

  // ---- running -----------------------------------------------------------------------------------------------------

  static bp_status_t BP_CALL create_instance(const bp_program_t* h, bp_instance_t** out, bp_error_t* error) noexcept {
    return fence(program(h), error, [&] {
      required(out, "out_instance") = nullptr;
      hand_over<I>(program(h)->instance(), out);
    });
  }
  static void BP_CALL destroy_instance(bp_instance_t* h) noexcept { destroy(instance(h)); }
  static bp_status_t BP_CALL bind(bp_instance_t* h, const bp_binding_t* binding, bp_error_t* error) noexcept {
    return fence(instance(h), error, [&] { instance(h)->bind(read(binding, "binding")); });
  }
  static bp_status_t BP_CALL extents(bp_instance_t* h, uint32_t slot, uint32_t rank, const int64_t* extents,
                                     bp_error_t* error) noexcept {
    return fence(instance(h), error, [&] { instance(h)->extents(slot, rank, extents); });
  }
  static bp_status_t BP_CALL run(bp_instance_t* h, const bp_run_t* run, bp_error_t* error) noexcept {
    return fence(instance(h), error, [&] { instance(h)->submit(read(run, "run")); });
  }
  static bp_status_t BP_CALL run_synchronously(bp_instance_t* h, const bp_run_t* run, bp_error_t* error) noexcept {
    return fence(instance(h), error, [&] {
      bp_run_t room;
      instance(h)->run_synchronously(read_in_place(run, "run", room));
    });
  }

  static void BP_CALL abandon(bp_instance_t* h) noexcept {
    if (h != nullptr && !instance(h)->forked()) instance(h)->abandon();
  }

  // ---- memory: a Device that is also a Memory ----------------------------------------------------------------------

  static bp_status_t BP_CALL space(bp_device_t* h, uint32_t index, bp_space_t* out, uint32_t size,
                                   bp_error_t* error) noexcept {
    return fence(device(h), error, [&] {
      const bp_space_t space = device(h)->space(index);
      std::memcpy(&required(out, "out_space"), &space, std::min<size_t>(size, sizeof space));
    });
  }
  static bp_status_t BP_CALL allocate(bp_device_t* h, uint32_t space, uint64_t bytes, bp_buffer_t* out,
                                      bp_error_t* error) noexcept {
    return fence(device(h), error, [&] { required(out, "out_buffer") = device(h)->allocate(space, bytes); });
  }
  static void BP_CALL release(bp_device_t* h, bp_buffer_t* buffer) noexcept {
    if (buffer != nullptr) fence(device(h), nullptr, [&] { device(h)->release(*buffer); });
  }
  static bp_status_t BP_CALL map(bp_device_t* h, const bp_buffer_t* buffer, uint32_t access, void** out,
                                 bp_error_t* error) noexcept {
    return fence(device(h), error,
                 [&] { required(out, "out_pointer") = device(h)->map(required(buffer, "buffer"), access); });
  }
  static bp_status_t BP_CALL unmap(bp_device_t* h, const bp_buffer_t* buffer, void* pointer,
                                   bp_error_t* error) noexcept {
    return fence(device(h), error, [&] { device(h)->unmap(required(buffer, "buffer"), pointer); });
  }
  static bp_status_t BP_CALL flush(bp_device_t* h, const bp_buffer_t* buffer, uint32_t access,
                                   bp_error_t* error) noexcept {
    return fence(device(h), error, [&] { device(h)->flush(required(buffer, "buffer"), access); });
  }
  static bp_status_t BP_CALL copy(bp_device_t* h, const bp_buffer_t* from, const bp_buffer_t* to, uint64_t bytes,
                                  const bp_run_t* run, bp_error_t* error) noexcept {
    return fence(device(h), error, [&] { device(h)->copy(required(from, "from"), required(to, "to"), bytes, run); });
  }
  static bp_status_t BP_CALL fill(bp_device_t* h, const bp_buffer_t* buffer, const void* pattern, uint32_t bytes,
                                  const bp_run_t* run, bp_error_t* error) noexcept {
    return fence(device(h), error, [&] { device(h)->fill(required(buffer, "buffer"), pattern, bytes, run); });
  }
  static bp_status_t BP_CALL import_memory(bp_device_t* h, uint32_t space, const bp_external_t* external,
                                           bp_buffer_t* out, bp_error_t* error) noexcept {
    return fence(device(h), error, [&] {
      const bp_external_t copy = read(external, "external");
      check_chain(copy.chain);
      required(out, "out_buffer") = device(h)->import_memory(space, copy);
    });
  }
  static bp_status_t BP_CALL export_memory(bp_device_t* h, const bp_buffer_t* buffer, bp_external_t* out,
                                           bp_error_t* error) noexcept {
    return fence(device(h), error, [&] {
      write(out, device(h)->export_memory(required(buffer, "buffer"), read(out, "out_external").kind), "out_external");
    });
  }

  // ---- sync: a Device that is also a Sync --------------------------------------------------------------------------

  static bp_status_t BP_CALL stream_create(bp_device_t* h, const bp_native_t* native, int32_t priority,
                                           bp_stream_t** out, bp_error_t* error) noexcept {
    return fence(device(h), error, [&] {
      required(out, "out_stream") = nullptr;
      if (native != nullptr) check_chain(read(native, "native").chain);
      hand_over<Stream>(device(h)->stream(native, priority), out);
    });
  }
  static void BP_CALL stream_destroy(bp_stream_t* h) noexcept { destroy(stream_of(h)); }
  static bp_status_t BP_CALL stream_wait(bp_stream_t* h, uint64_t deadline, bp_error_t* error) noexcept {
    return fence(stream_of(h), error, [&] { stream_of(h)->wait(deadline); });
  }
  static bp_status_t BP_CALL stream_export(bp_stream_t* h, bp_native_t* out, bp_error_t* error) noexcept {
    return fence(stream_of(h), error, [&] { write(out, stream_of(h)->native(), "out_native"); });
  }
  static bp_status_t BP_CALL semaphore_create(bp_device_t* h, const bp_native_t* native, bp_native_semaphore_t** out,
                                              bp_error_t* error) noexcept {
    return fence(device(h), error, [&] {
      required(out, "out_semaphore") = nullptr;
      if (native != nullptr) check_chain(read(native, "native").chain);
      hand_over<NativeSemaphore>(device(h)->semaphore(native), out);
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
    return fence(semaphore_of(h), error, [&] { semaphore_of(h)->signal(value, nullptr); });
  }
  static bp_status_t BP_CALL semaphore_query(bp_native_semaphore_t* h, uint64_t* out, bp_error_t* error) noexcept {
    return fence(semaphore_of(h), error, [&] { required(out, "out_value") = semaphore_of(h)->value(); });
  }
  static bp_status_t BP_CALL semaphore_export(bp_native_semaphore_t* h, uint64_t value, bp_native_t* out,
                                              bp_error_t* error) noexcept {
    return fence(semaphore_of(h), error, [&] { write(out, semaphore_of(h)->native(value), "out_native"); });
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
    return fence(device(h), error, [&] {
      required(out, "out_program") = nullptr;
      const bp_compile_t copy = read(what, "what");
      check_chain(copy.chain);
      const Compile compile(device(h)->host(), copy);
      hand_over<P>(device(h)->deserialize(compile, {static_cast<const char*>(blob.data), blob.size}), out);
    });
  }

  // ---- weights: a Program that is also a Refit ---------------------------------------------------------------------

  static bp_status_t BP_CALL refit(bp_program_t* h, uint32_t weight, const bp_tensor_t* tensor,
                                   bp_error_t* error) noexcept {
    return fence(program(h), error, [&] { program(h)->refit(weight, read(tensor, "tensor")); });
  }
  static bp_status_t BP_CALL read_weight(const bp_program_t* h, uint32_t weight, bp_tensor_t* out,
                                         bp_error_t* error) noexcept {
    return fence(program(h), error, [&] {
      bp_tensor_t tensor = read(out, "out_tensor");
      program(h)->read_weight(weight, tensor);
      write(out, tensor, "out_tensor");
    });
  }
};

// Whether `method`, written &D::name, is D's own and not the base's: the class that a member pointer names is where it
// is declared.
template <class Base, class Method>
struct DeclaredIn : std::false_type {};
template <class Base, class R, class... A>
struct DeclaredIn<Base, R (Base::*)(A...)> : std::true_type {};
template <class Base, class R, class... A>
struct DeclaredIn<Base, R (Base::*)(A...) const> : std::true_type {};
template <class Base, class Method>
constexpr bool overrides(Method) {
  return !DeclaredIn<Base, Method>::value;
}

}  // namespace backplane::sdk
