// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session.h"

namespace backplane::python {

nb::object make_run(std::shared_ptr<SessionState> state, nb::handle inputs, nb::handle outputs);

// Returns a Run on an idle exec, for one call. `_give_back` returns the exec.
nb::object take_run(std::shared_ptr<SessionState> state);

}  // namespace backplane::python
