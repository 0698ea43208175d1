// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "cli/progress.h"
#include "command.h"
#include "device_memory.h"
#include "inputs.h"

namespace backplane::tools {
namespace {

struct Flags {
  SessionFlags session;
  InputFlags inputs;
  uint32_t runs = 50;
  uint32_t streams = 1;
  std::string memory;  // a device
};

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// The peak resident memory of this program in MiB. getrusage would include memory of the process that started it.
double peak_rss_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  }
  return 0;
}

struct Measured {
  std::vector<double> times;  // of each run, in milliseconds
  double total_ms = 0;        // of all runs
};

// Measures `runs` runs, distributed over the execs. If there are several execs, each has its own thread; total_ms
// begins when all threads have started. Rethrows an exception of a run.
Measured measure(std::vector<BoundExec>& bound, uint32_t runs) {
  std::vector<double> times(runs);
  std::atomic<uint32_t> next = 0, done = 0;
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&](BoundExec& each) {
    try {
      for (uint32_t i = 0; (i = next++) < runs; ++done) {
        const auto start = std::chrono::steady_clock::now();
        each.exec.run();
        times[i] = milliseconds_since(start);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = runs;
    }
  };
  cli::Progress progress("runs", runs, [&] { return done.load(); });
  auto begin = std::chrono::steady_clock::now();
  if (bound.size() == 1) {  // runs in this thread, like an application with one thread
    work(bound.front());
  } else {
    std::barrier started(static_cast<ptrdiff_t>(bound.size()),
                         [&]() noexcept { begin = std::chrono::steady_clock::now(); });
    std::vector<std::jthread> threads;
    for (BoundExec& each : bound) {
      threads.emplace_back([&] {
        started.arrive_and_wait();
        work(each);
      });
    }
  }
  if (failure) std::rethrow_exception(failure);
  return {std::move(times), milliseconds_since(begin)};
}

Outcome bench(const Flags& flags) {
  const Environment env = flags.session.environment.make();
  const SessionOptions options = flags.session.options(env);
  std::optional<Device> memory;
  if (!flags.memory.empty()) memory = find_device(env, flags.memory);
  const double base_rss_mb = peak_rss_mb();
  // The time until an application can bind inputs: reading and compiling the model.
  const auto start = std::chrono::steady_clock::now();
  const Model model = env.open(flags.session.model);
  const Session session = env.compile(model, options);
  const double create_ms = milliseconds_since(start);
  const std::vector<Input> inputs = make_inputs(model.graph(), flags.inputs);
  std::vector<BoundExec> bound;
  for (uint32_t i = 0; i < flags.streams; ++i) bound.push_back(bind_inputs(session, inputs));

  const auto first = std::chrono::steady_clock::now();
  bound.front().exec.run();
  const double first_ms = milliseconds_since(first);
  std::vector<std::vector<Buffer>> buffers;
  if (memory) {
    for (BoundExec& each : bound) {
      each.exec.run();  // determines the sizes of the outputs
      buffers.push_back(move_to_memory(env, *memory, inputs, each.exec, model.graph()));
    }
  }
  for (BoundExec& each : bound) {  // warm up: the first run of an exec takes longer
    for (uint32_t i = 0; i < std::clamp(flags.runs / 10, 1u, 10u); ++i) each.exec.run();
  }
  Measured measured = measure(bound, flags.runs);
  std::vector<double>& times = measured.times;
  note_random(inputs, flags.inputs.seed);
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
                  {"runs", flags.runs},
                  {"streams", flags.streams},
                  {"runs_per_second", measured.total_ms > 0 ? flags.runs / measured.total_ms * 1e3 : 0}};
  outcome.text = fmt::format(
      "create {}\nrun    min {}, median {}, p90 {} over {}\n"
      "rate   {:.1f} runs/s, {} at once\nmemory {:.1f} MiB at its peak\n{} on {}\n",
      seconds_text(create_ms / 1e3), seconds_text(times.front() / 1e3), seconds_text(quantile(0.5) / 1e3),
      seconds_text(quantile(0.9) / 1e3), count_text(flags.runs, "run", "runs"),
      outcome.json["runs_per_second"].get<double>(), flags.streams, peak_rss_mb(),
      count_text(island_count(session), "island", "islands"), join(outcome.json["devices"], ", "));
  return outcome;
}

Action declare(cli::Command command) {
  const auto flags = std::make_shared<Flags>();
  flags->session.declare(command);
  flags->inputs.declare(command);
  command.add_option("--runs", flags->runs, "Measured runs, after a few warm-up runs").range(1, 1000000);
  command.add_option("--streams", flags->streams, "Runs at once, each on an exec of its own").range(1, 1024);
  command
      .add_option("--memory", flags->memory,
                  "The device whose memory holds inputs and outputs during the measured runs (default: host memory)")
      .shown_as("NAME");
  command.add_option("--threads", flags->session.environment.threads, "Threads that the backends share (default: all)")
      .range(0, 1024);
  return [flags] { return bench(*flags); };
}

}  // namespace

extern const Verb bench_verb = {"bench", "runs a model repeatedly and measures it", declare};

}  // namespace backplane::tools
