// SPDX-License-Identifier: Apache-2.0
// Cases of the group memory: a device's own memory, with its spaces, allocation, copies, fills, mappings, imports and
// exports.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>

#include "checks/group.h"
#include "host/stream.h"

namespace backplane::conform {
namespace {

using Bytes = std::vector<std::byte>;

// Bytes whose pattern reveals shifted or repeated content.
Bytes pattern(uint64_t size, uint32_t seed) {
  Bytes bytes(size);
  for (uint64_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 167 + i / 251 + seed) & 0xFF);
  return bytes;
}

// A device's memory table, with calls that keep the error text.
class Table {
 public:
  explicit Table(const Device& device) : device_(device), api_(*device.plugin().memory) {}

  const bp_memory_api_t& api() const { return api_; }
  bp_device_t* device() const { return device_.raw(); }
  std::string text() const { return detail_.text(); }
  bp_error_t* error() { return detail_.error(); }

  bp_status_t space(uint32_t index, bp_space_t& out_space) {
    out_space = {.size = sizeof out_space};
    return api_.space(device(), index, &out_space, error());
  }
  // Allocates, and fills in the fields that the plugin leaves to the caller: `space` and `bytes`.
  bp_status_t allocate(uint64_t bytes, bp_buffer_t& out_buffer, bp_stream_t* stream = nullptr, uint32_t space = 0) {
    const bp_allocate_t what = {.size = sizeof what, .space = space, .bytes = bytes, .stream = stream};
    out_buffer = {};
    const bp_status_t status = api_.allocate(device(), &what, &out_buffer, error());
    out_buffer.space = space;
    out_buffer.bytes = bytes;
    return status;
  }
  void release(const bp_buffer_t& buffer, bp_stream_t* stream = nullptr) {
    const bp_release_t what = {.size = sizeof what, .buffer = &buffer, .stream = stream};
    api_.release(device(), &what);
  }
  bp_status_t copy(const bp_buffer_t& from, const bp_buffer_t& to, uint64_t bytes, const bp_run_t* run = nullptr) {
    const bp_copy_t what = {.size = sizeof what, .from = &from, .to = &to, .bytes = bytes, .run = run};
    return api_.copy(device(), &what, error());
  }
  bp_status_t write(const Bytes& bytes, const bp_buffer_t& to) {
    return copy({.address = const_cast<std::byte*>(bytes.data()), .bytes = bytes.size()}, to, bytes.size());
  }
  bp_status_t read(const bp_buffer_t& from, Bytes& out_bytes) {
    return copy(from, {.address = out_bytes.data(), .bytes = out_bytes.size()}, out_bytes.size());
  }

