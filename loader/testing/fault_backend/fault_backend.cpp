// SPDX-License-Identifier: Apache-2.0
// The fake backend with one fault, which option "fault.what" selects:
//   KIND_in_SLOT   a fault in the named slot: crash, exit, hang, throw, kill, stack, or forge, which writes a false
//                  message to each of the first 64 descriptors. In some slots also: nothing (no handle is returned),
//                  many (a count or size that is far too large), wrong (invalid contents)
//   done_twice, done_never   faults of an asynchronous device
//   writes_beyond  writes 64 KB past the end of the output during a run
//   crash_at_exit, hang_at_exit   in the destructor of the library
//   lowers_limit, sets_alarm, changes_umask, ignores_children
//                  change the state of the whole process in `create`
//   keeps_writing  from the first run on, a thread writes growing numbers to the tensors that were bound until then
//   closes_descriptors, leaks_thread, blocks_signals, frees_twice   faults during a run
//   opens_socket, opens_file, starts_program, leaves_group, signals_parent, lets_signal_parent, limits_parent,
//   slows_parent, reads_parent, changes_mode, shares_memory
//                  attempted in `create`, which fails if the sandbox allows it
//   slow_info      reports 100 devices, each of which takes a tenth of a second to describe
//   maps_weights   not a fault: maps all weights when compiling
//   fails_when_open   `info` fails, with a text, once a device was opened
//   loses_first    the first device is missing while the folder in "fault.path" contains a file named lost
// "fault.run_us" is the minimum time of each run in microseconds. "fault.first" is the number of runs without a fault
// before a fault in `run`. The options of the fake backend apply too, as "fault.ops" and so on.
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "backplane/plugin.h"

