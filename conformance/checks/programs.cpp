// SPDX-License-Identifier: Apache-2.0
// Cases of the group programs: what devices and programs report, such as health, operator sets, types, progress and
// spans, and extents that are known only at run time.
#include <algorithm>
#include <set>
#include <tuple>

#include "backplane/sizes.h"
#include "checks/group.h"

namespace backplane::conform {
namespace {

Result health(Bench& bench) {
  const Device& device = bench.device();
  if (device.plugin().device->health == nullptr) return passed();  // a device without `health` counts as healthy
  Detail detail;
  const bp_status_t status = device.plugin().device->health(device.raw(), detail.error());
  return status == BP_OK
             ? passed()
             : failed(fmt::format("health of a device that works returns {}: {}", status_name(status), detail.text()));
}

// Checks the operator sets that the device reports. They may differ from those that the plugin reports.
Result opsets(Bench& bench) {
  const Device& device = bench.device();
  const bp_coverage_api_t& api = *device.plugin().coverage;
  if (api.opsets == nullptr)
    return device.newest_opset() != 0
               ? passed()
               : failed("opsets is NULL, and newest_opsets has no version for ONNX's own domain");
  bp_opsets_t opsets = {.size = sizeof opsets};
  Detail detail;
  const bp_status_t status = api.opsets(device.raw(), &opsets, detail.error());
  if (status != BP_OK) return failed(fmt::format("opsets returns {}: {}", status_name(status), detail.text()));
  if (opsets.opset_count == 0 || opsets.opsets == nullptr) return failed("opsets lists no operator set");
  if (opsets.opset_stride < BP_SIZE_1_0(bp_opset_t))
    return failed(fmt::format("opsets has a stride of {}, below the {} of ABI 1.0", opsets.opset_stride,
                              BP_SIZE_1_0(bp_opset_t)));
  for (uint32_t i = 0; i < opsets.opset_count; ++i) {
    const auto& opset = *reinterpret_cast<const bp_opset_t*>(reinterpret_cast<const char*>(opsets.opsets) +
                                                             uint64_t{i} * opsets.opset_stride);
    if (opset.version == 0) return failed(fmt::format("operator set {} of the device has version 0", i));
  }
  return passed();
}

// `infer` must report no types for an operator that the device does not know, or for a node that does not exist.
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
      return failed(fmt::format("infer accepts node {}, {}", node,
                                node == 0 ? "whose operator is unknown" : "which does not exist"));
  }
  return passed();
}

// y = Same(x), an operator outside ONNX, which the plugin may implement. Its `infer` must report the type of x for y.
Result own_operator(Bench& bench) {
  const Device& device = bench.device();
  GraphSpec spec;
  spec.values.push_back({.extents = {2, 3}});
  spec.values.push_back({.extents = {2, 3}});
  spec.nodes.push_back({.op_type = "Same", .domain = "org.backplane.test", .inputs = {0}, .outputs = {1}});
  spec.inputs = {0};
  spec.outputs = {1};
  spec.opset = 18;
  const Graph graph(std::move(spec));
  std::vector<Claim> claims;
  if (const Answer answer = device.coverage(graph, claims); !answer.ok()) return failed(answer.describe());
  if (claims[0].answer != BP_ANSWER_YES) return not_supported("the device does not know the harness's operator");
  if (device.plugin().coverage->infer == nullptr)
    return not_supported("the plugin has no `infer`: types are those that the model declares");
  std::string types;
  const bp_infer_sink_t sink = {
      .size = sizeof sink,
      .self = &types,
      .output = [](void* self, uint32_t slot, bp_dtype_t dtype, int32_t rank, const bp_dim_t* dims) {
        std::vector<int64_t> extents;
        for (int32_t d = 0; d < rank; ++d) extents.push_back(dims[d].extent);
        *static_cast<std::string*>(self) += fmt::format("{}: {} ", slot, onnx::describe(dtype, extents));
      }};
  const bp_infer_t what = {.size = sizeof what, .graph = graph.table(), .option_stride = sizeof(bp_option_t)};
  Detail detail;
  const bp_status_t status = device.plugin().coverage->infer(device.raw(), &what, &sink, detail.error());
  if (status != BP_OK) return failed(fmt::format("infer returns {}: {}", status_name(status), detail.text()));
  if (types != "0: float[2,3] ")
    return failed(fmt::format("infer reports the types '{}', not '0: float[2,3] '", types));
  Random random(bench.seed(), "own_operator");
  const onnx::Tensor x = random_tensor(random, BP_DTYPE_FLOAT, {2, 3}, Fill::kAroundZero);
  std::vector<onnx::Tensor> outputs;
  if (const Answer answer = compute(device, graph, {x}, outputs); !answer.ok()) return failed(answer.describe());
  return outputs.at(0).bytes == x.bytes ? passed(1) : failed("the output differs from the input");
}

