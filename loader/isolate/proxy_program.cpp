// SPDX-License-Identifier: Apache-2.0
// Programs: compiling, loading from the cache, descriptions and weights.
#include "isolate/proxy_program.h"

#include <algorithm>
#include <limits>

#include "base/abi.h"
#include "base/dtype.h"
#include "isolate/answers.h"
#include "isolate/device_limits.h"
#include "isolate/proxy_call.h"

namespace backplane::isolate {
namespace {

ProxyProgram& program_of(const bp_program_t* program) {
  return *reinterpret_cast<ProxyProgram*>(const_cast<bp_program_t*>(program));
}

std::vector<uint32_t> kinds_of(const bp_graph_t& graph, const uint32_t* values, uint32_t count) {
  std::vector<uint32_t> kinds;
  for (uint32_t i = 0; i < count; ++i)
    kinds.push_back(bp_graph_type(&graph, bp_graph_value(&graph, values[i])->type)->kind);
  return kinds;
}

// Compiles a graph, or loads a program from `blob`, the bytes into which it was serialized.
Status make(Operation operation, bp_device_t* handle, const bp_compile_t* what, bp_bytes_t blob,
            bp_program_t** out_program) {
  *out_program = nullptr;
  ProxyDevice& device = device_of(handle);
  BP_ASSIGN(const bp_compile_t compile, abi::read(what, "bp_compile_t"));
  BP_TRY(refuse_chain(compile.chain));
  if (!compile.graph) return {BP_INVALID_ARGUMENT, "bp_compile_t.graph is NULL"};
  Writer request, written;
  request.put<uint32_t>(compile.cancel != nullptr);
  write_options(compile.options, compile.option_count, compile.option_stride, request);
  request.put(compile.compute_types).put(compile.flags).put<uint32_t>(compile.progress != nullptr);
  request.blob(blob.data, blob.size);
  std::unique_ptr<ProxyProgram> program(new ProxyProgram{device.backend, {}, {}, {}, {}, {}, {}});
  program->graphs = write_graph(*compile.graph, written);
  GraphAnswers answers(program->graphs, &compile);
  BP_ASSIGN(const std::string answer,
            device.call(operation, request.take() + written.take(), device.backend.long_patience(compile.cancel),
                        &answers, program->remote));
  Reader in(answer);
  program->remote.handle = in.get<uint64_t>();
  bp_program_info_t& info = program->info;
  info.size = sizeof info;
  info.input_count = in.get<uint32_t>();
  info.output_count = in.get<uint32_t>();
  info.shapes = in.get<uint32_t>();
  info.flags = in.get<uint32_t>();
  info.device_bytes = in.get<uint64_t>();
  program->inplace = in.array<bp_inplace_t>();
  info.inplace = program->inplace.data();
  info.inplace_count = static_cast<uint32_t>(program->inplace.size());
  in.require(info.inplace_count <= kMaxInplacePairs && info.input_count == compile.graph->input_count &&
             info.output_count == compile.graph->output_count);
  if (!in.complete()) return program->remote.process->unreadable(operation);
  program->in_kinds = kinds_of(*compile.graph, compile.graph->inputs, compile.graph->input_count);
  program->out_kinds = kinds_of(*compile.graph, compile.graph->outputs, compile.graph->output_count);
  *out_program = reinterpret_cast<bp_program_t*>(program.release());
  return {};
}

bp_status_t compile(bp_device_t* device, const bp_compile_t* what, bp_program_t** out_program, bp_error_t* error) {
  return fenced(error, [&] { return make(Operation::kCompile, device, what, {}, out_program); });
}

void destroy(bp_program_t* handle) {
  const std::unique_ptr<ProxyProgram> program(handle ? &program_of(handle) : nullptr);
  if (!program) return;
  fenced(nullptr, [&]() -> Status {
    if (!program->remote.process->alive()) return {};
    Writer request;
    request.put(program->remote.handle);
    return program->remote.process
        ->call(Operation::kDestroyProgram, request.bytes(), {}, program->backend.short_patience())
        .take_status();
  });
}

bp_status_t info(const bp_program_t* handle, bp_program_info_t* out_info, bp_error_t* error) {
  return fenced(error, [&] { return abi::write(program_of(handle).info, out_info, "bp_program_info_t"); });
}

bp_status_t output_extents(const bp_program_t* handle, const bp_shape_query_t* what, bp_shape_t* out_shapes,
                           bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    ProxyProgram& program = program_of(handle);
    BP_ASSIGN(const bp_shape_query_t query, abi::read(what, "bp_shape_query_t"));
    Writer request;
    request.put(program.remote.handle).put<uint64_t>(query.input_count);
    for (uint32_t i = 0; i < query.input_count; ++i) {
      const bp_tensor_t tensor = abi::element(query.inputs, i, query.input_stride);
      write_tensor_form(tensor, request);
      const bool known = tensor.buffer.address && !tensor.buffer.memory;
      const char* data = known ? static_cast<const char*>(tensor.buffer.address) + tensor.buffer.offset : nullptr;
      request.put<uint32_t>(known).blob(data, known ? tensor.buffer.bytes : 0);
    }
    GraphAnswers answers(program.graphs);
    BP_ASSIGN(const std::string answer, program.remote.process->call(Operation::kOutputExtents, request.bytes(), {},
                                                                     program.backend.long_patience(nullptr), &answers));
    Reader in(answer);
    std::vector<std::vector<int64_t>> extents(program.info.output_count);
    std::vector<uint32_t> ranks(program.info.output_count);
    for (size_t i = 0; i < extents.size(); ++i) {
      ranks[i] = in.get<uint32_t>();
      extents[i] = in.array<int64_t>();
      in.require(ranks[i] == BP_NONE || (ranks[i] <= BP_MAX_RANK && extents[i].size() == ranks[i]));
    }
    if (!in.complete()) return program.remote.process->unreadable(Operation::kOutputExtents);
    for (size_t i = 0; i < extents.size(); ++i) {
      auto& shape = *reinterpret_cast<bp_shape_t*>(reinterpret_cast<char*>(out_shapes) + i * query.output_stride);
      shape.rank = ranks[i];
      if (ranks[i] != BP_NONE) std::ranges::copy(extents[i], shape.extents);
    }
    return {};
  });
}

