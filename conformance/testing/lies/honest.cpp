// SPDX-License-Identifier: Apache-2.0
// Passes everything on unchanged: the harness must find no fault.
#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {};

}  // namespace backplane::liar