 private:
  const Device& device_;
  const bp_memory_api_t& api_;
  Detail detail_;
};

class Block {
 public:
  Block(Table& table, uint64_t bytes, uint32_t space = 0) : table_(table) {
    if (const bp_status_t status = table.allocate(bytes, buffer, nullptr, space); status != BP_OK)
      throw Breach(fmt::format("allocate of {} bytes returns {}: {}", bytes, status_name(status), table.text()));
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { table_.release(buffer); }

  bp_buffer_t buffer = {};

 private:
  Table& table_;
};

Result returned(const char* what, bp_status_t status, const Table& table) {
  return failed(fmt::format("{} returns {}: {}", what, status_name(status), table.text()));
}

bool lists(const uint32_t* kinds, uint32_t count, uint32_t kind) {
  return std::find(kinds, kinds + count, kind) != kinds + count;
}

Result spaces(Bench& bench, Table& table) {
  const uint32_t count = bench.device().info().space_count;
  for (uint32_t i = 0; i < count; ++i) {
    bp_space_t space;
    if (const bp_status_t status = table.space(i, space); status != BP_OK)
      return returned(fmt::format("space {} of {}", i, count).c_str(), status, table);
    const uint64_t align = space.alignment;
    if (align == 0 || (align & (align - 1)) != 0)
      return failed(fmt::format("space {} has an alignment of {}, which is not a power of two", i, align));
    if (space.name.size == 0) return failed(fmt::format("space {} has no name", i));
    if ((space.import_count != 0 && space.imports == nullptr) || (space.export_count != 0 && space.exports == nullptr))
      return failed(fmt::format("space {} counts kinds to import or export, but their list is NULL", i));
    if (lists(space.imports, space.import_count, 0) || lists(space.exports, space.export_count, 0))
      return failed(fmt::format("space {} lists kind 0, which is not a kind", i));
    if (space.import_count != 0 && table.api().import == nullptr)
      return failed(fmt::format("space {} lists imports, but the slot `import` is NULL", i));
    if (space.export_count != 0 && table.api().export_ == nullptr)
      return failed(fmt::format("space {} lists exports, but the slot `export_` is NULL", i));
    if ((space.flags & BP_SPACE_MAPPABLE) != 0 && (space.flags & BP_SPACE_HOST) == 0 && table.api().map == nullptr)
      return failed(fmt::format("space {} is mappable, but `map` is NULL", i));
  }
  bp_space_t space;
  const bp_status_t status = table.space(count, space);
  return status == BP_NOT_FOUND
             ? passed(1)
             : failed(fmt::format("space {} does not exist, but querying it returns {}, not BP_NOT_FOUND", count,
                                  status_name(status)));
}

// Copies blocks, from 1 byte to just over 1 MiB, from the host to the device, from there into the middle of a larger
// buffer, and back.
Result copies(Bench&, Table& table) {
  for (const uint64_t size : {uint64_t{1}, uint64_t{3}, uint64_t{64}, uint64_t{4097}, (uint64_t{1} << 20) + 7}) {
    const Block a(table, size), b(table, size + 32);
    const Bytes content = pattern(size, 1), around = pattern(size + 32, 77);
    bp_buffer_t inner = b.buffer;
    inner.offset += 16;
    inner.bytes = size;
    bp_status_t status = table.write(content, a.buffer);
    if (status == BP_OK) status = table.write(around, b.buffer);
    if (status == BP_OK) status = table.copy(a.buffer, inner, size);
    Bytes seen(size + 32);
    if (status == BP_OK) status = table.read(b.buffer, seen);
    if (status != BP_OK) return returned(fmt::format("copy of {} bytes", size).c_str(), status, table);
    Bytes expected = around;
    std::copy(content.begin(), content.end(), expected.begin() + 16);
    if (seen != expected) return failed(fmt::format("copies of {} bytes to offset 16 write wrong bytes", size));
  }
  return passed(1);
}

// Copies run in the order of their stream. The stream also allocates and releases the memory.
Result stream_order(Bench& bench, Table& table) {
  if (bench.device().plugin().sync == nullptr || (bench.device().info().flags & BP_DEVICE_SYNCHRONOUS) != 0)
    return not_supported("the device has no streams");
  Answer answer;
  const auto stream = Stream::create(bench.device(), answer);
  if (stream == nullptr) return failed(answer.describe());
  constexpr uint64_t kBytes = 100'003;
  const Bytes content = pattern(kBytes, 5);
  Bytes seen(kBytes);
  const bp_run_t run = {.size = sizeof run, .stream = stream->raw()};
  bp_buffer_t a, b;
  bp_status_t status = table.allocate(kBytes, a, stream->raw());
  if (status != BP_OK) return returned("allocate in a stream", status, table);
  if (status = table.allocate(kBytes, b, stream->raw()); status != BP_OK)
    return returned("allocate in a stream", status, table);
  const bp_buffer_t from = {.address = const_cast<std::byte*>(content.data()), .bytes = kBytes};
  const bp_buffer_t to = {.address = seen.data(), .bytes = kBytes};
  if (status = table.copy(from, a, kBytes, &run); status != BP_OK) return returned("copy in a stream", status, table);
  if (status = table.copy(a, b, kBytes, &run); status != BP_OK) return returned("copy in a stream", status, table);
  table.release(a, stream->raw());
  if (status = table.copy(b, to, kBytes, &run); status != BP_OK) return returned("copy in a stream", status, table);
  table.release(b, stream->raw());
  if (answer = stream->wait(); !answer.ok()) return failed(answer.describe());
  return seen == content ? passed(1) : failed("copies in one stream, in order, end with the wrong contents");
}

Result fills(Bench&, Table& table) {
  if (table.api().fill == nullptr) return not_supported("the device fills no memory");
  for (const uint32_t width : {1u, 2u, 4u, 8u}) {
    constexpr uint64_t kBytes = 4096;
    const Block block(table, kBytes);
    Bytes expected = pattern(kBytes, width);
    bp_status_t status = table.write(expected, block.buffer);
    if (status != BP_OK) return returned("copy", status, table);
    bp_buffer_t inner = block.buffer;
    inner.offset += 64;
    inner.bytes = 1024;
    const uint64_t value = 0x8899AABBCCDDEEFF;
    const bp_fill_t what = {.size = sizeof what, .pattern_bytes = width, .pattern = value, .buffer = &inner};
    status = table.api().fill(table.device(), &what, table.error());
    if (status != BP_OK) return returned(fmt::format("fill of {} bytes", width).c_str(), status, table);
    for (uint64_t i = 0; i < inner.bytes; i += width) std::memcpy(expected.data() + 64 + i, &value, width);
    Bytes seen(kBytes);
    if (status = table.read(block.buffer, seen); status != BP_OK) return returned("copy", status, table);
    if (seen != expected) return failed(fmt::format("a fill with a pattern of {} bytes writes wrong bytes", width));
  }
  return passed(1);
}

// The device sees what the host writes to a mapping, and the host sees what the device wrote.
Result maps(Bench&, Table& table) {
  if (table.api().map == nullptr || table.api().unmap == nullptr) return not_supported("the device maps no memory");
  constexpr uint64_t kBytes = 5000;
  const Block block(table, kBytes);
  const Bytes ours = pattern(kBytes, 9), theirs = pattern(kBytes, 200);
  const auto mapped = [&](uint32_t access, auto use) -> Result {
    const bp_map_t what = {.size = sizeof what, .access = access, .buffer = &block.buffer};
    void* pointer = nullptr;
    bp_space_t space;
    bp_status_t status = table.space(0, space);
    if (status != BP_OK) return returned("space", status, table);
    status = table.api().map(table.device(), &what, &pointer, table.error());
    if (status == BP_UNSUPPORTED && (space.flags & BP_SPACE_MAPPABLE) == 0) return not_supported(table.text());
    if (status != BP_OK) return returned("map", status, table);
    if (pointer == nullptr) return failed("map returns BP_OK but no pointer");
    const auto flush = [&](uint32_t direction) {
      const bp_map_t part = {.size = sizeof part, .access = direction, .buffer = &block.buffer};
      if (table.api().flush == nullptr || (space.flags & BP_SPACE_COHERENT) != 0) return BP_OK;
      return table.api().flush(table.device(), &part, table.error());
    };
    if ((access & BP_MAP_READ) != 0) status = flush(BP_MAP_READ);
    if (status == BP_OK) use(static_cast<std::byte*>(pointer));
    if (status == BP_OK && (access & BP_MAP_WRITE) != 0) status = flush(BP_MAP_WRITE);
    if (status != BP_OK) return returned("flush", status, table);
    status = table.api().unmap(table.device(), &what, pointer, table.error());
    return status == BP_OK ? passed() : returned("unmap", status, table);
  };
  Result result = mapped(BP_MAP_WRITE, [&](std::byte* memory) { std::copy(ours.begin(), ours.end(), memory); });
  if (result.state != State::kPass) return result;
  Bytes seen(kBytes);
  if (const bp_status_t status = table.read(block.buffer, seen); status != BP_OK)
    return returned("copy", status, table);
  if (seen != ours) return failed("the device does not see what the host wrote to a mapping");
  if (const bp_status_t status = table.write(theirs, block.buffer); status != BP_OK)
    return returned("copy", status, table);
  result = mapped(BP_MAP_READ, [&](const std::byte* memory) { std::copy_n(memory, kBytes, seen.begin()); });
  if (result.state != State::kPass) return result;
  return seen == theirs ? passed(1) : failed("the host does not see in a mapping what the device wrote");
}

// The first space that imports host pointers, in `out_space`, and its index, or nullopt if there is none.
std::optional<uint32_t> importing_space(Bench& bench, Table& table, bp_space_t& out_space) {
  for (uint32_t i = 0; i < bench.device().info().space_count; ++i) {
    if (const bp_status_t status = table.space(i, out_space); status != BP_OK)
      throw Breach(fmt::format("space {} returns {}: {}", i, status_name(status), table.text()));
    if (lists(out_space.imports, out_space.import_count, BP_EXTERNAL_HOST_POINTER)) return i;
  }
  return std::nullopt;
}

// Imported host memory keeps its contents, and the plugin calls `release` exactly once.
Result import_host(Bench& bench, Table& table) {
  bp_space_t space = {};
  const std::optional<uint32_t> space_index = importing_space(bench, table, space);
  if (!space_index) return not_supported("the device imports no host memory");
  constexpr uint64_t kBytes = 64 << 10;
  const std::unique_ptr<std::byte, void (*)(void*)> memory(static_cast<std::byte*>(std::aligned_alloc(4096, kBytes)),
                                                           std::free);
  const Bytes content = pattern(kBytes, 31);
  std::copy(content.begin(), content.end(), memory.get());
  uint32_t releases = 0;
  const bp_external_t external = {.size = sizeof external,
                                  .kind = BP_EXTERNAL_HOST_POINTER,
                                  .handle = reinterpret_cast<uintptr_t>(memory.get()),
                                  .bytes = kBytes,
                                  .self = &releases,
                                  .release = [](void* self) { ++*static_cast<uint32_t*>(self); }};
  const bp_import_t what = {.size = sizeof what, .space = *space_index, .external = &external};
  bp_buffer_t buffer = {};
  bp_status_t status = table.api().import(table.device(), &what, &buffer, table.error());
  if (status != BP_OK) return returned("import of a page-aligned host pointer", status, table);
  buffer.space = *space_index;
  buffer.bytes = kBytes;
  // The host wrote before the import, so a non-coherent device needs a flush to see the data.
  const bp_map_t written = {.size = sizeof written, .access = BP_MAP_WRITE, .buffer = &buffer};
  if (table.api().flush != nullptr && (space.flags & BP_SPACE_COHERENT) == 0)
    status = table.api().flush(table.device(), &written, table.error());
  Bytes seen(kBytes);
  if (status == BP_OK) status = table.read(buffer, seen);
  const uint32_t early = releases;
  table.release(buffer);
  if (status != BP_OK) return returned("copy from imported memory", status, table);
  if (seen != content) return failed("imported memory differs from the host's bytes");
  if (early != 0) return failed("`release` of an import is called while the import lives");
  return releases == 1 ? passed(1) : failed(fmt::format("`release` of an import is called {} times", releases));
}

// A framework's allocator of the device's memory, which hands out host memory. The memory stays allocated as long as
// this object, so that a late use or a second `release` is found. Must outlive the device. [thread-safe]
class FrameworkMemory {
 public:
  explicit FrameworkMemory(uint32_t space_count) : space_count_(space_count) {}

