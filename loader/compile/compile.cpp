// SPDX-License-Identifier: Apache-2.0
#include "compile/compile.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <set>

#include "base/abi.h"
#include "base/callback.h"
#include "base/counted.h"
#include "base/coverage_limits.h"
#include "base/keep.h"
#include "compile/cache.h"
#include "host/cancel.h"

namespace backplane {

Program::~Program() {
  if (!handle) return;
  if (!device->given_up()) {
    plugin->program->destroy(handle);
    return;
  }
  // The device was abandoned, so no function of the plugin may be called, not even `destroy`. The program stays
  // allocated with everything that it may borrow.
  struct Kept {
    bp_program_t* handle;
    std::shared_ptr<const model::View> view;
    std::vector<char> blob;
  };
  keep_value_for_good(Kept{handle, std::move(view), std::move(blob)});
}

std::string label_of(const model::Graph& graph, uint64_t node_id) {
  if (node_id == BP_NO_NODE) return {};
  for (const model::Node& node : graph.nodes)
    if (node.id == node_id) return node.label();
  for (const model::Call& call : graph.calls)
    if (call.node.id == node_id) return call.node.label();
  for (const auto& inner : graph.subgraphs)
    if (std::string label = label_of(*inner, node_id); !label.empty()) return label;
  return {};
}

std::shared_ptr<Program> propose(const std::shared_ptr<const model::Model>& model, const DeviceCoverage& coverage,
                                 const Island& island, const model::Refit& refit) {
  auto program = std::make_shared<Program>();
  program->device = coverage.device;
  program->plugin = coverage.device->backend().plugin;
  program->view =
      model::View::island(model, island.nodes, island.outputs, coverage.device->newest(), refit, coverage.calls);
  const bp_graph_t& graph = *program->view->abi();
  for (uint32_t i = 0; i < graph.input_count; ++i)
    program->inputs.push_back(program->view->graph_value(graph.inputs[i]));
  program->outputs = island.outputs;
  program->seconds = island.seconds;
  return program;
}

namespace {

struct ReviewResult {
  bp_review_t review{};
  std::vector<std::vector<uint32_t>> split;  // node numbers in the island; one list per part
  uint64_t bytes = 0;                        // of `split`
  std::string why;                           // the backend's reason for not accepting the island; may be empty
  CallbackGuard callbacks;
};

// The arguments for compiling an island, and the memory that they point to.
struct Request {
  bp_compile_t what{};
  std::vector<bp_option_t> options;

