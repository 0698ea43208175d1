// SPDX-License-Identifier: Apache-2.0
// Functions that return the plugin's own handles, which a framework may pass to the functions of an extension.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/partial.h"
#include "testing/partial_backend/handles.h"

namespace backplane {
namespace {

using ::testing::ElementsAre;

const partial::HandlesApi& table_of(const Environment& env) {
  return *static_cast<const partial::HandlesApi*>(
      api().env_get_extension(env.get(), view::text(std::string_view("partial/handles")), 1));
}

TEST(PluginHandles, OfDevicesAreThePlugins) {
  const Environment env = streaming({{"partial.devices", "2"}});
  for (uint32_t i = 0; i < 2; ++i)  // the first device is the CPU's
    EXPECT_EQ(table_of(env).device_index(env.plugin_device(env.devices()[1 + i].info.id)), i);
  bp_device_t* none = nullptr;
  EXPECT_EQ(api().env_plugin_device(env.get(), 12345, &none, nullptr), BP_NOT_FOUND);
  EXPECT_EQ(api().env_plugin_device(env.get(), 12345, nullptr, nullptr), BP_INVALID_ARGUMENT);
  api().env_abandon_device(env.get(), env.devices()[1].info.id, nullptr);
  EXPECT_EQ(api().env_plugin_device(env.get(), env.devices()[1].info.id, &none, nullptr), BP_DEVICE_LOST);
  EXPECT_EQ(none, nullptr);
}

// A plugin of another release may have a larger or smaller bp_option_t.
TEST(PluginHandles, PropertiesOfDevicesAreReadByTheirStride) {
  const Environment env = streaming({});
  const bp_device_info_t info = env.devices()[1].info;
  ASSERT_EQ(info.property_count, 2u);
  const auto* second =
      reinterpret_cast<const bp_option_t*>(reinterpret_cast<const char*>(info.properties) + info.property_stride);
  EXPECT_EQ(view::text(second->name), "size");
  EXPECT_EQ(view::text(second->value), "0");
}

// A plugin numbers its devices from 0, and the loader adds their offset in the environment. With option `peers` the
// partial backend also reports a peer 8, which does not exist.
TEST(PluginHandles, PeersAreNumberedAsDevicesOfTheEnvironment) {
  const Environment env = streaming({{"partial.devices", "2"}, {"partial.peers", "1"}});
  const auto devices = env.devices();
  ASSERT_EQ(devices.size(), 3u);  // the CPU's is the first
  EXPECT_EQ(devices[0].info.peer_count, 0u);
  for (uint32_t i = 1; i < 3; ++i) {
    EXPECT_EQ(devices[i].info.index, 1 + i);
    EXPECT_THAT(std::vector(devices[i].info.peers, devices[i].info.peers + devices[i].info.peer_count),
                ElementsAre(2, 3));
  }
}

TEST(PluginHandles, OfAStreamAreWaitedForByTheTable) {
  const Environment env = streaming({{"partial.run_us", "10000"}});
  const Stream stream(env.get(), env.devices()[1].info.id);
  Exec exec = env.compile(chain(2), pinned({{"*", "partial"}})).exec();
  const Tensor x = Tensor::of<float>({3}, {1, -2, 3}), y = Tensor::of<float>({3}, {0, 0, 0});
  exec.bind("x", x);
  exec.bind_output(0u, y);
  RunOptions how;
  how.stream = &stream;
  exec.run(how);
  bp_stream_t* handle = stream.plugin_stream();
  EXPECT_EQ(table_of(env).stream_wait(handle), BP_OK);
  EXPECT_THAT(y.values<float>(), ElementsAre(1, -2, 3));
  EXPECT_EQ(api().stream_plugin_stream(nullptr, &handle, nullptr), BP_INVALID_ARGUMENT);
  EXPECT_EQ(handle, nullptr);
}

TEST(PluginHandles, OfSemaphoresAndProgramsAreThePlugins) {
  const Environment env = streaming({{"partial.marks", "1"}});
  const NativeSemaphore semaphore(env.get(), env.devices()[1].info.id, 7);
  EXPECT_EQ(table_of(env).semaphore_value(semaphore.plugin_semaphore()), 7u);
  semaphore.signal(9);
  EXPECT_EQ(table_of(env).semaphore_value(semaphore.plugin_semaphore()), 9u);
  semaphore.wait(9);
  EXPECT_EQ(semaphore.value(), 9u);

  const Session session = env.compile(chain(2), pinned({{"*", "partial"}}));
  const bp_program_t* program = session.plugin_program(1);
  EXPECT_EQ(table_of(env).program_nodes(program), 1u);
  EXPECT_EQ(api().session_plugin_program(session.get(), 2, &program, nullptr), BP_NOT_FOUND);
  EXPECT_EQ(program, nullptr);
  SessionOptions placed = pinned({{"*", "partial"}});
  placed.flags = BP_SESSION_PLACE_ONLY;
  EXPECT_EQ(api().session_plugin_program(env.compile(chain(2), placed).get(), 0, &program, nullptr), BP_BAD_STATE);
}

}  // namespace
}  // namespace backplane
