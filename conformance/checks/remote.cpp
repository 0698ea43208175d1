// SPDX-License-Identifier: Apache-2.0
#include "checks/remote.h"

#include <exception>

#include "checks/wire.h"

namespace backplane::conform {
namespace {

enum class Ask : uint8_t { kIdentity, kFacts, kCoverage, kReview, kCompile, kRun };
enum class Outcome : uint8_t { kDone, kBreach, kError };

constexpr uint64_t kMaxText = 4000;      // bytes in one text from a plugin
constexpr uint64_t kMaxReply = 1 << 20;  // bytes, without claims and outputs
constexpr uint64_t kMaxClaim = 2 * kMaxText;

std::string_view cut(std::string_view text) {
  return text.substr(0, kMaxText);
}

Writer request(Ask what) {
  Writer writer;
  writer.number(static_cast<uint8_t>(what));
  return writer;
}

void write(Writer& to, const Answer& answer) {
  to.number(static_cast<uint32_t>(answer.status)).number(static_cast<uint8_t>(answer.stage));
  to.text(cut(answer.text)).number(answer.run);
}

Answer read_answer(Reader& from) {
  Answer answer;
  answer.status = static_cast<bp_status_t>(from.number<uint32_t>());
  const auto stage = from.number<uint8_t>();
  if (stage > static_cast<uint8_t>(Stage::kRefit)) throw std::runtime_error("a reply has an invalid stage");
  answer.stage = static_cast<Stage>(stage);
  answer.text = from.text();
  answer.run = from.number<uint64_t>();
  return answer;
}

// Reads the outcome of a reply and returns a reader for the rest. Throws if the outcome is a failure.
Reader opened(const std::string& reply) {
  Reader reader(reply);
  const auto outcome = static_cast<Outcome>(reader.number<uint8_t>());
  if (outcome == Outcome::kBreach) throw Breach(reader.text());
  if (outcome != Outcome::kDone) throw std::runtime_error(reader.text());
  return reader;
}

std::string_view view(bp_text_t text) {
  return text.data == nullptr ? std::string_view() : cut({text.data, text.size});
}

// --- In the process that loads the plugin ---

void reply_identity(Bench& bench, Writer& reply) {
  const bp_plugin_t& plugin = bench.device().plugin();
  const bp_device_info_t& info = bench.device().info();
  reply.text(view(plugin.id)).text(view(plugin.release)).text(view(plugin.vendor)).number(bench.device_index());
  reply.text(view(info.name)).text(view(info.driver)).text(view(info.arch)).number(static_cast<uint32_t>(info.flags));
}

void reply_coverage(const Device& device, Reader& asked, Writer& reply) {
  std::vector<Claim> claims;
  const Graph graph(asked.graph());
  write(reply, device.coverage(graph, claims));
  reply.number<uint64_t>(claims.size());
  for (const Claim& claim : claims) {
    reply.number(claim.answer).number(claim.reason).number(claim.compute_types).number(claim.verdicts);
    reply.text(cut(claim.detail));
  }
}

void reply_run(Bench& bench, Reader& asked, Writer& reply) {
  const Graph graph(asked.graph());
  std::vector<std::vector<onnx::Tensor>> results;
  Answer answer;
  const auto program = Program::compile(bench.device(), graph, answer);
  const auto instance = program == nullptr ? nullptr : Instance::create(*program, answer);
  const uint64_t runs = asked.number<uint64_t>();
  for (uint64_t run = 0; run < runs && instance != nullptr && answer.ok(); ++run) {
    std::vector<onnx::Tensor> inputs(asked.count());
    for (onnx::Tensor& input : inputs) input = asked.tensor();
    std::vector<std::vector<int64_t>> extents(asked.number<uint64_t>());
    for (auto& one : extents) one = asked.numbers<int64_t>();
    answer = instance->bind_all(inputs, extents);
    std::vector<onnx::Tensor> outputs;
    if (answer.ok()) answer = instance->run_checked(outputs);
    if (answer.ok()) results.push_back(std::move(outputs));
  }
  write(reply, answer);
  reply.text(cut(bench.host().misuse())).number<uint64_t>(results.size());
  for (const auto& outputs : results) {
    for (const onnx::Tensor& output : outputs) reply.numbers(output.bytes);
  }
}

std::string fulfil(Bench& bench, const std::string& request) {
  Reader asked(request);
  const auto what = static_cast<Ask>(asked.number<uint8_t>());
  const Device& device = bench.device();
  Writer reply;
  reply.number(static_cast<uint8_t>(Outcome::kDone));
  switch (what) {
    case Ask::kIdentity:
      reply_identity(bench, reply);
      break;
    case Ask::kFacts:
      reply.number(device.newest_opset()).number(static_cast<uint32_t>(device.info().flags));
      break;
    case Ask::kCoverage:
      reply_coverage(device, asked, reply);
      break;
    case Ask::kReview:
      write(reply, device.review(Graph(asked.graph())));
      break;
    case Ask::kCompile: {
      const Graph graph(asked.graph());
      Answer answer;
      Program::compile(device, graph, answer);
      write(reply, answer);
      break;
    }
    case Ask::kRun:
      reply_run(bench, asked, reply);
      break;
  }
  return reply.take();
}

std::string failure(Outcome outcome, std::string_view text) {
  Writer reply;
  reply.number(static_cast<uint8_t>(outcome)).text(cut(text));
  return reply.take();
}

}  // namespace

std::string serve(Bench& bench, const std::string& request) {
  try {
    return fulfil(bench, request);
  } catch (const Breach& breach) {
    return failure(Outcome::kBreach, breach.what());
  } catch (const std::exception& error) {
    return failure(Outcome::kError, error.what());
  }
}

RemoteDevice local_device(Bench& bench) {
  return RemoteDevice([&bench](const std::string& request, uint64_t) { return serve(bench, request); }, bench.seed());
}

// --- In the judge's process: a reply is untrusted, and must match its request ---

Identity RemoteDevice::identity() {
  const std::string reply = call_(request(Ask::kIdentity).take(), kMaxReply);
  Reader reader = opened(reply);
  Identity who;
  who.backend = reader.text();
  who.version = reader.text();
  who.vendor = reader.text();
  who.device_index = reader.number<uint32_t>();
  who.device = reader.text();
  who.driver = reader.text();
  who.arch = reader.text();
  who.flags = reader.number<uint32_t>();
  return who;
}

const RemoteDevice::DeviceProperties& RemoteDevice::properties() {
  if (!properties_) {
    const std::string reply = call_(request(Ask::kFacts).take(), kMaxReply);
    Reader reader = opened(reply);
    const DeviceProperties read{reader.number<uint32_t>(), reader.number<uint32_t>()};
    if (expected_flags_ && read.flags != *expected_flags_)
      throw Breach(fmt::format("the device reports the flags {:#x} in this process, and {:#x} in another", read.flags,
                               *expected_flags_));
    properties_ = read;
  }
  return *properties_;
}

Answer RemoteDevice::coverage(const GraphSpec& spec, std::vector<Claim>& out_claims) {
  const std::string reply =
      call_(request(Ask::kCoverage).graph(spec).take(), kMaxReply + spec.nodes.size() * kMaxClaim);
  Reader reader = opened(reply);
  Answer answer = read_answer(reader);
  out_claims.assign(reader.count(), {});
  for (Claim& claim : out_claims) {
    claim.answer = reader.number<uint32_t>();
    claim.reason = reader.number<uint32_t>();
    claim.compute_types = reader.number<uint32_t>();
    claim.verdicts = reader.number<uint32_t>();
    claim.detail = reader.text();
  }
  if (answer.ok() && out_claims.size() != spec.nodes.size())
    throw std::runtime_error(fmt::format("a reply has {} claims for {} nodes", out_claims.size(), spec.nodes.size()));
  return answer;
}

Answer RemoteDevice::review(const GraphSpec& spec) {
  const std::string reply = call_(request(Ask::kReview).graph(spec).take(), kMaxReply);
  Reader reader = opened(reply);
  return read_answer(reader);
}

Answer RemoteDevice::compile(const GraphSpec& spec) {
  const std::string reply = call_(request(Ask::kCompile).graph(spec).take(), kMaxReply);
  Reader reader = opened(reply);
  return read_answer(reader);
}

Answer RemoteDevice::run(const GraphSpec& spec, const std::vector<RemoteRun>& runs,
                         std::vector<std::vector<onnx::Tensor>>& out_outputs) {
  Writer writer = request(Ask::kRun);
  writer.graph(spec).number<uint64_t>(runs.size());
  uint64_t expected_bytes = 0;
  std::vector<std::vector<onnx::Tensor>> expected;  // types and extents of the outputs of each run
  for (const RemoteRun& run : runs) {
    writer.number<uint64_t>(run.inputs.size());
    for (const onnx::Tensor& input : run.inputs) writer.tensor(input);
    writer.number<uint64_t>(run.extents.size());
    for (const auto& extents : run.extents) writer.numbers(extents);
    auto& outputs = expected.emplace_back();
    for (size_t o = 0; o < spec.outputs.size(); ++o) {
      const ValueSpec& value = spec.values[spec.outputs[o]];
      outputs.push_back({value.dtype, run.extents.empty() ? value.extents : run.extents.at(o), {}});
      expected_bytes += onnx::dense_bytes(value.dtype, outputs.back().extents) + sizeof(uint64_t);
    }
  }
  const std::string reply = call_(writer.take(), kMaxReply + expected_bytes);
  Reader reader = opened(reply);
  Answer answer = read_answer(reader);
  misuse_ = reader.text();
  const auto finished = reader.number<uint64_t>();
  if (finished > runs.size() || (answer.ok() && finished != runs.size()))
    throw std::runtime_error(
        fmt::format("a reply has the outputs of {} runs; {} were requested", finished, runs.size()));
  expected.resize(finished);
  for (auto& outputs : expected) {
    for (onnx::Tensor& output : outputs) {
      output.bytes = reader.numbers<std::byte>();
      if (output.bytes.size() != onnx::dense_bytes(output.dtype, output.extents))
        throw std::runtime_error("an output does not have the size of its tensor");
    }
  }
  out_outputs = std::move(expected);
  return answer;
}

Answer RemoteDevice::compute(const GraphSpec& spec, const std::vector<onnx::Tensor>& inputs,
                             std::vector<onnx::Tensor>& out_outputs) {
  std::vector<std::vector<onnx::Tensor>> outputs;
  Answer answer = run(spec, {RemoteRun{inputs}}, outputs);
  if (answer.ok()) out_outputs = std::move(outputs.at(0));
  return answer;
}

std::optional<Question> make_question(RemoteDevice& device, Problem problem, Result& out_result) {
  References references = reference(problem);
  std::optional<GraphSpec> spec = graph_of(problem, references, device.newest_opset());
  if (!spec) {
    out_result = not_supported(fmt::format("the plugin supports at most operator set {}", device.newest_opset()));
    return {};
  }
  std::vector<Claim> claims;
  if (const Answer answer = device.coverage(*spec, claims); !answer.ok()) {
    out_result = failed(answer.describe());
    return {};
  }
  if (claims.at(0).answer == BP_ANSWER_NO) {
    out_result = not_supported(fmt::format("reason {}: {}", claims[0].reason, claims[0].detail));
    return {};
  }
  std::vector<onnx::Tensor> inputs = run_inputs(problem);
  return Question{std::move(problem), std::move(references), std::move(*spec), std::move(inputs)};
}

}  // namespace backplane::conform
