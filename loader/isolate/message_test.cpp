// SPDX-License-Identifier: Apache-2.0
// Truncated and damaged messages, graphs and containers in messages, and a channel whose other side misbehaves.
#include "isolate/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <thread>

#include "host/container.h"
#include "isolate/channel.h"
#include "isolate/container_wire.h"
#include "isolate/graph_wire.h"
#include "isolate/testing/small_graph.h"

namespace backplane::isolate {
namespace {

class NoService : public GraphService {
 public:
  Result<Mapping> weight(uint32_t, uint32_t, uint64_t) override { return Status(BP_UNSUPPORTED, "none"); }
  void weight_consumed(uint32_t, uint32_t) override {}
  Status weight_hash(uint32_t, uint32_t, uint64_t*) override { return {BP_UNSUPPORTED, "none"}; }
  Status serialize(uint32_t, uint64_t, bp_text_sink_t, void*) override { return {BP_UNSUPPORTED, "none"}; }
};

TEST(Message, ValuesComeBackInTheirOrder) {
  Writer out;
  const uint32_t numbers[] = {7, 8, 9};
  out.put<uint64_t>(5).text(std::string_view("five")).array(numbers, 3).status({});
  out.status(Status(BP_BUSY, "later").with_node(3).with_vendor_code(-4).with_flags(2));
  Reader in(out.bytes());
  EXPECT_EQ(in.get<uint64_t>(), 5u);
  EXPECT_EQ(in.text(), "five");
  EXPECT_THAT(in.array<uint32_t>(), ::testing::ElementsAre(7, 8, 9));
  EXPECT_TRUE(in.status().ok());
  const Status status = in.status();
  EXPECT_EQ(status.code(), BP_BUSY);
  EXPECT_EQ(status.text(), "later");
  EXPECT_EQ(status.node(), 3u);
  EXPECT_EQ(status.vendor_code(), -4);
  EXPECT_EQ(status.flags(), 2u);
  EXPECT_TRUE(in.complete());
}

TEST(Message, WhatIsCutOffIsEmptyAndStaysSo) {
  Writer out;
  const uint32_t numbers[] = {1, 2};
  out.text(std::string_view("text")).array(numbers, 2).put<uint64_t>(1);
  for (size_t bytes = 0; bytes < out.bytes().size(); ++bytes) {
    Reader in(std::string_view(out.bytes()).substr(0, bytes));
    in.text();
    in.array<uint32_t>();
    in.get<uint64_t>();
    EXPECT_FALSE(in.ok()) << bytes;
    EXPECT_EQ(in.get<uint32_t>(), 0u);
    EXPECT_EQ(in.text(), "");
  }
}

TEST(Message, CountsThatCannotBeAllocateNothing) {
  for (const uint64_t count : {uint64_t{1} << 40, UINT64_MAX, UINT64_MAX / 4}) {
    Writer out;
    out.put(count);
    EXPECT_TRUE(Reader(out.bytes()).array<uint32_t>().empty());
    EXPECT_EQ(Reader(out.bytes()).text(), "");
    EXPECT_EQ(Reader(out.bytes()).count(1), 0u);
  }
}

TEST(GraphWire, AGraphComesBackWhole) {
  const testing::SmallGraph small;
  Writer out;
  EXPECT_EQ(write_graph(small.graph(), out).size(), 1u);
  NoService service;
  auto read = WireGraph::read(out.take(), service);
  ASSERT_TRUE(read.ok()) << read.status().text();
  const bp_graph_t& graph = *(*read)->subject();
  ASSERT_EQ(graph.node_count, 1u);
  EXPECT_EQ(std::string(graph.nodes[0].op_type.data, graph.nodes[0].op_type.size), "Gemm");
  EXPECT_EQ(bp_node_input(&graph, &graph.nodes[0], 1), 1u);
  ASSERT_EQ(graph.attribute_count, 2u);
  EXPECT_EQ(*static_cast<const float*>(graph.attributes[0].data), 0.5f);
  EXPECT_EQ(static_cast<const bp_text_t*>(graph.attributes[1].data)[0].size, 4u);
  const void* data = nullptr;
  EXPECT_EQ(graph.api->weight_map(&graph, 0, &data, nullptr), BP_OK);
  float third = 0;
  std::memcpy(&third, static_cast<const char*>(data) + 2 * sizeof third, sizeof third);  // a weight may be misaligned
  EXPECT_EQ(third, 3);
}

TEST(GraphWire, EveryDamagedGraphIsRefusedOrWhole) {
  const testing::SmallGraph small;
  Writer out;
  write_graph(small.graph(), out);
  const std::string good = out.take();
  NoService service;
  for (size_t bytes = 0; bytes < good.size(); ++bytes)
    EXPECT_FALSE(WireGraph::read(good.substr(0, bytes), service).ok()) << bytes;
  EXPECT_FALSE(WireGraph::read(good + "x", service).ok());
  std::minstd_rand random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string bad = good;
    for (int k = 0; k < 3; ++k) bad[random() % bad.size()] = static_cast<char>(random());
    auto read = WireGraph::read(bad, service);
    if (read.ok()) testing::walk(*(*read)->subject());
  }
}

TEST(ContainerWire, DamagedContainersAreRefused) {
  bp_container_t map(BP_KIND_MAP);
  const float values[] = {1, 2};
  const int64_t extents[] = {2};
  bp_tensor_t tensor{};
  tensor.size = sizeof tensor;
  tensor.dtype = BP_DTYPE_FLOAT;
  tensor.rank = 1;
  tensor.extents = extents;
  tensor.buffer.address = const_cast<float*>(values);
  tensor.buffer.bytes = sizeof values;
  ASSERT_TRUE(map.append({"key", 3}, &tensor).ok());
  Writer out;
  ASSERT_TRUE(write_container(*container_api(), &map, out).ok());
  const std::string good = out.take();
  bp_container_t copy(BP_KIND_MAP);
  Reader whole(good);
  EXPECT_TRUE(read_container(*container_api(), &copy, whole).ok());
  EXPECT_TRUE(whole.complete());
  EXPECT_EQ(copy.count(), 1u);
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    Reader in(std::string_view(good).substr(0, bytes));
    EXPECT_FALSE(read_container(*container_api(), &copy, in).ok()) << bytes;
  }
}