GraphSpec relu_chain(uint32_t nodes) {
  GraphSpec spec;
  spec.values.push_back({.extents = {4}});
  for (uint32_t i = 0; i < nodes; ++i) {
    spec.values.push_back({.extents = {4}});
    spec.nodes.push_back({.op_type = "Relu", .since_version = 14, .inputs = {i}, .outputs = {i + 1}});
  }
  spec.inputs = {0};
  spec.outputs = {nodes};
  spec.opset = 14;
  return spec;
}

// Checks that the list is not empty and that each node is below `count` and occurs once. Returns a description of the
// fault, or an empty string.
std::string fault_of(const std::vector<uint32_t>& nodes, uint32_t count) {
  if (nodes.empty()) return "without nodes";
  std::set<uint32_t> seen;
  for (const uint32_t node : nodes) {
    if (node >= count) return fmt::format("with node {} of {}", node, count);
    if (!seen.insert(node).second) return fmt::format("with node {} twice", node);
  }
  return "";
}

// A group that the device reports must consist of the graph's nodes.
Result groups(Bench& bench) {
  const Device& device = bench.device();
  const Graph graph(relu_chain(3));
  struct Seen {
    uint32_t groups = 0;
    std::string fault;
  } seen;
  const bp_coverage_sink_t sink = {
      .size = sizeof sink,
      .self = &seen,
      .verdicts = [](void*, const bp_verdict_t*, uint32_t, uint32_t) {},
      .groups =
          [](void* self, const bp_group_t* groups, uint32_t count, uint32_t stride) {
            Seen& s = *static_cast<Seen*>(self);
            for (uint32_t i = 0; i < count; ++i) {
              const auto& group =
                  *reinterpret_cast<const bp_group_t*>(reinterpret_cast<const char*>(groups) + uint64_t{i} * stride);
              const std::string fault = fault_of({group.nodes, group.nodes + group.node_count}, 3);
              if (!fault.empty()) s.fault = "a group is reported " + fault;
              if (!(group.seconds >= 0)) s.fault = fmt::format("a group takes {} seconds", group.seconds);
              if (!(group.confidence >= 0 && group.confidence <= 1))
                s.fault = fmt::format("a group's time has confidence {}", group.confidence);
              ++s.groups;
            }
          }};
  const bp_coverage_query_t query = {
      .size = sizeof query, .graph = graph.table(), .option_stride = sizeof(bp_option_t)};
  Detail detail;
  const bp_status_t status = device.plugin().coverage->query(device.raw(), &query, &sink, detail.error());
  if (status != BP_OK) return failed(fmt::format("the query returns {}: {}", status_name(status), detail.text()));
  if (!seen.fault.empty()) return failed(seen.fault);
  return seen.groups == 0 ? not_supported("the device reports no groups") : passed();
}

