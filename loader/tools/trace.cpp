// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/overwrite.h"
#include "cli/whole_file.h"
#include "command.h"
#include "inputs.h"

namespace backplane::tools {
namespace {

struct Flags {
  SessionFlags session;
  InputFlags inputs;
  std::string out;
  uint32_t runs = 1;
};

Outcome trace(const Flags& flags) {
  cli::keep_inputs("--out", flags.out, flags.session.files());
  cli::keep_inputs("--out", flags.out, flags.inputs.files());
  const Environment env = flags.session.environment.make();
  const SessionOptions options = flags.session.options(env);
  const Model model = env.open(flags.session.model);
  env.start_trace();
  const Session session = env.compile(model, options);
  const std::vector<Input> inputs = make_inputs(model.graph(), flags.inputs);
  BoundExec bound = bind_inputs(session, inputs);
  for (uint32_t i = 0; i < flags.runs; ++i) bound.exec.run();
  const std::string timeline = env.stop_trace();

  cli::keep_inputs("--out", flags.out, cli::mapped_files());
  cli::write_file(flags.out, timeline);
  note_random(inputs, flags.inputs.seed);
  Outcome outcome;
  outcome.json = {
      {"file", flags.out}, {"bytes", timeline.size()}, {"runs", flags.runs}, {"devices", devices_used(env, session)}};
  outcome.text = fmt::format("{} written: open it at ui.perfetto.dev or chrome://tracing\n", flags.out);
  return outcome;
}

Action declare(cli::Command command) {
  const auto flags = std::make_shared<Flags>();
  flags->session.declare(command);
  flags->inputs.declare(command);
  command.add_option("--out", flags->out, "The file to write").shown_as("FILE").required();
  command.add_option("--runs", flags->runs, "Runs in the timeline").range(1, 100000);
  return [flags] { return trace(*flags); };
}

}  // namespace

extern const Verb trace_verb = {"trace", "runs a model and writes a timeline for Chrome or Perfetto", declare};

}  // namespace backplane::tools