class Limited : public Check {
 public:
  Status check() override { return ++asked_ > 10 ? Status(BP_TIMED_OUT, "long enough") : Status(); }

 private:
  int asked_ = 0;
};

class Patient : public Check {
 public:
  Status check() override { return {}; }
};

TEST(Channel, GarbageIsCorrupt) {
  Descriptor socket, page;
  auto channel = Channel::make(socket, page);
  ASSERT_TRUE(channel.ok());
  const std::string garbage(100, 'x');
  ASSERT_EQ(::write(socket.get(), garbage.data(), garbage.size()), 100);
  Limited limited;
  EXPECT_EQ((*channel)->receive(1000, limited).status().code(), BP_CORRUPT);
}

TEST(Channel, AMessageLongerThanAllowedIsCorrupt) {
  Descriptor socket, page;
  auto channel = Channel::make(socket, page);
  ASSERT_TRUE(channel.ok());
  auto other = Channel::take(std::move(socket), page);
  ASSERT_TRUE(other);
  Limited limited;
  ASSERT_TRUE(other->send(Operation::kReply, std::string(2000, 'y'), {}, limited).ok());
  EXPECT_EQ((*channel)->receive(1000, limited).status().code(), BP_CORRUPT);
}

TEST(Channel, ASilentOrClosedSideEndsTheWait) {
  Descriptor socket, page;
  auto channel = Channel::make(socket, page);
  ASSERT_TRUE(channel.ok());
  Limited limited;
  EXPECT_EQ((*channel)->receive(1000, limited).status().code(), BP_TIMED_OUT);
  (*channel)->pass(Turn::kMessage);
  Limited again;
  EXPECT_EQ((*channel)->await(again, 1000).code(), BP_TIMED_OUT);
  socket = Descriptor();
  Limited third;
  EXPECT_EQ((*channel)->receive(1000, third).status().code(), BP_DEVICE_LOST);
}

// A side that sends one byte at a time never lets the other wait for a whole slice.
TEST(Channel, ASlowSideEndsTheWaitToo) {
  Descriptor socket, page;
  auto channel = Channel::make(socket, page);
  ASSERT_TRUE(channel.ok());
  Patient patient;
  ASSERT_TRUE((*channel)->send(Operation::kReply, std::string(4000, 'y'), {}, patient).ok());
  std::string message(5000, '\0');
  const ssize_t size = ::read(socket.get(), message.data(), message.size());
  ASSERT_GT(size, 4000);
  message.resize(static_cast<size_t>(size));
  std::atomic<bool> ended{false};
  std::thread sender([&] {
    for (size_t i = 0; i < message.size() && !ended; ++i) {
      EXPECT_EQ(::write(socket.get(), &message[i], 1), 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  Limited limited;
  EXPECT_EQ((*channel)->receive(10'000, limited).status().code(), BP_TIMED_OUT);
  ended = true;
  sender.join();
}

TEST(Channel, LargeMessagesPass) {
  Descriptor socket, page;
  auto channel = Channel::make(socket, page);
  ASSERT_TRUE(channel.ok());
  auto other = Channel::take(std::move(socket), page);
  const std::string large(5'000'000, 'z');
  std::thread sender([&] {
    Patient patient;
    EXPECT_TRUE(other->send(Operation::kReply, large, {}, patient).ok());
  });
  Patient patient;
  auto received = (*channel)->receive(10'000'000, patient);
  sender.join();
  ASSERT_TRUE(received.ok());
  EXPECT_EQ(received->bytes, large);
}

}  // namespace
}  // namespace backplane::isolate
