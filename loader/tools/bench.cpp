// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string>

#include "command.h"
#include "inputs.h"

namespace backplane::tools {
namespace {

struct Flags {
  SessionFlags session;
  InputFlags inputs;
  uint32_t runs = 50;
};

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// Of this program alone: getrusage includes the memory of the process that started it.
double peak_rss_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  }
  return 0;
}

Outcome bench(const Flags& flags) {
  const Environment env = flags.session.environment.make();
  const SessionOptions options = flags.session.options(env);
  const double base_rss_mb = peak_rss_mb();
  // Creation is what an application waits for before its first run: reading the model included, inputs not.
  const auto start = std::chrono::steady_clock::now();
  const Model model = env.open(flags.session.model);
  const Session session = env.compile(model, options);
  const double create_ms = milliseconds_since(start);
  BoundExec bound = bind_inputs(session, make_inputs(model.graph(), flags.inputs));

  const auto first = std::chrono::steady_clock::now();
  bound.exec.run();
  const double first_ms = milliseconds_since(first);
  for (uint32_t i = 1; i < std::clamp(flags.runs / 10, 1u, 10u); ++i) bound.exec.run();  // warm up
  std::vector<double> times;
  for (uint32_t i = 0; i < flags.runs; ++i) {
    const auto run_start = std::chrono::steady_clock::now();
    bound.exec.run();
    times.push_back(milliseconds_since(run_start));
  }
  std::sort(times.begin(), times.end());
  const auto quantile = [&](double q) {
    return times[static_cast<size_t>(std::llround(q * static_cast<double>(times.size() - 1)))];
  };
  const double mean_ms = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());

  Outcome outcome;
  outcome.json = {{"create_ms", create_ms},
                  {"first_ms", first_ms},
                  {"min_ms", times.front()},
                  {"mean_ms", mean_ms},
                  {"median_ms", quantile(0.5)},
                  {"p90_ms", quantile(0.9)},
                  {"p99_ms", quantile(0.99)},
                  {"peak_rss_mb", peak_rss_mb()},
                  {"base_rss_mb", base_rss_mb},
                  {"islands", island_count(session)},
                  {"devices", devices_used(env, session)},
                  {"runs", flags.runs}};
  outcome.text = fmt::format(
      "create {:.2f} ms\nrun    min {:.3f} ms, median {:.3f} ms, p90 {:.3f} ms over {} runs\n"
      "memory {:.1f} MB at its peak\n{} islands on {}\n",
      create_ms, times.front(), quantile(0.5), quantile(0.9), flags.runs, peak_rss_mb(), island_count(session),
      join(outcome.json["devices"], ", "));
  return outcome;
}

Action declare(cli::Command command) {
  const auto flags = std::make_shared<Flags>();
  flags->session.declare(command);
  flags->inputs.declare(command);
  command.add_option("--runs", flags->runs, "Measured runs, after a few that are not").range(1, 1000000);
  command.add_option("--threads", flags->session.environment.threads, "Threads that the backends share (default: all)");
  return [flags] { return bench(*flags); };
}

}  // namespace

extern const Verb bench_verb = {"bench", "runs a model repeatedly and measures it", declare};

}  // namespace backplane::tools
