// SPDX-License-Identifier: Apache-2.0
// The API of loader.h in C++17, header-only. Handles are shared pointers: copy them freely and destroy them in any
// order, except that cancel tokens and semaphores must outlive the runs and waits that use them. A failed call throws
// backplane::Error.
//
//   auto env = backplane::Environment();
//   auto model = env.open("m.onnx");
//   auto session = env.compile(model);
//   auto exec = session.exec();
//   exec.bind("x", backplane::Tensor::of<float>({1, 2}, {1, 2}));
//   exec.run();
//   backplane::Tensor y = exec.output(0);
//
// The first call opens the loader with dlopen (libbackplane.so.1, or the file that the macro BACKPLANE_LOADER_FILE
// names). If the macro BACKPLANE_CLIENT_LINKED is defined, the program must be linked with the loader instead.
// Functions that these headers do not wrap are available through api() and get().
#pragma once

#include "backplane/client/builder.hpp"
#include "backplane/client/call.hpp"
#include "backplane/client/environment.hpp"
#include "backplane/client/error.hpp"
#include "backplane/client/model.hpp"
#include "backplane/client/session.hpp"
#include "backplane/client/sync.hpp"
