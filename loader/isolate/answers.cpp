// SPDX-License-Identifier: Apache-2.0
#include "isolate/answers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/abi.h"
#include "base/file_limit.h"

namespace backplane::isolate {
namespace {

// Opens `path` if it is still the file that is mapped at `address`; by now another file may have that name. The result
// is empty if it is another file, or if that cannot be determined.
Descriptor mapped_file(const std::string& path, const void* address, uint64_t bytes, uint64_t file_offset) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat state {};
  if (!file || ::fstat(file.get(), &state) != 0 || !S_ISREG(state.st_mode)) return Descriptor();
  const std::unique_ptr<FILE, int (*)(FILE*)> maps(std::fopen("/proc/self/maps", "re"), std::fclose);
  if (!maps) return Descriptor();
  const auto at = reinterpret_cast<uintptr_t>(address);
  char* line = nullptr;
  size_t capacity = 0;
  bool same = false;
  while (::getline(&line, &capacity, maps.get()) > 0) {
    unsigned long begin = 0, end = 0, offset = 0, inode = 0;
    unsigned int major_number = 0, minor_number = 0;
    if (std::sscanf(line, "%lx-%lx %*4s %lx %x:%x %lu", &begin, &end, &offset, &major_number, &minor_number, &inode) !=
        6)
      continue;
    if (at < begin || at >= end) continue;
    same = bytes <= end - at && inode == state.st_ino && makedev(major_number, minor_number) == state.st_dev &&
           offset + (at - begin) == file_offset;
    break;
  }
  std::free(line);
  return same ? std::move(file) : Descriptor();
}

// Copies the bytes into a sealed file in memory.
Result<Descriptor> copied(const void* data, uint64_t bytes) {
  const FileLimitFails limit;
  Descriptor file(::memfd_create("backplane-weight", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const auto failed = [&] {
    return Status(BP_RESOURCE_EXHAUSTED,
                  "cannot allocate shared memory for a weight of " + std::to_string(bytes) + " bytes");
  };
  if (!file) return failed();
  const char* from = static_cast<const char*>(data);
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t wrote = ::write(file.get(), from + done, std::min<uint64_t>(bytes - done, uint64_t{1} << 30));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return failed();
    done += static_cast<uint64_t>(wrote);
  }
  ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
  return file;
}

}  // namespace

Status GraphAnswers::weight(const bp_graph_t& graph, uint32_t index, Writer& out, std::vector<Descriptor>& out_files) {
  const bp_weight_t weight = abi::element(graph.weights, index, graph.weight_stride);
  const void* data = weight.data;
  if (!data) {
    PluginError error;
    BP_TRY(error.status(graph.api->weight_map(&graph, index, &data, error.get()),
                        "weight " + std::to_string(index) + " cannot be read"));
  }
  if (weight.file.size) {
    if (Descriptor file = mapped_file(abi::string(weight.file), data, weight.bytes, weight.file_offset)) {
      out.put(weight.file_offset);
      out_files.push_back(std::move(file));
      return {};
    }
  }
  BP_ASSIGN(Descriptor file, copied(data, weight.bytes));
  out.put(uint64_t{0});
  out_files.push_back(std::move(file));
  return {};
}

Status GraphAnswers::answer(Operation question, Reader& in, Writer& out, std::vector<Descriptor>& out_files) {
  if (question == Operation::kProgress) {
    const auto done = in.get<uint32_t>(), total = in.get<uint32_t>();
    if (in.complete() && what_ && what_->progress) what_->progress(what_->progress_self, done, total);
    return {};
  }
  const auto number = in.get<uint32_t>();
  if (!in.ok() || number >= graphs_.size())
    return {BP_INVALID_ARGUMENT,
            "graph " + std::to_string(number) + " does not exist: the call sent " + std::to_string(graphs_.size())};
  const bp_graph_t& graph = *graphs_[number];
  if (question == Operation::kSerializeGraph) {
    const auto external_above = in.get<uint64_t>();
    if (!graph.api->serialize) return {BP_UNSUPPORTED, "the host does not serialize graphs"};
    const FileLimitFails limit;
    Descriptor file(::memfd_create("backplane-model", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file) return {BP_RESOURCE_EXHAUSTED, "cannot allocate shared memory for a serialized graph"};
    struct Sink {
      int file;
      uint64_t bytes;
      bool failed;
    } sink{file.get(), 0, false};
    const auto append = [](void* self, bp_text_t piece) {
      Sink& to = *static_cast<Sink*>(self);
      for (uint64_t done = 0; done < piece.size && !to.failed;) {
        const ssize_t wrote = ::write(to.file, piece.data + done, piece.size - done);
        if (wrote < 0 && errno == EINTR) continue;
        to.failed = wrote <= 0;
        done += wrote > 0 ? static_cast<uint64_t>(wrote) : 0;
      }
      to.bytes += piece.size;
    };
    PluginError error;
    BP_TRY(error.status(graph.api->serialize(&graph, external_above, append, &sink, error.get()),
                        "the host cannot serialize a graph"));
    if (sink.failed) return {BP_RESOURCE_EXHAUSTED, "cannot allocate shared memory for a serialized graph"};
    ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
    out.put(sink.bytes);
    out_files.push_back(std::move(file));
    return {};
  }
  const auto index = in.get<uint32_t>();
  if (!in.complete() || index >= graph.weight_count)
    return {BP_INVALID_ARGUMENT,
            "weight " + std::to_string(index) + " does not exist: the graph has " + std::to_string(graph.weight_count)};
  switch (question) {
    case Operation::kWeight:
      return weight(graph, index, out, out_files);
    case Operation::kWeightConsumed:
      if (graph.api->weight_consumed) graph.api->weight_consumed(&graph, index);
      return {};
    case Operation::kWeightHash: {
      if (!graph.api->weight_hash) return {BP_UNSUPPORTED, "the host does not hash weights"};
      uint64_t hash[2] = {};
      PluginError error;
      BP_TRY(error.status(graph.api->weight_hash(&graph, index, hash, error.get()),
                          "weight " + std::to_string(index) + " cannot be hashed"));
      out.put(hash[0]).put(hash[1]);
      return {};
    }
    default:
      return {BP_UNSUPPORTED,
              "operation " + std::to_string(static_cast<uint32_t>(question)) + " is not a request about a graph"};
  }
}

}  // namespace backplane::isolate
