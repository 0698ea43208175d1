// SPDX-License-Identifier: Apache-2.0
// Containers, mostly through the table that backends use.
#include "host/container.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace backplane {
namespace {

class ContainerTest : public ::testing::Test {
 protected:
  static bp_container_t* make(uint32_t kind) {
    auto made = make_container(kind);
    EXPECT_TRUE(made.ok());
    return made.take().release();
  }
  static bp_tensor_t tensor(bp_dtype_t dtype, const std::vector<int64_t>& extents, void* data, uint64_t bytes) {
    bp_tensor_t t{};
    t.size = sizeof t;
    t.dtype = dtype;
    t.rank = static_cast<uint32_t>(extents.size());
    t.extents = extents.data();
    t.buffer.address = data;
    t.buffer.bytes = bytes;
    return t;
  }
  const bp_container_api_t* api = container_api();
};

TEST_F(ContainerTest, ElementsAreCopies) {
  bp_container_t* list = make(BP_KIND_SEQUENCE);
  const std::vector<int64_t> extents{2, 1};
  float data[] = {1, 2};
  const bp_tensor_t given = tensor(BP_DTYPE_FLOAT, extents, data, sizeof data);
  ASSERT_EQ(api->append(list, {}, &given), BP_OK);
  data[0] = 9;
  bp_tensor_t read{};
  read.size = sizeof read;
  ASSERT_EQ(api->tensor(list, 0, &read), BP_OK);
  EXPECT_EQ(static_cast<const float*>(read.buffer.address)[0], 1);
  EXPECT_EQ(read.rank, 2u);
  EXPECT_EQ(read.extents[0], 2);
  EXPECT_EQ(read.buffer.bytes, sizeof data);
  EXPECT_EQ(api->tensor(list, 1, &read), BP_NOT_FOUND);
  api->clear(list);
  EXPECT_EQ(api->count(list), 0u);
  delete list;
}

TEST_F(ContainerTest, BuffersFollowTheRulesOfAllBuffers) {
  bp_container_t* list = make(BP_KIND_SEQUENCE);
  const std::vector<int64_t> extents{1};
  float data = 1;
  bp_tensor_t given = tensor(BP_DTYPE_FLOAT, extents, &data, sizeof data);
  given.buffer.reserved = 1;
  EXPECT_EQ(api->append(list, {}, &given), BP_UNSUPPORTED);
  given.buffer.reserved = 0;
  given.buffer.flags = 0x20000;
  EXPECT_EQ(api->append(list, {}, &given), BP_UNSUPPORTED);
  given.buffer.flags = BP_BUFFER_READ_ONLY;  // `append` only reads the tensor
  EXPECT_EQ(api->append(list, {}, &given), BP_OK);
  EXPECT_EQ(api->count(list), 1u);
  delete list;
}

TEST_F(ContainerTest, TextTensorsAreMeasuredByTheirOffsets) {
  bp_container_t* list = make(BP_KIND_SEQUENCE);
  const std::vector<int64_t> extents{2};
  std::vector<char> data(3 * 8 + 5);
  int64_t offsets[] = {0, 2, 5};
  std::memcpy(data.data(), offsets, sizeof offsets);
  std::memcpy(data.data() + 24, "abcde", 5);
  bp_tensor_t given = tensor(BP_DTYPE_STRING, extents, data.data(), data.size());
  EXPECT_EQ(api->append(list, {}, &given), BP_OK);
  given.buffer.bytes = data.size() - 1;  // one byte too small for the strings
  EXPECT_EQ(api->append(list, {}, &given), BP_INVALID_ARGUMENT);
  offsets[1] = 9;  // greater than the next offset
  std::memcpy(data.data(), offsets, sizeof offsets);
  given.buffer.bytes = data.size();
  EXPECT_EQ(api->append(list, {}, &given), BP_INVALID_ARGUMENT);
  EXPECT_EQ(api->count(list), 1u);
  delete list;
}

// Two pages of string offsets. When the second one is read, an offset in the first one changes, as if another process
// that shares the memory had been waiting for this.
int64_t* changing_offsets;
size_t page_size;
void change(int) {
  changing_offsets[1] = 1 << 20;
  mprotect(changing_offsets, 2 * page_size, PROT_READ | PROT_WRITE);
}

TEST_F(ContainerTest, ChecksTheOffsetsThatItKeeps) {
  page_size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, 2 * page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  changing_offsets = static_cast<int64_t*>(memory);
  const size_t count = page_size / sizeof(int64_t) + 1;  // the last two of the count + 1 offsets are on the second page
  mprotect(changing_offsets + count - 1, page_size, PROT_NONE);
  struct sigaction before {
  }, now{};
  now.sa_handler = change;
  sigaction(SIGSEGV, &now, &before);

  const std::vector<int64_t> extents{static_cast<int64_t>(count)};
  const bp_tensor_t given = tensor(BP_DTYPE_STRING, extents, memory, 2 * page_size);
  bp_container_t* list = make(BP_KIND_SEQUENCE);
  EXPECT_EQ(api->append(list, {}, &given), BP_INVALID_ARGUMENT);
  EXPECT_EQ(changing_offsets[1], 1 << 20);
  delete list;
  sigaction(SIGSEGV, &before, nullptr);
  munmap(memory, 2 * page_size);
}

TEST_F(ContainerTest, KindsHaveTheirRules) {
  float data[] = {1};
  const std::vector<int64_t> scalar;
  const bp_tensor_t given = tensor(BP_DTYPE_FLOAT, scalar, data, sizeof data);
  bp_container_t* optional = make(BP_KIND_OPTIONAL);
  EXPECT_EQ(api->append(optional, {}, &given), BP_OK);
  EXPECT_EQ(api->append(optional, {}, &given), BP_BAD_STATE);
  delete optional;

  bp_container_t* map = make(BP_KIND_MAP);
  EXPECT_EQ(api->append(map, {}, &given), BP_INVALID_ARGUMENT);
  EXPECT_EQ(api->append(map, {"key", 3}, &given), BP_OK);
  bp_bytes_t key{};
  EXPECT_EQ(api->key(map, 0, &key), BP_OK);
  EXPECT_EQ(std::string_view(static_cast<const char*>(key.data), key.size), "key");
  delete map;

  EXPECT_EQ(make_container(BP_KIND_TENSOR).status().code(), BP_INVALID_ARGUMENT);
}

TEST_F(ContainerTest, MayBeAssignedToItselfOrTakeTheElementsOfAChild) {
  const std::unique_ptr<bp_container_t> list(make(BP_KIND_SEQUENCE));
  const std::vector<int64_t> extents{1};
  float data[] = {7};
  const bp_tensor_t given = tensor(BP_DTYPE_FLOAT, extents, data, sizeof data);
  bp_container_t* child = nullptr;
  ASSERT_EQ(api->append_child(list.get(), {}, &child), BP_OK);
  ASSERT_EQ(api->append(child, {}, &given), BP_OK);
  ASSERT_TRUE(list->assign(*list).ok());
  ASSERT_EQ(api->count(list.get()), 1u);
  ASSERT_EQ(api->child(list.get(), 0, &child), BP_OK);
  ASSERT_TRUE(list->assign(*child).ok());
  bp_tensor_t read{};
  read.size = sizeof read;
  ASSERT_EQ(api->tensor(list.get(), 0, &read), BP_OK);
  EXPECT_EQ(static_cast<const float*>(read.buffer.address)[0], 7);
}

TEST_F(ContainerTest, FunctionsRefuseNull) {
  float data[] = {1};
  bp_tensor_t given = tensor(BP_DTYPE_FLOAT, {}, data, sizeof data);
  bp_container_t* child = nullptr;
  bp_bytes_t key{};
  EXPECT_EQ(api->count(nullptr), 0u);
  EXPECT_EQ(api->tensor(nullptr, 0, &given), BP_INVALID_ARGUMENT);
  EXPECT_EQ(api->child(nullptr, 0, &child), BP_INVALID_ARGUMENT);
  EXPECT_EQ(api->key(nullptr, 0, &key), BP_INVALID_ARGUMENT);
  EXPECT_EQ(api->append(nullptr, {}, &given), BP_INVALID_ARGUMENT);
  EXPECT_EQ(api->append_child(nullptr, {}, &child), BP_INVALID_ARGUMENT);
  api->clear(nullptr);
}

TEST_F(ContainerTest, NestingEndsSomewhere) {
  bp_container_t* outermost = make(BP_KIND_SEQUENCE);
  bp_container_t* inner = outermost;
  bp_status_t status = BP_OK;
  int depth = 0;
  while (status == BP_OK && depth < 1000) {
    bp_container_t* child = nullptr;
    status = api->append_child(inner, {}, &child);
    if (status == BP_OK) inner = child;
    ++depth;
  }
  EXPECT_EQ(status, BP_RESOURCE_EXHAUSTED);
  bp_tensor_t read{};
  read.size = sizeof read;
  EXPECT_EQ(api->tensor(outermost, 0, &read), BP_TYPE_MISMATCH);
  delete outermost;
}

}  // namespace
}  // namespace backplane