  static bp_status_t allocate(void* self, const bp_allocate_t* what, bp_external_t* out_external) {
    try {
      static_cast<FrameworkMemory*>(self)->give(*what, out_external);
      return BP_OK;
    } catch (const std::bad_alloc&) {
      return BP_RESOURCE_EXHAUSTED;
    }
  }

  // Whether all memory is released within two seconds: the last `release` may come from another thread.
  bool is_released() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(2), [this] {
      return std::ranges::all_of(pieces_, [](const Piece& piece) { return piece.releases != 0; });
    });
  }
  // Whether the memory of an allocation is released.
  bool is_released(const bp_external_t& external) {
    const std::lock_guard lock(mutex_);
    return static_cast<const Piece*>(external.self)->releases != 0;
  }
  // A description of the last misuse of the memory, in one line; empty if there was none.
  std::string misuse() {
    const std::lock_guard lock(mutex_);
    return misuse_;
  }

 private:
  struct Piece {
    FrameworkMemory& memory;
    std::unique_ptr<void, void (*)(void*)> data;
    uint32_t releases = 0;
  };

  void give(const bp_allocate_t& what, bp_external_t* out_external) {
    constexpr uint64_t kPage = 4096;
    const uint64_t whole = (std::max<uint64_t>(what.bytes, 1) + kPage - 1) / kPage * kPage;
    std::unique_ptr<void, void (*)(void*)> data(whole < what.bytes ? nullptr : std::aligned_alloc(kPage, whole),
                                                std::free);
    if (data == nullptr) throw std::bad_alloc();
    const std::lock_guard lock(mutex_);
    if (what.space >= space_count_) misuse_ = fmt::format("requested memory of space {}", what.space);
    if (what.stream != nullptr || what.chain != nullptr) misuse_ = "passed a stream or a chain";
    pieces_.push_back({*this, std::move(data)});
    Piece& piece = pieces_.back();
    const bp_external_t external = {.size = out_external->size,
                                    .kind = BP_EXTERNAL_HOST_POINTER,
                                    .handle = reinterpret_cast<uintptr_t>(piece.data.get()),
                                    .bytes = whole,
                                    .self = &piece,
                                    .release = release};
    write_back(external, out_external);
  }

