// SPDX-License-Identifier: Apache-2.0
// Reports of devices and programs other than runs: health, operator sets, types, progress, extents.
#include <algorithm>
#include <tuple>

#include "checks/group.h"

namespace backplane::conform {
namespace {

Result health(Bench& bench) {
  const Device& device = bench.device();
  if (device.plugin().device->health == nullptr) return passed();  // it always works
  Detail detail;
  const bp_status_t status = device.plugin().device->health(device.raw(), detail.error());
  return status == BP_OK
             ? passed()
             : failed(fmt::format("health of a device that works returns {:#x}: {}", status, detail.text()));
}

// The device's operator sets, if they differ from the plugin's.
Result opsets(Bench& bench) {
  const Device& device = bench.device();
  const bp_coverage_api_t& api = *device.plugin().coverage;
  if (api.opsets == nullptr)
    return device.newest_opset() != 0 ? passed() : failed("the plugin names no operator set of ONNX's own domain");
  bp_opsets_t opsets = {.size = sizeof opsets};
  Detail detail;
  const bp_status_t status = api.opsets(device.raw(), &opsets, detail.error());
  if (status != BP_OK) return failed(fmt::format("opsets returns {:#x}: {}", status, detail.text()));
  if (opsets.opset_count == 0 || opsets.opsets == nullptr) return failed("opsets lists none");
  if (opsets.opset_stride < sizeof(bp_opset_t)) return failed("opsets has a stride below that of ABI 1.0");
  for (uint32_t i = 0; i < opsets.opset_count; ++i) {
    const auto& opset = *reinterpret_cast<const bp_opset_t*>(reinterpret_cast<const char*>(opsets.opsets) +
                                                             uint64_t{i} * opsets.opset_stride);
    if (opset.version == 0) return failed(fmt::format("operator set {} of the device has version 0", i));
  }
  return passed();
}

// A node that the device cannot know must get no types.
Result infer(Bench& bench) {
  const Device& device = bench.device();
  if (device.plugin().coverage->infer == nullptr) return not_supported("the device has no operators of its own");
  const Problem problem = problem_of("Add/float/same", bench.seed(), "infer");
  GraphSpec spec = *graph_of(problem, reference(problem), 27);
  spec.nodes[0].domain = "org.example.unknown";
  const Graph graph(std::move(spec));
  uint32_t outputs = 0;
  const bp_infer_sink_t sink = {
      .size = sizeof sink, .self = &outputs, .output = [](void* self, uint32_t, bp_dtype_t, int32_t, const bp_dim_t*) {
        ++*static_cast<uint32_t*>(self);
      }};
  for (const uint32_t node : {0u, 1000u}) {
    const bp_infer_t what = {
        .size = sizeof what, .node = node, .graph = graph.table(), .option_stride = sizeof(bp_option_t)};
    Detail detail;
    const bp_status_t status = device.plugin().coverage->infer(device.raw(), &what, &sink, detail.error());
    if (status == BP_OK || outputs != 0)
      return failed(fmt::format("the types of node {}, which no device knows, are inferred", node));
  }
  return passed();
}

// Steps are reported in order, and not more than there are.
Result progress(Bench& bench) {
  Result result;
  const auto subject = any_subject(bench, result);
  if (subject == nullptr) return result;
  struct Seen {
    uint32_t calls = 0, done = 0, total = 0;
    std::string fault;
  } seen;
  const bp_compile_t what = {.size = sizeof what,
                             .graph = subject->graph->table(),
                             .option_stride = sizeof(bp_option_t),
                             .progress_self = &seen,
                             .progress = [](void* self, uint32_t done, uint32_t total) {
                               Seen& s = *static_cast<Seen*>(self);
                               if (total == 0 || done > total) s.fault = fmt::format("step {} of {}", done, total);
                               if (s.calls != 0 && (done < s.done || total != s.total))
                                 s.fault = fmt::format("step {} of {} after {} of {}", done, total, s.done, s.total);
                               s.calls += 1;
                               s.done = done;
                               s.total = total;
                             }};
  const Device& device = bench.device();
  bp_program_t* program = nullptr;
  Detail detail;
  const bp_status_t status = device.plugin().program->compile(device.raw(), &what, &program, detail.error());
  if (status != BP_OK) return failed(fmt::format("compile returns {:#x}: {}", status, detail.text()));
  device.plugin().program->destroy(program);
  if (!seen.fault.empty()) return failed("progress reports " + seen.fault);
  if (seen.calls == 0) return not_supported("the device reports no progress");
  return seen.done == seen.total ? passed(1) : failed(fmt::format("progress ends at {} of {}", seen.done, seen.total));
}

// Weights that must be requested.
Result lazy_weights(Bench& bench) {
  Result result;
  for (const char* name : {"MatMul/float/odd_positive_constant", "Add/float/same"}) {
    Problem problem = problem_of(name, bench.seed(), "lazy");
    problem.arguments[1].constant = true;
    const auto subject = make_subject(bench.device(), std::move(problem), result);
    if (subject == nullptr) continue;
    subject->graph->hide_weights();
    std::vector<onnx::Tensor> outputs;
    const Answer answer = compute(bench.device(), *subject->graph, subject->inputs, outputs);
    if (!answer.ok()) return failed(answer.describe());
    const std::string fault = subject->fault(outputs);
    return fault.empty() ? passed(1) : failed("with weights that `weight_map` returns: " + fault);
  }
  return result;
}

// If the host collects spans, they state what was computed and when.
Result spans(Bench& bench) {
  Host host;
  host.collect_spans();
  const Backend backend(bench.library(), host);
  const Device device(backend, bench.device_index());
  Result result;
  const auto subject = make_subject(device, problem_of("Add/float/same", bench.seed(), "spans"), result);
  if (subject == nullptr) return result;
  const uint64_t begin = now_ns();
  std::vector<onnx::Tensor> outputs;
  const Answer answer = compute(device, *subject->graph, subject->inputs, outputs);
  if (!answer.ok()) return failed(answer.describe());
  host.finish();
  const std::vector<Span> spans = host.spans();
  uint32_t computed = 0;
  for (const Span& span : spans) {
    if (span.kind < BP_SPAN_COMPUTE || span.kind > BP_SPAN_WAIT)
      return failed(fmt::format("a span is of kind {}, which does not exist", span.kind));
    if (span.end < span.begin) return failed("a span ends before it begins");
    if (span.begin < begin || span.end > now_ns()) return failed("a span lies outside of the run that it is of");
    for (const uint64_t node : span.nodes) {
      if (node != bp_graph_node(subject->graph->table(), 0)->id)
        return failed(fmt::format("a span names node {}, which the graph does not have", node));
      computed += span.kind == BP_SPAN_COMPUTE;
    }
  }
  if (spans.empty()) return not_supported("the device reports no spans");
  return computed != 0 ? passed(1) : failed("no span of kind BP_SPAN_COMPUTE names the node that was computed");
}

// y = Relu(x), [n, 7].
GraphSpec open_graph() {
  GraphSpec spec;
  spec.values.push_back({BP_DTYPE_FLOAT, {-1, 7}, {}, BP_NONE, {"n"}});
  spec.values.push_back({BP_DTYPE_FLOAT, {-1, 7}, {}, BP_NONE, {"n"}});
  spec.nodes.push_back({.op_type = "Relu", .since_version = 14, .inputs = {0}, .outputs = {1}});
  spec.inputs = {0};
  spec.outputs = {1};
  spec.opset = 14;
  return spec;
}

// Memory is bound once, for the largest extents; smaller ones need no binding.
Result capacity(Bench& bench) {
  const Device& device = bench.device();
  const Graph graph(open_graph());
  std::vector<Claim> claims;
  if (const Answer answer = device.coverage(graph, claims); !answer.ok()) return failed(answer.describe());
  if (claims[0].answer != BP_ANSWER_YES) return not_supported("no call whose extents are unknown is claimed");
  const auto slot = device.plugin().instance->extents;
  if (slot == nullptr) return not_supported("new extents need a binding");
  Answer answer;
  const auto program = Program::compile(device, graph, answer);
  const auto instance = program == nullptr ? nullptr : Instance::create(*program, answer);
  if (instance == nullptr) return failed(answer.describe());
  constexpr int64_t kMost = 8;
  Random random(bench.seed(), "capacity");
  const onnx::Tensor x = random_tensor(random, BP_DTYPE_FLOAT, {kMost, 7}, Fill::kAroundZero);
  if (answer = instance->bind_all({x}, {{kMost, 7}}); !answer.ok()) return failed(answer.describe());
  Detail detail;
  const auto resize = [&](int64_t n, int64_t inner) {
    const int64_t extents[] = {n, inner};
    const bp_slot_extents_t slots[] = {{0, 2, extents}, {BP_SLOT_OUTPUT, 2, extents}};
    return slot(instance->raw(), slots, 2, sizeof slots[0], detail.error());
  };
  for (const int64_t n : {kMost, int64_t{3}, int64_t{1}, int64_t{5}}) {
    if (const bp_status_t status = resize(n, 7); status != BP_OK)
      return failed(fmt::format("extents [{}, 7] returns {:#x}: {}", n, status, detail.text()));
    for (const auto& [rows, inner, expected] :
         {std::tuple{kMost + 1, int64_t{7}, BP_BUFFER_TOO_SMALL}, std::tuple{n, int64_t{8}, BP_TYPE_MISMATCH}}) {
      if (const bp_status_t status = resize(rows, inner); status != expected)
        return failed(fmt::format("extents [{}, {}] in memory of [{}, 7] returns {:#x}, not {:#x}", rows, inner, kMost,
                                  status, expected));
    }
    instance->output(0).poison();
    if (answer = instance->run(); !answer.ok()) return failed(answer.describe());
    const onnx::Tensor y = instance->output(0).read();
    const auto* const in = reinterpret_cast<const float*>(x.bytes.data());
    const auto* const out = reinterpret_cast<const float*>(y.bytes.data());
    for (int64_t i = 0; i < n * 7; ++i) {
      const float expected = in[i] > 0 ? in[i] : 0;
      if (out[i] != expected)
        return failed(fmt::format("with [{}, 7] element {} is {}, not {}", n, i, out[i], expected));
    }
    if (n < kMost &&
        std::any_of(y.bytes.begin() + n * 28, y.bytes.end(), [&](std::byte b) { return b != y.bytes.back(); }))
      return failed(fmt::format("with [{}, 7] elements past the end are written", n));
  }
  return passed(1);
}

// A graph whose first extent is known at run time: the program computes its output's extents.
Result extents(Bench& bench) {
  const Device& device = bench.device();
  const Graph graph(open_graph());
  std::vector<Claim> claims;
  if (const Answer answer = device.coverage(graph, claims); !answer.ok()) return failed(answer.describe());
  if (claims[0].answer != BP_ANSWER_YES) return not_supported("no call whose extents are unknown is claimed");
  Answer answer;
  const auto program = Program::compile(device, graph, answer);
  if (program == nullptr) return failed(answer.describe());
  const bp_program_info_t info = program->info();
  if (info.shapes == BP_SHAPES_STATIC) return failed("a program with an unknown extent reports static shapes");
  const auto slot = device.plugin().program->output_extents;
  if (info.shapes != BP_SHAPES_COMPUTED) return not_supported("the extents are known only during the run");
  if (slot == nullptr) return failed("the program reports computed shapes and `output_extents` is NULL");
  Detail detail;
  for (const int64_t n : {1, 5, 0, 1000}) {
    const int64_t shape[] = {n, 7};
    const bp_tensor_t tensor = {.size = sizeof tensor, .dtype = BP_DTYPE_FLOAT, .rank = 2, .extents = shape};
    const bp_shape_query_t query = {.size = sizeof query,
                                    .input_count = 1,
                                    .inputs = &tensor,
                                    .input_stride = sizeof tensor,
                                    .output_stride = sizeof(bp_shape_t)};
    bp_shape_t output = {};
    const bp_status_t status = slot(program->raw(), &query, &output, detail.error());
    if (status != BP_OK) return failed(fmt::format("output_extents returns {:#x}: {}", status, detail.text()));
    if (output.rank != 2 || output.extents[0] != n || output.extents[1] != 7)
      return failed(fmt::format("for [{}, 7] output_extents returns rank {} and [{}, {}]", n, output.rank,
                                output.extents[0], output.extents[1]));
  }
  const int64_t wrong[] = {3, 8};
  const bp_tensor_t tensor = {.size = sizeof tensor, .dtype = BP_DTYPE_FLOAT, .rank = 2, .extents = wrong};
  const bp_shape_query_t query = {.size = sizeof query,
                                  .input_count = 1,
                                  .inputs = &tensor,
                                  .input_stride = sizeof tensor,
                                  .output_stride = sizeof(bp_shape_t)};
  bp_shape_t output = {};
  const bp_status_t status = slot(program->raw(), &query, &output, detail.error());
  return status == BP_TYPE_MISMATCH
             ? passed(1)
             : failed(
                   fmt::format("extents that the graph forbids are answered with {:#x}, not BP_TYPE_MISMATCH", status));
}

}  // namespace

void add_programs(const Selection&, std::vector<Case>& out_cases) {
  out_cases.push_back({"programs/health", health});
  out_cases.push_back({"programs/opsets", opsets});
  out_cases.push_back({"programs/infer", infer});
  out_cases.push_back({"programs/progress", progress});
  out_cases.push_back({"programs/extents", extents});
  out_cases.push_back({"programs/capacity", capacity});
  out_cases.push_back({"programs/lazy_weights", lazy_weights});
  out_cases.push_back({"programs/spans", spans});
}

}  // namespace backplane::conform