// ---- cache ----------------------------------------------------------------------------------------------------------

bp_status_t serialize(const bp_program_t* handle, bp_text_sink_t sink, void* context, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    ProxyProgram& program = program_of(handle);
    Writer request;
    request.put(program.remote.handle);
    GraphAnswers answers(program.graphs);
    BP_ASSIGN(const std::string answer, program.remote.process->call(Operation::kSerialize, request.bytes(), {},
                                                                     program.backend.long_patience(nullptr), &answers));
    sink(context, abi::text(answer));
    return {};
  });
}

bp_status_t validate(bp_device_t* handle, bp_bytes_t blob, uint32_t* out_answer, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    ProxyDevice& device = device_of(handle);
    Writer request;
    request.blob(blob.data, blob.size);
    Remote remote;
    BP_ASSIGN(const std::string answer, device.call(Operation::kValidate, request.bytes(),
                                                    device.backend.long_patience(nullptr), nullptr, remote));
    Reader in(answer);
    const auto verdict = in.get<uint32_t>();
    const std::string_view text = in.text();
    if (!in.complete()) return remote.process->unreadable(Operation::kValidate);
    *out_answer = verdict;
    explain(error, text);
    return {};
  });
}

bp_status_t deserialize(bp_device_t* device, const bp_compile_t* what, bp_bytes_t blob, bp_program_t** out_program,
                        bp_error_t* error) {
  return fenced(error, [&] { return make(Operation::kDeserialize, device, what, blob, out_program); });
}

// ---- weights --------------------------------------------------------------------------------------------------------

bp_status_t refit(bp_program_t* handle, const bp_refit_t* what, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    ProxyProgram& program = program_of(handle);
    BP_ASSIGN(const bp_refit_t known, abi::read(what, "bp_refit_t"));
    Writer request;
    request.put(program.remote.handle).put<uint64_t>(known.count);
    for (uint32_t i = 0; i < known.count; ++i) {
      const bp_refit_weight_t weight = abi::element(known.weights, i, known.stride);
      BP_ASSIGN(const bp_tensor_t tensor, abi::read(weight.tensor, "bp_tensor_t"));
      if (tensor.buffer.memory)
        return {BP_UNSUPPORTED, "device memory cannot be passed to an isolated backend: refit from host memory"};
      request.put(weight.weight);
      write_tensor_form(tensor, request);
      const char* data = static_cast<const char*>(tensor.buffer.address);
      request.blob(data ? data + tensor.buffer.offset : nullptr, data ? tensor.buffer.bytes : 0);
    }
    GraphAnswers answers(program.graphs);
    return program.remote.process
        ->call(Operation::kRefit, request.bytes(), {}, program.backend.long_patience(nullptr), &answers)
        .take_status();
  });
}

bp_status_t read_weight(const bp_program_t* handle, uint32_t weight, bp_tensor_t* out_tensor, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    ProxyProgram& program = program_of(handle);
    BP_ASSIGN(const bp_tensor_t tensor, abi::read(out_tensor, "bp_tensor_t"));
    if (tensor.buffer.memory)
      return {BP_UNSUPPORTED, "device memory cannot be passed to an isolated backend: read into host memory"};
    if (tensor.buffer.bytes && !tensor.buffer.address)
      return {BP_INVALID_ARGUMENT,
              "the tensor's address is NULL, but its buffer has " + std::to_string(tensor.buffer.bytes) + " bytes"};
    Writer request;
    request.put(program.remote.handle).put(weight).put(tensor.buffer.bytes);
    write_tensor_form(tensor, request);
    GraphAnswers answers(program.graphs);
    BP_ASSIGN(const std::string answer, program.remote.process->call(Operation::kReadWeight, request.bytes(), {},
                                                                     program.backend.long_patience(nullptr), &answers));
    if (answer.size() != tensor.buffer.bytes) return program.remote.process->unreadable(Operation::kReadWeight);
    if (!answer.empty())
      std::memcpy(static_cast<char*>(tensor.buffer.address) + tensor.buffer.offset, answer.data(), answer.size());
    return {};
  });
}

}  // namespace

void fill_program_table(uint32_t offered, bp_program_api_t& out) {
  out.size = sizeof out;
  out.compile = compile;
  out.destroy = destroy;
  out.info = info;
  if (offered & kOutputExtents) out.output_extents = output_extents;
}

void fill_cache_table(uint32_t offered, bp_cache_api_t& out) {
  out.size = sizeof out;
  if (offered & kSerialize) out.serialize = serialize;
  if (offered & kValidate) out.validate = validate;
  if (offered & kDeserialize) out.deserialize = deserialize;
}

void fill_weights_table(uint32_t offered, bp_weights_api_t& out) {
  out.size = sizeof out;
  if (offered & kRefit) out.refit = refit;
  if (offered & kReadWeight) out.read = read_weight;
}

}  // namespace backplane::isolate