namespace {

const bp_plugin_t* fake;  // the fake backend, without faults
bp_plugin_t plugin;
bp_device_api_t device;
bp_coverage_api_t coverage;
bp_program_api_t program;
bp_instance_api_t instance;

std::string& what = *new std::string;  // the destructor of the library reads it
std::string path;
long run_us = 0;
std::atomic<long> good_runs{0};
std::atomic<bool> was_opened{false};

template <size_t kSize>
constexpr bp_text_t text(const char (&literal)[kSize]) {
  return {literal, kSize - 1};
}

std::string option(const bp_host_t* host, bp_text_t name) {
  bp_text_t value{};
  return host->option(host, name, &value) == BP_OK ? std::string(value.data, value.size) : std::string();
}

int overflow(int depth) {
  volatile char piece[4096];
  if (depth < 0) return 0;
  piece[0] = static_cast<char>(depth);
  return overflow(depth + 1) + piece[0];
}

bool is(std::string_view fault) {
  return what == fault;
}

// Causes the fault in `fault.what` if it names this slot. Handles the faults that any slot can have.
void misbehave(const char* slot) {
  const std::string tail = std::string("_in_") + slot;
  if (!what.ends_with(tail)) return;
  const std::string kind = what.substr(0, what.size() - tail.size());
  if (kind == "crash") std::abort();
  if (kind == "exit") std::_Exit(0);
  if (kind == "kill") ::kill(::getpid(), SIGKILL);
  if (kind == "stack") overflow(0);
  if (kind == "throw") throw std::runtime_error("thrown by a plugin");
  if (kind == "forge")
    for (int i = 0; i < 64; ++i)
      if (::write(i, "BPM1 hello, this is no message of the framework's", 49) < 0) continue;
  while (kind == "hang") ::pause();
}

bool is_asynchronous() {
  return is("done_twice") || is("done_never");
}

// Attempts the forbidden operation in `fault.what`. Returns whether it succeeded, which the sandbox should prevent.
bool escapes() {
  if (is("opens_socket")) return ::socket(AF_INET, SOCK_STREAM, 0) >= 0;
  if (is("opens_file")) return ::open("/root", O_RDONLY | O_DIRECTORY) >= 0 || ::open("/tmp", O_RDONLY) >= 0;
  if (is("starts_program")) {
    char name[] = "/bin/true";
    char* const words[] = {name, nullptr};
    pid_t child = -1;
    if (posix_spawn(&child, name, nullptr, nullptr, words, nullptr) != 0) return false;
    int status = 0;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  if (is("leaves_group")) return ::setpgid(0, ::getpgid(::getppid())) == 0;
  if (is("signals_parent")) return ::kill(::getppid(), 0) == 0;
  if (is("lets_signal_parent")) {
    int ends[2];
    return ::pipe(ends) == 0 && ::fcntl(ends[0], F_SETOWN, ::getppid()) == 0;
  }
  if (is("limits_parent")) {
    rlimit limit{};
    return ::prlimit(::getppid(), RLIMIT_CPU, nullptr, &limit) == 0;
  }
  if (is("slows_parent")) return ::setpriority(PRIO_PROCESS, static_cast<id_t>(::getppid()), 0) == 0;
  if (is("reads_parent")) {
    char byte;
    const int file = ::open(("/proc/" + std::to_string(::getppid()) + "/environ").c_str(), O_RDONLY | O_CLOEXEC);
    return file >= 0 && ::read(file, &byte, 1) == 1;
  }
  if (is("changes_mode")) {
    Dl_info own{};
    struct stat state {};
    return ::dladdr(reinterpret_cast<void*>(&is), &own) != 0 && ::stat(own.dli_fname, &state) == 0 &&
           ::chmod(own.dli_fname, state.st_mode & 07777) == 0;
  }
  if (is("shares_memory")) {
    const int segment = ::shmget(IPC_PRIVATE, 4096, 0600);
    return segment >= 0 && ::shmctl(segment, IPC_RMID, nullptr) == 0;
  }
  return false;
}

void change_process() {
  if (is("lowers_limit")) {
    rlimit limit{};
    ::getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = 1 << 20;
    ::setrlimit(RLIMIT_AS, &limit);
  }
  if (is("sets_alarm")) ::alarm(1);
  if (is("changes_umask")) ::umask(0777);
  if (is("ignores_children")) std::signal(SIGCHLD, SIG_IGN);
}

bp_status_t create(const bp_backend_create_t* how, bp_backend_t** out, bp_error_t* error) {
  what = option(how->host, text("what"));
  path = option(how->host, text("path"));
  run_us = std::atol(option(how->host, text("run_us")).c_str());
  good_runs = std::atol(option(how->host, text("first")).c_str());
  misbehave("create");
  change_process();
  if (escapes()) return BP_INTERNAL;
  return fake->create(how, out, error);
}

[[gnu::destructor]] void at_exit() {
  if (is("crash_at_exit")) std::abort();
  while (is("hang_at_exit")) ::pause();
}

uint32_t missing() {
  return is("loses_first") && ::access((path + "/lost").c_str(), F_OK) == 0 ? 1 : 0;
}

bp_status_t count(bp_backend_t* backend, uint32_t* out, bp_error_t* error) {
  misbehave("count");
  const bp_status_t code = fake->device->count(backend, out, error);
  *out -= missing();
  if (is("many_in_count")) *out = 4'000'000'000u;
  if (is("slow_info")) *out = 100;
  return code;
}

bp_status_t info(bp_backend_t* backend, uint32_t index, bp_device_info_t* out, bp_error_t* error) {
  misbehave("info");
  if (is("fails_when_open") && was_opened) {
    constexpr std::string_view kWhy = "the firmware does not respond";
    error->text_size = kWhy.copy(error->text, error->text_capacity);
    return error->status = BP_IO_ERROR;
  }
  if (is("slow_info")) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const bp_status_t code = fake->device->info(backend, is("slow_info") ? 0 : index + missing(), out, error);
  if (is("many_in_info")) out->name.size = UINT64_MAX / 2;
  if (is_asynchronous()) out->flags &= ~BP_DEVICE_SYNCHRONOUS;
  return code;
}

bp_status_t open_device(bp_backend_t* backend, uint32_t index, const bp_device_open_t* how, bp_device_t** out,
                        bp_error_t* error) {
  misbehave("open");
  was_opened = true;
  if (is("nothing_in_open")) return BP_OK;
  return fake->device->open(backend, index + missing(), how, out, error);
}

void close_device(bp_device_t* handle) {
  misbehave("close");
  fake->device->close(handle);
}

bp_status_t query(bp_device_t* handle, const bp_coverage_query_t* asked, const bp_coverage_sink_t* sink,
                  bp_error_t* error) {
  misbehave("coverage");
  if (is("wrong_in_coverage")) {
    bp_verdict_t verdict{};
    verdict.node = 4'000'000'000u;
    verdict.answer = 77;
    verdict.seconds = -1;
    sink->verdicts(sink->self, &verdict, 1, sizeof verdict);
  }
  if (is("many_in_coverage")) {
    bp_verdict_t verdict{};
    verdict.detail = {"a", UINT64_MAX / 2};
    verdict.range_count = 4'000'000'000u;
    verdict.ranges = reinterpret_cast<const bp_range_t*>(&verdict);
    sink->verdicts(sink->self, &verdict, 1, sizeof verdict);
  }
  if (is("flood_in_coverage")) {
    const uint32_t node = 0;
    bp_group_t group{};
    group.nodes = &node;
    group.node_count = 1;
    for (int i = 0; i < 2'000'000; ++i) sink->groups(sink->self, &group, 1, sizeof group);
  }
  if (is("null_in_coverage")) {
    sink->verdicts(sink->self, nullptr, 1000, sizeof(bp_verdict_t));
    sink->groups(sink->self, nullptr, 1000, sizeof(bp_group_t));
  }
  return fake->coverage->query(handle, asked, sink, error);
}

bp_status_t review(bp_device_t*, const bp_compile_t*, bp_review_t* out, bp_error_t*) {
  misbehave("review");
  if (is("wrong_in_review")) {
    const uint32_t nodes[] = {4'000'000'000u};
    out->answer = BP_REVIEW_SPLIT;
    out->split(out->split_self, nodes, 1);
  }
  return BP_OK;
}

bp_status_t compile(bp_device_t* handle, const bp_compile_t* asked, bp_program_t** out, bp_error_t* error) {
  misbehave("compile");
  if (is("nothing_in_compile")) return BP_OK;
  if (is("maps_weights"))
    for (uint32_t i = 0; i < asked->graph->weight_count; ++i) {
      const void* data = nullptr;
      if (const bp_status_t code = asked->graph->api->weight_map(asked->graph, i, &data, error)) return code;
    }
  return fake->program->compile(handle, asked, out, error);
}

bp_status_t program_info(const bp_program_t* handle, bp_program_info_t* out, bp_error_t* error) {
  misbehave("program_info");
  const bp_status_t code = fake->program->info(handle, out, error);
  if (is("many_in_program_info")) out->input_count = 4'000'000'000u;
  if (is("wrong_in_program_info")) out->inplace_count = 4'000'000'000u;
  return code;
}

bp_status_t extents(const bp_program_t* handle, const bp_shape_query_t* asked, bp_shape_t* out, bp_error_t* error) {
  misbehave("extents");
  const bp_status_t code = fake->program->output_extents(handle, asked, out, error);
  if (is("many_in_extents")) out->rank = 4'000'000;
  return code;
}

void destroy_program(bp_program_t* handle) {
  misbehave("destroy_program");
  fake->program->destroy(handle);
}

bp_status_t create_instance(const bp_program_t* handle, const bp_instance_create_t* how, bp_instance_t** out,
                            bp_error_t* error) {
  misbehave("instance");
  if (is("nothing_in_instance")) return BP_OK;
  return fake->instance->create(handle, how, out, error);
}

void destroy_instance(bp_instance_t* handle) {
  misbehave("destroy_instance");
  fake->instance->destroy(handle);
}

char* output;  // the output buffer that was bound last
uint64_t output_bytes;
// Mappings of all buffers that were bound. Never destroyed, because a thread uses them until the process ends.
std::mutex& bound_mutex = *new std::mutex;
std::vector<std::span<float>>& bound = *new std::vector<std::span<float>>;

// Maps shared memory once more, because the server ends its own mapping when the instance is destroyed.
void keep(const bp_buffer_t& buffer) {
  const auto at = reinterpret_cast<uintptr_t>(buffer.address) + buffer.offset, page = uintptr_t{4096};
  void* const copy = ::mremap(reinterpret_cast<void*>(at / page * page), 0, at % page + buffer.bytes, MREMAP_MAYMOVE);
  if (copy == MAP_FAILED) return;
  const std::lock_guard lock(bound_mutex);
  bound.emplace_back(reinterpret_cast<float*>(static_cast<char*>(copy) + at % page), buffer.bytes / sizeof(float));
}

[[noreturn]] void keep_writing() {
  for (float number = 2;; number = number < 1e6f ? number + 1 : 2) {
    const std::lock_guard lock(bound_mutex);
    for (const std::span<float> tensor : bound) std::ranges::fill(tensor, number);
  }
}

bp_status_t bind(bp_instance_t* handle, const bp_binding_t* binding, bp_error_t* error) {
  misbehave("bind");
  if (binding->tensor && binding->slot == BP_SLOT_OUTPUT) {
    output = static_cast<char*>(binding->tensor->buffer.address) + binding->tensor->buffer.offset;
    output_bytes = binding->tensor->buffer.bytes;
  }
  if (is("keeps_writing") && binding->tensor) keep(binding->tensor->buffer);
  return fake->instance->bind(handle, binding, error);
}

bp_status_t run(bp_instance_t* handle, const bp_run_t* order, bp_error_t* error) {
  std::this_thread::sleep_for(std::chrono::microseconds(run_us));
  const bp_status_t code = fake->instance->run(handle, order, error);
  if (good_runs.fetch_sub(1) > 0) {
    if (code == BP_OK && order->done) order->done(order->self, BP_OK, nullptr);
    return code;
  }
  misbehave("run");
  if (is("keeps_writing")) {
    static std::once_flag once;
    std::call_once(once, [] { std::thread(keep_writing).detach(); });
  }
  if (is("closes_descriptors"))
    for (int i = 0; i < 64; ++i) ::close(i);
  if (is("leaks_thread")) std::thread([] { ::pause(); }).detach();
  if (is("blocks_signals")) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
  }
  if (is("writes_beyond") && output) std::memset(output + output_bytes, 0x55, 65536);
  if (is("frees_twice")) {
    void* volatile memory = std::malloc(100);
    std::free(memory);
    std::free(memory);
  }
  if (code == BP_OK && order->done && !is("done_never")) {
    order->done(order->self, BP_OK, nullptr);
    if (is("done_twice")) order->done(order->self, BP_OK, nullptr);
  }
  return code;
}

}  // namespace

extern "C" BP_EXPORT const bp_plugin_t* BP_CALL bp_plugin_query(const bp_host_offer_t* offer) {
  if (fake) return &plugin;
  void* const library = dlopen(FAKE_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  fake = reinterpret_cast<bp_plugin_query_t>(dlsym(library, BP_PLUGIN_SYMBOL))(offer);
  plugin = *fake;
  plugin.id = text("fault");
  plugin.create = create;
  plugin.get_extension = nullptr;
  device = *fake->device;
  device.count = count;
  device.info = info;
  device.open = open_device;
  device.close = close_device;
  coverage = *fake->coverage;
  coverage.query = query;
  coverage.review = review;
  program = *fake->program;
  program.compile = compile;
  program.info = program_info;
  program.output_extents = extents;
  program.destroy = destroy_program;
  instance = *fake->instance;
  instance.create = create_instance;
  instance.destroy = destroy_instance;
  instance.bind = bind;
  instance.run = run;
  plugin.device = &device;
  plugin.coverage = &coverage;
  plugin.program = &program;
  plugin.instance = &instance;
  return &plugin;
}
