// SPDX-License-Identifier: Apache-2.0
// Tells no lie: what a filter finds in others it must not find here.
#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {};

}  // namespace backplane::liar