  static void release(void* self) {
    Piece& piece = *static_cast<Piece*>(self);
    const std::lock_guard lock(piece.memory.mutex_);
    if (++piece.releases > 1) piece.memory.misuse_ = "released memory twice";
    piece.memory.changed_.notify_all();
  }

  const uint32_t space_count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Piece> pieces_;
  std::string misuse_;
};

// Runs with the output in memory of the framework's allocator, as the loader does.
Result run_in(FrameworkMemory& memory, const Device& device, uint32_t space, uint64_t seed) {
  Result result;
  const auto subject = make_subject(device, problem_of("Add/float/same", seed, "framework memory"), result);
  if (subject == nullptr) return result;
  Answer answer;
  const auto program = Program::compile(device, *subject->graph, answer);
  if (program == nullptr) return failed(answer.describe());
  const auto instance = Instance::create(*program, answer);
  if (instance == nullptr) return failed(answer.describe());
  if (answer = instance->bind_all(subject->inputs); !answer.ok()) return failed(answer.describe());

  Table table(device);
  bp_tensor_t output = instance->output(0).tensor();
  const uint64_t bytes = instance->output(0).bytes();
  const bp_allocate_t wanted = {.size = sizeof wanted, .space = space, .bytes = bytes};
  bp_external_t external = {.size = sizeof external};
  if (FrameworkMemory::allocate(&memory, &wanted, &external) != BP_OK) throw std::bad_alloc();
  const bp_import_t what = {.size = sizeof what, .space = space, .external = &external};
  bp_buffer_t buffer = {};
  if (const bp_status_t status = table.api().import(table.device(), &what, &buffer, table.error()); status != BP_OK) {
    external.release(external.self);
    return returned("import of the framework's memory", status, table);
  }
  buffer.space = space;
  buffer.bytes = external.bytes;
  output.buffer = buffer;
  answer = instance->bind(BP_SLOT_OUTPUT, output);
  if (answer.ok()) answer = instance->run();
  Bytes seen(bytes);
  const bp_status_t status = answer.ok() ? table.read(buffer, seen) : BP_OK;
  const Answer unbound = instance->bind(BP_SLOT_OUTPUT, instance->output(0));
  const bool is_early = memory.is_released(external);
  table.release(buffer);
  if (is_early) return failed("`release` of the framework's memory is called while the import lives");
  if (!answer.ok() || !unbound.ok()) return failed((answer.ok() ? unbound : answer).describe());
  if (status != BP_OK) return returned("copy from the framework's memory", status, table);
  const onnx::Tensor computed{output.dtype, {output.extents, output.extents + output.rank}, seen};
  const std::string fault = subject->fault({computed});
  return fault.empty() ? passed(1) : failed(fault);
}