  Request(const Program& program, const CompileOptions& how) {
    if (auto found = how.options.find(program.device->backend().id); found != how.options.end())
      options = abi_options(found->second);
    what.size = sizeof what;
    what.compute_types = how.compute_types;
    what.graph = program.view->abi();
    what.options = options.data();
    what.option_count = static_cast<uint32_t>(options.size());
    what.option_stride = sizeof(bp_option_t);
    // The flag is not set for backends that cannot replace weights: a refit compiles their programs again.
    if (how.refit && program.plugin->weights && program.plugin->weights->refit) what.flags = BP_COMPILE_REFIT;
    what.cancel = how.cancel;
  }
};

Result<ReviewResult> query_review(const DeviceCoverage& coverage, const Program& program, const CompileOptions& how) {
  const Request request(program, how);
  ReviewResult result;
  result.review.size = sizeof result.review;
  result.review.split_self = &result;
  result.review.split = [](void* self, const uint32_t* nodes, uint32_t count) {
    ReviewResult& review = *static_cast<ReviewResult*>(self);
    review.bytes += sizeof review.split[0] + uint64_t{count} * sizeof *nodes;
    if (review.bytes > kMaxAnswerBytes) return;
    review.callbacks.run([&] { review.split.emplace_back(nodes, nodes + (nodes ? count : 0)); });
  };
  PluginError error;
  const bp_status_t code =
      program.plugin->coverage->review(coverage.handle, &request.what, &result.review, error.get());
  result.callbacks.rethrow();
  BP_TRY(error.status(code, "device '" + coverage.device->name() + "': review failed"));
  if (result.bytes > kMaxAnswerBytes)
    return Status(BP_INTERNAL, "device '" + coverage.device->name() +
                                   "': its plugin split an island into parts of more than " +
                                   std::to_string(kMaxAnswerBytes >> 20) + " MiB");
  result.why = error.text();
  return result;
}

}  // namespace

Result<bool> review(std::vector<DeviceCoverage>& coverage, const Placement& placement,
                    const std::vector<std::shared_ptr<Program>>& proposals, const CompileOptions& how, bool may_split) {
  bool accepted = true;
  uint32_t next_part = 1;
  for (const DeviceCoverage& device : coverage)
    for (const NodeVerdict& verdict : device.nodes) next_part = std::max(next_part, verdict.part + 1);
  for (size_t k = 0; k < proposals.size(); ++k) {
    Program& program = *proposals[k];
    if (!program.plugin->coverage->review) continue;
    if (cancelled(how.cancel)) return Status(BP_CANCELLED, "cancelled while islands were being reviewed");
    const Island& island = placement.islands[k];
    DeviceCoverage& device = coverage[island.device];
    if (device.device->given_up()) return device.device->lost();
    BP_ASSIGN(const ReviewResult result, query_review(device, program, how));
    if (result.review.seconds > 0) program.seconds = result.review.seconds;
    if (result.review.answer == BP_REVIEW_ACCEPT) continue;
    accepted = false;

    std::set<uint32_t> kept, named;  // `named`: nodes of the view; `kept`: those of the graph, many for a call
    if (result.review.answer == BP_REVIEW_SPLIT && may_split) {
      for (const auto& part : result.split) {
        for (const uint32_t i : part) {
          if (i >= program.view->abi()->node_count || !named.insert(i).second) continue;
          const auto [first, count] = program.view->graph_nodes(i);
          for (uint32_t n = first; n < first + count; ++n) kept.insert(n), device.nodes[n].part = next_part;
        }
        ++next_part;
      }
    }
    for (const uint32_t n : island.nodes) {
      if (kept.contains(n)) continue;
      NodeVerdict& verdict = device.nodes[n];
      verdict.answer = BP_ANSWER_NO;
      verdict.reason = result.review.reason ? result.review.reason : BP_REASON_OTHER;
      verdict.detail = "given back in review of an island of " + counted(island.nodes.size(), "node") +
                       (result.why.empty() ? "" : ": " + result.why);
    }
  }
  return accepted;
}

namespace {

// Loads the program from the cache if there is an entry that the plugin accepts. An invalid entry is not an error: the
// program is compiled instead.
Status load(Program& program, const DeviceCoverage& device, const bp_compile_t& what, const ProgramCache& cache,
            const std::string& key) {
  const bp_cache_api_t& api = *program.plugin->cache;
  program.cache = "compiled";
  if (!api.deserialize) return {};
  if (!cache.read(key, program.blob, program.cache_reason)) return {};
  const bp_bytes_t blob{program.blob.data(), program.blob.size()};
  const auto refuse = [&](const PluginError& error, const char* otherwise) {
    program.handle = nullptr;
    program.blob.clear();
    program.cache_reason = error.text().empty() ? otherwise : std::string(error.text());
    cache.remove(key);
  };
  const Device& owner = *device.device;
  if (owner.given_up()) return owner.lost();
  uint32_t answer = BP_CACHE_EXACT;
  PluginError error;
  if (api.validate && api.validate(device.handle, blob, &answer, error.get()) != BP_OK) answer = BP_CACHE_UNUSABLE;
  if (answer != BP_CACHE_EXACT && answer != BP_CACHE_USABLE) {
    refuse(error, answer == BP_CACHE_RECOMPILE ? "the entry was compiled for another device, driver or version"
                                               : "the entry is unusable");
    return {};
  }
  if (owner.given_up()) return owner.lost();
  PluginError failure;
  const bp_status_t code = api.deserialize(device.handle, &what, blob, &program.handle, failure.get());
  if (code == BP_DEVICE_LOST || code == BP_CANCELLED) return failure.status(code, "device '" + owner.name() + "'");
  if (code != BP_OK || !program.handle) {
    refuse(failure, "the entry cannot be read");
    return {};
  }
  program.cache = answer == BP_CACHE_EXACT ? "exact" : "usable";
  return {};
}

// Stores a compiled program. Failure is ignored: the next process compiles the program again.
void store(Program& program, const ProgramCache& cache, const std::string& key) {
  const bp_cache_api_t& api = *program.plugin->cache;
  if (!api.serialize) return;
  struct Blob {
    std::string bytes;
    CallbackGuard callbacks;
  } blob;
  const auto sink = [](void* self, bp_text_t piece) {
    Blob& blob = *static_cast<Blob*>(self);
    blob.callbacks.run([&] { blob.bytes += abi::view(piece); });
  };
  PluginError error;
  const bp_status_t code = api.serialize(program.handle, sink, &blob, error.get());
  if (code != BP_OK || blob.callbacks.failed()) {
    if (program.cache_reason.empty()) program.cache_reason = error.text();
    return;
  }
  if (cache.write(key, blob.bytes)) program.cache = "stored";
}

}  // namespace

Status compile(const model::Graph& graph, Services& services, const std::vector<DeviceCoverage>& coverage,
               const Placement& placement, const std::vector<std::shared_ptr<Program>>& programs,
               const CompileOptions& options) {
  std::vector<Status> statuses(programs.size());
  std::mutex mutex;  // guards the two variables below
  uint32_t done = 0;
  std::exception_ptr thrown;

  const ProgramCache cache(options.cache);
  const auto compile_one = [&](size_t k) -> Status {
    Program& program = *programs[k];
    if (program.handle) return {};
    if (cancelled(options.cancel)) return {BP_CANCELLED, "cancelled while islands were being compiled"};
    const DeviceCoverage& device = coverage[placement.islands[k].device];
    if (device.device->given_up()) return device.device->lost();
    const Request request(program, options);
    const bp_compile_t& what = request.what;
    const std::string where = "device '" + device.device->name() + "'";
    std::string key;
    if (cache.is_on() && program.plugin->cache) {
      BP_ASSIGN(key, cache_key(*device.device, *program.view, what));
      BP_TRY(load(program, device, what, cache, key));
      if (!program.cache_reason.empty())
        services.log().warning(where + ": an island is compiled again: " + program.cache_reason);
    }
    if (!program.handle) {
      if (device.device->given_up()) return device.device->lost();
      PluginError error;
      const bp_status_t code = program.plugin->program->compile(device.handle, &what, &program.handle, error.get());
      if (Status status = error.status(code, where); !status.ok()) {
        program.handle = nullptr;
        const std::string label = label_of(graph, status.node());
        return std::move(status).context(label.empty() ? "island " + std::to_string(k) : label);
      }
      if (!program.handle) return {BP_INTERNAL, where + ": compile returned BP_OK without a program"};
      if (device.device->given_up()) return device.device->lost();
      if (!key.empty()) store(program, cache, key);
    }
    if (device.device->given_up()) return device.device->lost();  // while it compiled, loaded or stored the program
    program.info.size = sizeof program.info;
    PluginError info_error;
    BP_TRY(info_error.status(program.plugin->program->info(program.handle, &program.info, info_error.get()), where));
    if (program.info.input_count != program.inputs.size() || program.info.output_count != program.outputs.size())
      return {BP_INTERNAL, where + ": the program has " + counted(program.info.input_count, "input") + " and " +
                               counted(program.info.output_count, "output") + ", its island " +
                               std::to_string(program.inputs.size()) + " and " +
                               std::to_string(program.outputs.size())};
    return {};
  };

  // Must not throw, because a framework's `parallel_for` may call it.
  auto body = [&](uint64_t begin, uint64_t end) noexcept {
    for (uint64_t k = begin; k < end; ++k) {
      try {
        statuses[k] = compile_one(k);
        if (!statuses[k].ok() || !options.progress) continue;
        const std::lock_guard lock(mutex);
        options.progress(++done, static_cast<uint32_t>(programs.size()));
      } catch (...) {
        const std::lock_guard lock(mutex);
        thrown = std::current_exception();
      }
    }
  };
  bp_loop_t loop{};
  loop.size = sizeof loop;
  loop.count = programs.size();
  loop.context = &body;
  loop.body = [](void* self, uint32_t, uint64_t begin, uint64_t end) {
    (*static_cast<decltype(&body)>(self))(begin, end);
  };
  services.parallel_for(loop);
  if (thrown) std::rethrow_exception(thrown);
  for (Status& status : statuses) BP_TRY(std::move(status));
  return {};
}

}  // namespace backplane
