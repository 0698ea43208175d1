// SPDX-License-Identifier: Apache-2.0
#include "engine/throughput.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>

#include "backplane/sdk/file_cache.hpp"
#include "engine/device.h"

namespace backplane::gpu {
namespace {

constexpr size_t kChains = 16;        // as in kernels/throughput.cl
constexpr int kRepeats = 8;           // the shortest time counts: disturbances only make a measurement slower
constexpr double kMostSeconds = 0.1;  // no further repetition once all repetitions together have taken this long
constexpr int kLaunches = 32;
constexpr double kEnoughSeconds = 3e-3;  // how long one launch of `arithmetic` should take
constexpr double kSlowSeconds = 50e-3;   // if 1/64 of the buffer takes longer, the rest is not measured

std::string key_of(const DeviceCaps& caps) {
  return "rates 3\n" + caps.identity + std::to_string(caps.units);
}

// The shortest time of several calls, in seconds.
template <class Call>
double shortest(CommandQueue& queue, const Call& call) {
  const double best = shortest_time([&] {
    const auto begin = std::chrono::steady_clock::now();
    call();
    queue.finish("measuring the device");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  });
  return std::max(best, 1e-9);
}

void start(CommandQueue& queue, const Kernel& kernel, size_t items, size_t group) {
  queue.launch(*kernel, {{(items + group - 1) / group * group, 1, 1}, {group, 1, 1}}, false);
}

template <class T>
void set(const Kernel& kernel, uint32_t index, const T& value) {
  kernel->set(index, &value, sizeof value);
}

}  // namespace

std::optional<Throughput> stored_throughput(const DeviceCaps& caps) {
  const std::optional<std::string> text = sdk::FileCache(caps.backend).read(key_of(caps));
  std::array<double, 3> numbers;
  if (!text || !sdk::read_numbers(*text, numbers)) return std::nullopt;
  const Throughput throughput{numbers[0], numbers[1], numbers[2]};
  const auto sane = [](double rate) { return std::isfinite(rate) && rate > 0; };
  if (!sane(throughput.flops) || !sane(throughput.bandwidth) || !sane(throughput.launch_seconds)) return std::nullopt;
  return throughput;
}

double shortest_time(const std::function<double()>& seconds) {
  (void)seconds();
  double best = INFINITY, spent = 0;
  for (int i = 0; i < kRepeats && spent < kMostSeconds; ++i) {
    const double time = seconds();
    best = std::min(best, time);
    spent += time;
  }
  return best;
}

Throughput measure_throughput(Device& device) {
  const DeviceCaps& caps = device.caps();
  const bool cpu = caps.kind == BP_DEVICE_CPU;
  const size_t vector = cpu ? std::clamp<size_t>(caps.float_lanes, 4, 16) : 4;
  const size_t group = std::bit_floor(std::min<size_t>(caps.max_group, 64));
  const std::string options = "-DVECTOR=" + std::to_string(vector);
  const Kernel arithmetic = device.kernels().kernel({"throughput", "arithmetic", options, {}});
  const Kernel stream = device.kernels().kernel({"throughput", "stream", options, {}});
  const Queue queue = device.driver().queue();

  // The buffers are larger than most caches; `arithmetic` has enough work items to keep each unit busy.
  const uint64_t bytes = std::min<uint64_t>(uint64_t{32} << 20, caps.max_buffer_bytes / 4) / 4096 * 4096;
  const Buffer x = device.driver().buffer(bytes), y = device.driver().buffer(bytes);
  const size_t items = std::min<size_t>(bytes / (4 * vector) / group * group, caps.units * group * 32);
  arithmetic->set(0, *y);
  set(arithmetic, 2, 0.5f);
  set(arithmetic, 3, 0.25f);
  set(arithmetic, 1, int32_t{0});
  const double launch = shortest(*queue, [&] {
    for (int i = 0; i < kLaunches; ++i) start(*queue, arithmetic, group, group);
  });
  // Increases the iterations until a launch takes a few milliseconds.
  const double each = 2.0 * static_cast<double>(items * kChains * vector);
  int32_t n = 4;
  double seconds = 0;
  do {
    n *= 4;
    set(arithmetic, 1, n);
    seconds = shortest(*queue, [&] { start(*queue, arithmetic, items, group); });
  } while (seconds < kEnoughSeconds && n < 4096);

  stream->set(0, *x);
  stream->set(1, *y);
  double moved = 0;
  uint64_t length = bytes / 64;
  for (;; length = bytes) {
    moved = shortest(*queue, [&] { start(*queue, stream, length / (4 * vector), group); });
    if (moved > kSlowSeconds || length == bytes) break;
  }
  const Throughput throughput{each * n / seconds, 2.0 * static_cast<double>(length) / moved, launch / kLaunches};
  sdk::FileCache(caps.backend)
      .write(key_of(caps), sdk::write_numbers({throughput.flops, throughput.bandwidth, throughput.launch_seconds}));
  return throughput;
}

}  // namespace backplane::gpu