// If the device splits an island that is too large, it must accept each part. Only parts of consecutive nodes are
// reviewed again.
Result split(Bench& bench) {
  const Device& device = bench.device();
  if (device.plugin().coverage->review == nullptr)
    return not_supported("the device has no `review`: it accepts every island of claimed nodes");
  constexpr uint32_t kNodes = 500;
  const Graph graph(relu_chain(kNodes));
  std::vector<Claim> claims;
  if (const Answer answer = device.coverage(graph, claims); !answer.ok()) return failed(answer.describe());
  if (claims[0].answer != BP_ANSWER_YES) return not_supported("Relu is not claimed");
  std::vector<std::vector<uint32_t>> parts;
  bp_review_t review = {
      .size = sizeof review, .split_self = &parts, .split = [](void* self, const uint32_t* nodes, uint32_t count) {
        static_cast<std::vector<std::vector<uint32_t>>*>(self)->emplace_back(nodes, nodes + count);
      }};
  const bp_compile_t what = {.size = sizeof what, .graph = graph.table(), .option_stride = sizeof(bp_option_t)};
  Detail detail;
  const bp_status_t status = device.plugin().coverage->review(device.raw(), &what, &review, detail.error());
  if (status != BP_OK) return failed(fmt::format("review returns {}: {}", status_name(status), detail.text()));
  if (review.answer > BP_REVIEW_SPLIT)
    return failed(fmt::format("review returns the undefined answer {}", review.answer));
  if (review.answer != BP_REVIEW_SPLIT)
    return parts.empty() ? not_supported(fmt::format("an island of {} nodes is not split", kNodes))
                         : failed("`split` was called, but the answer is not BP_REVIEW_SPLIT");
  if (parts.empty()) return failed("the answer is BP_REVIEW_SPLIT, but `split` was not called");
  std::vector<uint32_t> all;
  for (std::vector<uint32_t>& part : parts) {
    if (part.empty()) return failed("the island is split into parts, one of which is empty");
    all.insert(all.end(), part.begin(), part.end());
    if (const std::string fault = fault_of(all, kNodes); !fault.empty()) return failed("the island is split " + fault);
    std::ranges::sort(part);                                      // a part has no order
    if (part.back() - part.front() + 1 != part.size()) continue;  // not consecutive nodes, so the part is not a chain
    if (const Answer answer = device.review(Graph(relu_chain(static_cast<uint32_t>(part.size())))); !answer.ok())
      return failed(fmt::format("a part of {} nodes: {}", part.size(), answer.describe()));
  }
  return passed();
}

// Progress is reported in order, and never exceeds the total.
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
  if (status != BP_OK) return failed(fmt::format("compile returns {}: {}", status_name(status), detail.text()));
  device.plugin().program->destroy(program);
  if (!seen.fault.empty()) return failed("progress reports " + seen.fault);
  if (seen.calls == 0) return not_supported("the device reports no progress");
  return seen.done == seen.total ? passed(1) : failed(fmt::format("progress ends at {} of {}", seen.done, seen.total));
}

// The graph hides the bytes of its weights, so the plugin must request them with `weight_map`.
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
    return fault.empty() ? passed(1) : failed("with weights requested by `weight_map`: " + fault);
  }
  return result;
}

// If the host collects spans, they must state what was computed and when.
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
      return failed(fmt::format("a span has the undefined kind {}", span.kind));
    if (span.end < span.begin) return failed("a span ends before it begins");
    if (span.begin < begin || span.end > now_ns()) return failed("a span is outside the time of its run");
    for (const uint64_t node : span.nodes) {
      if (node != bp_graph_node(subject->graph->table(), 0)->id)
        return failed(fmt::format("a span names node {}, which the graph does not have", node));
      computed += span.kind == BP_SPAN_COMPUTE;
    }
  }
  if (spans.empty()) return not_supported("the device reports no spans");
  return computed != 0 ? passed(1) : failed("no span of kind BP_SPAN_COMPUTE names the node that was computed");
}

// y = Relu(x), where x has the shape [n, 7] and n is unknown.
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

// Memory is bound once for the largest extents. Smaller extents need no new binding.
Result capacity(Bench& bench) {
  const Device& device = bench.device();
  const Graph graph(open_graph());
  std::vector<Claim> claims;
  if (const Answer answer = device.coverage(graph, claims); !answer.ok()) return failed(answer.describe());
  if (claims[0].answer != BP_ANSWER_YES) return not_supported("no call whose extents are unknown is claimed");
  const auto slot = device.plugin().instance->extents;
  if (slot == nullptr) return not_supported("the device needs new bindings for new extents");
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
      return failed(fmt::format("extents [{}, 7] returns {}: {}", n, status_name(status), detail.text()));
    for (const auto& [rows, inner, expected] :
         {std::tuple{kMost + 1, int64_t{7}, BP_BUFFER_TOO_SMALL}, std::tuple{n, int64_t{8}, BP_TYPE_MISMATCH}}) {
      if (const bp_status_t status = resize(rows, inner); status != expected)
        return failed(fmt::format("setting extents [{}, {}] in memory of [{}, 7] returns {}, not {}", rows, inner,
                                  kMost, status_name(status), status_name(expected)));
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
      return failed(fmt::format("with extents [{}, 7], elements past the end are written", n));
  }
  return passed(1);
}

