// SPDX-License-Identifier: Apache-2.0
// The format is a zip archive (PKWARE's APPNOTE): the members, then a directory that lists them, then an end record.
#include "npz.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "npy.h"

namespace backplane::tools {
namespace {

using onnx::Malformed;

constexpr uint32_t kLocal = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50;
constexpr size_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22;
constexpr size_t kMaxMembers = 10000;
constexpr uint32_t kLarge = 0xffffffff;  // the actual value is in the zip64 field

template <class T>
T number(std::string_view bytes, size_t at) {
  T value;
  if (at > bytes.size() || bytes.size() - at < sizeof value) throw Malformed("the .npz file ends within a record");
  std::memcpy(&value, bytes.data() + at, sizeof value);  // little-endian, like this processor
  return value;
}

std::string_view piece(std::string_view bytes, uint64_t at, uint64_t size) {
  if (at > bytes.size() || bytes.size() - at < size) throw Malformed("the .npz file ends within a member");
  return bytes.substr(at, size);
}

struct Member {
  std::string name;
  uint16_t method = 0;
  uint32_t crc = 0;
  uint64_t stored = 0, size = 0, at = 0;  // bytes in the archive; bytes uncompressed; offset of its local record
};

// Reads the zip64 field. Of the uncompressed size, the compressed size and the offset, in this order, the field
// contains those that do not fit into 32 bits.
void read_zip64(std::string_view extra, Member& member) {
  while (extra.size() >= 4) {
    const auto id = number<uint16_t>(extra, 0), size = number<uint16_t>(extra, 2);
    const std::string_view field = piece(extra, 4, size);
    if (id == 1) {
      size_t at = 0;
      for (uint64_t* value : {&member.size, &member.stored, &member.at}) {
        if (*value != kLarge) continue;
        *value = number<uint64_t>(field, at);
        at += sizeof *value;
      }
    }
    extra.remove_prefix(4 + size);
  }
}

std::vector<Member> read_directory(std::string_view bytes) {
  // The end record is at the end of the file. A comment could follow it, but numpy does not write one.
  if (bytes.size() < kEndBytes || number<uint32_t>(bytes, bytes.size() - kEndBytes) != kEnd)
    throw Malformed("the file is not a .npz file: it does not end as a zip archive does");
  const size_t end = bytes.size() - kEndBytes;
  const auto count = number<uint16_t>(bytes, end + 10);
  uint64_t at = number<uint32_t>(bytes, end + 16);
  if (count > kMaxMembers)
    throw Malformed(fmt::format("the .npz file has {} members; at most {} are read", count, kMaxMembers));
  if (at == kLarge) throw Malformed("the .npz file has more than 4 GB, which is not supported");
  std::vector<Member> members;
  for (uint16_t i = 0; i < count; ++i) {
    if (number<uint32_t>(bytes, at) != kEntry)
      throw Malformed(fmt::format("the .npz file's directory is damaged: there is no entry {} of {}", i + 1, count));
    Member member;
    const auto flags = number<uint16_t>(bytes, at + 8);
    member.method = number<uint16_t>(bytes, at + 10);
    member.crc = number<uint32_t>(bytes, at + 16);
    member.stored = number<uint32_t>(bytes, at + 20);
    member.size = number<uint32_t>(bytes, at + 24);
    member.at = number<uint32_t>(bytes, at + 42);
    const auto name = number<uint16_t>(bytes, at + 28), extra = number<uint16_t>(bytes, at + 30),
               comment = number<uint16_t>(bytes, at + 32);
    member.name = piece(bytes, at + kEntryBytes, name);
    read_zip64(piece(bytes, at + kEntryBytes + name, extra), member);
    if (flags & 1)
      throw Malformed(fmt::format("member '{}' of the .npz file is encrypted, which is not supported", member.name));
    at += kEntryBytes + name + extra + comment;
    members.push_back(std::move(member));
  }
  return members;
}

// Decompresses a member. Allocates little more than the member's stated size, and only as data is decompressed.
std::string inflate_member(std::string_view stored, const Member& member) {
  std::string bytes;
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(stored.data()));
  stream.avail_in = static_cast<uInt>(stored.size());
  int state = Z_OK;
  std::vector<char> piece(1 << 16);
  while (state == Z_OK && bytes.size() <= member.size) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    bytes.append(piece.data(), piece.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END || bytes.size() != member.size)
    throw Malformed(fmt::format("member '{}' of the .npz file is damaged: it does not decompress to {} bytes",
                                member.name, member.size));
  return bytes;
}

uint32_t checksum(std::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

template <class... T>
void put(std::string& out, T... values) {
  (out.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
}

}  // namespace

std::vector<std::pair<std::string, onnx::Tensor>> read_npz(std::string_view bytes, uint64_t most) {
  std::vector<std::pair<std::string, onnx::Tensor>> arrays;
  uint64_t read = 0, inflated_bytes = 0;
  for (const Member& member : read_directory(bytes)) {
    // Rejects members that are together larger than the file: a size is wrong or members overlap. Otherwise, a small
    // file could contain any number of large arrays.
    if (member.stored > bytes.size() || (read += member.stored) > bytes.size())
      throw Malformed(
          fmt::format("the members of the .npz file up to '{}' have more bytes than the file", member.name));
    if (member.size > most || (inflated_bytes += member.size) > most)
      throw Malformed(
          fmt::format("the .npz file's arrays have more than {} bytes, half of this machine's memory: read "
                      "them in parts, or on a larger machine",
                      most));
    if (number<uint32_t>(bytes, member.at) != kLocal)
      throw Malformed(
          fmt::format("the .npz file's directory is damaged: no member '{}' is at byte {}", member.name, member.at));
    const uint64_t begin =
        member.at + kLocalBytes + number<uint16_t>(bytes, member.at + 26) + number<uint16_t>(bytes, member.at + 28);
    const std::string_view stored = piece(bytes, begin, member.stored);
    std::string inflated;
    std::string_view file = stored;
    if (member.method == 8) {
      if (stored.size() >= kLarge)
        throw Malformed(
            fmt::format("member '{}' of the .npz file has more than 4 GB, which is not supported", member.name));
      inflated = inflate_member(stored, member);
      file = inflated;
    } else if (member.method != 0) {
      throw Malformed(fmt::format("member '{}' of the .npz file is compressed by method {}, which is not supported",
                                  member.name, member.method));
    }
    if (file.size() != member.size || checksum(file) != member.crc)
      throw Malformed(fmt::format("member '{}' of the .npz file is damaged: its checksum differs", member.name));
    std::string name = member.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    arrays.emplace_back(std::move(name), read_npy(file));
  }
  return arrays;
}

std::string write_npz(const std::vector<std::pair<std::string, onnx::Tensor>>& arrays) {
  constexpr uint16_t kVersion = 20, kNoTime = 0, kNoDate = 0x21;  // 1980-01-01
  std::string out, directory;
  for (const auto& [array, tensor] : arrays) {
    const std::string name = array + ".npy", file = write_npy(tensor);
    const auto at = static_cast<uint32_t>(out.size()), size = static_cast<uint32_t>(file.size());
    const auto name_size = static_cast<uint16_t>(name.size());
    if (file.size() >= kLarge || out.size() + file.size() >= kLarge || name.size() > UINT16_MAX ||
        arrays.size() > kMaxMembers)
      throw Malformed("the arrays exceed what a .npz file can contain: write .npy files, to a folder");
    const uint16_t none = 0, flags = 0x800;  // names are UTF-8
    const uint32_t crc = checksum(file);
    put(out, kLocal, kVersion, flags, none, kNoTime, kNoDate, crc, size, size, name_size, none);
    out += name + file;
    put(directory, kEntry, kVersion, kVersion, flags, none, kNoTime, kNoDate, crc, size, size, name_size, none, none,
        none, none, uint32_t{0}, at);
    directory += name;
  }
  const auto begin = static_cast<uint32_t>(out.size()), size = static_cast<uint32_t>(directory.size());
  const auto count = static_cast<uint16_t>(arrays.size());
  out += directory;
  put(out, kEnd, uint16_t{0}, uint16_t{0}, count, count, size, begin, uint16_t{0});
  return out;
}

}  // namespace backplane::tools
