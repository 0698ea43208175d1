// SPDX-License-Identifier: Apache-2.0
// The vendor SDK in C++17, header-only: derive from four classes and write one line; the SDK fills in the plugin's
// tables.
//
//   class MyBackend : public backplane::sdk::Backend { … };
//   BACKPLANE_PLUGIN(MyBackend)
//
//   sdk/fence.hpp     errors, exceptions and the ABI's size rules
//   sdk/host.hpp      the host's functions; settings
//   sdk/coverage.hpp  verdicts
//   sdk/table.hpp     the operator table that reports coverage
//   sdk/expect.hpp    the checks on a node that a row of the table makes, as a chain of calls
//   sdk/dtypes.hpp, sdk/shape.hpp, sdk/window.hpp, sdk/cost.hpp, sdk/weights.hpp, sdk/arena.hpp   helpers for rows and
//                     compilers: data types, extents, windows, costs of nodes, constants on the host, memory planning
//   sdk/backend.hpp   the classes to derive from
//   sdk/async.hpp     asynchronous runs: points, streams, timelines
//   sdk/node_program.hpp  a program for devices that compute node after node in host memory
//   sdk/streamed_program.hpp  an asynchronous program for devices whose driver runs an island in one blocking call
//   sdk/onnx.hpp      a graph as ONNX bytes
//   sdk/blob.hpp, sdk/file_cache.hpp   a checked header for stored data; small files that save work at the next start
//   sdk/plugin.hpp    the descriptor and BACKPLANE_PLUGIN
//   graph.hpp         convenient access to the graph
//
// backends/null is the smallest complete example.
#pragma once

#if defined(_WIN32)
#error "backplane: the SDK uses POSIX functions and does not compile for Windows yet; the C headers do"
#endif

#include "backplane/sdk/async.hpp"
#include "backplane/sdk/backend.hpp"
#include "backplane/sdk/blob.hpp"
#include "backplane/sdk/cost.hpp"
#include "backplane/sdk/expect.hpp"
#include "backplane/sdk/node_program.hpp"
#include "backplane/sdk/onnx.hpp"
#include "backplane/sdk/plugin.hpp"
#include "backplane/sdk/streamed_program.hpp"
#include "backplane/sdk/table.hpp"
#include "backplane/sdk/weights.hpp"
#include "backplane/sdk/window.hpp"