// A device works in memory of the framework's allocator, and releases all of it within two seconds after the device is
// closed.
Result framework_memory(Bench& bench, Table& table) {
  bp_space_t space = {};
  const std::optional<uint32_t> index = importing_space(bench, table, space);
  if (!index) return not_supported("the device imports no host memory");
  // Kept if the plugin did not release all memory, because the plugin may still use it.
  static std::vector<std::unique_ptr<FrameworkMemory>> kept;
  FrameworkMemory& memory = *kept.emplace_back(new FrameworkMemory(bench.device().info().space_count));
  const bp_device_open_t how = {
      .size = sizeof how, .option_stride = sizeof(bp_option_t), .self = &memory, .allocate = FrameworkMemory::allocate};
  Result result;
  {
    const Device device(bench.device().backend(), bench.device_index(), &how);
    result = run_in(memory, device, *index, bench.seed());
  }
  if (!memory.is_released())
    return failed("memory of the framework's allocator is not released two seconds after the device was closed");
  const std::string misuse = memory.misuse();
  kept.pop_back();
  if (result.state == State::kFail || misuse.empty()) return result;
  return failed("the plugin uses the framework's allocator wrongly: it " + misuse);
}

// Memory exported as a cl_mem can be imported again, and the import has the same contents. Counts in `out_tried` the
// spaces that export a cl_mem.
Result exports_of(Table& table, uint32_t index, uint32_t& out_tried) {
  constexpr uint32_t kKind = BP_EXTERNAL_CL_MEM;
  bp_space_t space;
  bp_status_t status = table.space(index, space);
  if (status != BP_OK) return returned("space", status, table);
  if (!lists(space.exports, space.export_count, kKind)) return passed(1);
  ++out_tried;
  constexpr uint64_t kBytes = 8192;
  const Block block(table, kBytes, index);
  const Bytes content = pattern(kBytes, kKind);
  if (status = table.write(content, block.buffer); status != BP_OK) return returned("copy", status, table);
  const bp_export_t what = {.size = sizeof what, .kind = kKind, .buffer = &block.buffer};
  bp_external_t external = {.size = sizeof external};
  if (status = table.api().export_(table.device(), &what, &external, table.error()); status != BP_OK)
    return returned("export of a cl_mem", status, table);
  if (external.kind != kKind) return failed(fmt::format("export of a cl_mem returned kind {}", external.kind));
  if (!lists(space.imports, space.import_count, kKind)) return passed(1);
  const bp_import_t back = {.size = sizeof back, .space = index, .external = &external};
  bp_buffer_t buffer = {};
  if (status = table.api().import(table.device(), &back, &buffer, table.error()); status != BP_OK)
    return returned("import of a cl_mem", status, table);
  buffer.space = index;
  buffer.bytes = kBytes;
  Bytes seen(kBytes);
  status = table.read(buffer, seen);
  table.release(buffer);
  if (status != BP_OK) return returned("copy from imported memory", status, table);
  if (seen != content) return failed("memory exported as a cl_mem has different contents when imported again");
  return passed(1);
}