// The first extent is known only at run time. The program must compute the extents of its output.
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
  if (slot == nullptr) return failed("the program reports computed shapes, but `output_extents` is NULL");
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
    if (status != BP_OK)
      return failed(fmt::format("output_extents returns {}: {}", status_name(status), detail.text()));
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
             : failed(fmt::format("for extents that the graph forbids, output_extents returns {}, not BP_TYPE_MISMATCH",
                                  status_name(status)));
}

// y = NonZero(x), z = Neg(x). The run requests memory for y once it knows y's extents. The memory of z is bound before
// the run, because z's extents follow from those of x.
Result data_dependent(Bench& bench) {
  const Device& device = bench.device();
  GraphSpec spec;
  spec.values.push_back({BP_DTYPE_FLOAT, {-1}, {}, BP_NONE, {"n"}});
  spec.values.push_back({.dtype = BP_DTYPE_INT64, .extents = {1, -1}});
  spec.values.push_back({BP_DTYPE_FLOAT, {-1}, {}, BP_NONE, {"n"}});
  spec.nodes.push_back({.op_type = "NonZero", .since_version = 13, .inputs = {0}, .outputs = {1}});
  spec.nodes.push_back({.op_type = "Neg", .since_version = 13, .inputs = {0}, .outputs = {2}});
  spec.inputs = {0};
  spec.outputs = {1, 2};
  spec.opset = 13;
  const Graph graph(std::move(spec));
  std::vector<Claim> claims;
  if (const Answer answer = device.coverage(graph, claims); !answer.ok()) return failed(answer.describe());
  if (claims[0].answer != BP_ANSWER_YES || claims[1].answer != BP_ANSWER_YES)
    return not_supported("NonZero or Neg is not claimed");
  Answer answer;
  const auto program = Program::compile(device, graph, answer);
  const auto instance = program == nullptr ? nullptr : Instance::create(*program, answer);
  if (instance == nullptr) return failed(answer.describe());
  if (program->info().shapes != BP_SHAPES_DATA_DEPENDENT)
    return failed(fmt::format("the program of NonZero reports shapes of kind {}, not BP_SHAPES_DATA_DEPENDENT",
                              program->info().shapes));
  for (const std::vector<int64_t>& expected : {std::vector<int64_t>{1, 3, 4}, std::vector<int64_t>{}}) {
    onnx::Tensor x{BP_DTYPE_FLOAT, {6}, std::vector<std::byte>(6 * sizeof(float))};
    for (const int64_t i : expected) reinterpret_cast<float*>(x.bytes.data())[i] = -2;
    std::vector<onnx::Tensor> outputs;
    if (answer = instance->bind_all({x}, {{1, static_cast<int64_t>(expected.size())}, {6}}); !answer.ok())
      return failed(answer.describe());
    if (answer = instance->run_checked(outputs); !answer.ok()) return failed(answer.describe());
    const auto* const seen = reinterpret_cast<const int64_t*>(outputs.at(0).bytes.data());
    if (!std::equal(expected.begin(), expected.end(), seen))
      return failed(fmt::format("the positions of {} numbers that are not 0 are wrong", expected.size()));
    const auto* const before = reinterpret_cast<const float*>(x.bytes.data());
    const auto* const after = reinterpret_cast<const float*>(outputs.at(1).bytes.data());
    if (!std::equal(before, before + 6, after, [](float a, float b) { return -a == b; }))
      return failed("the output of Neg, which is in one program with NonZero, is wrong");
  }
  return passed(1);
}

}  // namespace

void add_programs(const Selection&, std::vector<Case>& out_cases) {
  out_cases.push_back({"programs/health", health});
  out_cases.push_back({"programs/opsets", opsets});
  out_cases.push_back({"programs/infer", infer});
  out_cases.push_back({"programs/own_operator", own_operator});
  out_cases.push_back({"programs/groups", groups});
  out_cases.push_back({"programs/split", split});
  out_cases.push_back({"programs/progress", progress});
  out_cases.push_back({"programs/extents", extents});
  out_cases.push_back({"programs/capacity", capacity});
  out_cases.push_back({"programs/data_dependent", data_dependent});
  out_cases.push_back({"programs/lazy_weights", lazy_weights});
  out_cases.push_back({"programs/spans", spans});
}

}  // namespace backplane::conform
