// SPDX-License-Identifier: Apache-2.0
#include "sandbox/identity.h"

namespace backplane::conform {

Identity identify(const ChildSettings& settings) {
  Identity identity;
  const Case question = {.name = kIdentityCase, .judge = [&](RemoteDevice& device) {
                           identity = device.identity();
                           return passed();
                         }};
  Result answer;
  try {
    run_in_children(settings, {question}, [&](Result result) {
      if (result.name == kIdentityCase) answer = std::move(result);
    });
  } catch (const Fatal& error) {
    throw Unusable(error.what());
  }
  if (answer.state == State::kCrash) throw Unusable("opening the device failed: " + answer.reason);
  if (answer.state != State::kPass) throw Unusable(answer.reason);
  return identity;
}

}  // namespace backplane::conform