Result exports(Bench& bench, Table& table) {
  uint32_t tried = 0;
  for (uint32_t i = 0; i < bench.device().info().space_count; ++i) {
    if (Result result = exports_of(table, i, tried); result.state != State::kPass) return result;
  }
  return tried == 0 ? not_supported("the device exports no kind of memory that the harness can import again")
                    : passed(1);
}

// An allocation larger than any machine's memory is refused, and the device works afterwards.
Result too_much(Bench&, Table& table) {
  bp_buffer_t buffer;
  const bp_status_t status = table.allocate(uint64_t{1} << 60, buffer);
  if (status == BP_OK) {
    table.release(buffer);
    return failed("allocate of 2^60 bytes succeeds");
  }
  if (status != BP_RESOURCE_EXHAUSTED)
    return failed(fmt::format("allocate of 2^60 bytes returns {}, not BP_RESOURCE_EXHAUSTED", status_name(status)));
  const Block block(table, 64);
  const Bytes content = pattern(64, 3);
  Bytes seen(64);
  if (table.write(content, block.buffer) != BP_OK || table.read(block.buffer, seen) != BP_OK || seen != content)
    return failed("after an allocation was refused, a copy fails or changes the contents: " + table.text());
  return passed(1);
}

}  // namespace

void add_memory(const Selection&, std::vector<Case>& out_cases) {
  const struct {
    const char* name;
    Result (*check)(Bench&, Table&);
  } rows[] = {{"spaces", spaces},
              {"copies", copies},
              {"stream_order", stream_order},
              {"fills", fills},
              {"maps", maps},
              {"exports", exports},
              {"import_host", import_host},
              {"framework_memory", framework_memory},
              {"too_much", too_much}};
  for (const auto& row : rows) {
    out_cases.push_back({fmt::format("memory/{}", row.name), [check = row.check](Bench& bench) {
                           if (bench.device().plugin().memory == nullptr)
                             return not_supported("the device works in host memory");
                           Table table(bench.device());
                           return check(bench, table);
                         }});
  }
}

}  // namespace backplane::conform
