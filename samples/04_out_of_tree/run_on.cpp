// SPDX-License-Identifier: Apache-2.0
// run_on BACKEND MODEL: runs a model with float inputs on the given backend only, and prints its first output.
#include <backplane/client.hpp>
#include <iostream>
#include <numeric>

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cerr << "usage: run_on BACKEND.json|BACKEND.so MODEL.onnx\n";
    return 2;
  }
  backplane::EnvironmentOptions options;
  options.backend_files = {argv[1]};
  options.only_given = true;
  const backplane::Environment env(options);
  for (const bp_candidate_t& candidate : env.candidates()) {
    if (candidate.refusal != BP_REFUSED_NONE) std::cerr << "refused: " << backplane::view::text(candidate.text) << '\n';
  }

  const backplane::Model model = env.open(argv[2]);
  const backplane::Session session = env.compile(model);
  backplane::Exec exec = session.exec();
  for (const auto& input : model.graph().inputs()) {
    backplane::Tensor ramp(input.dtype(), input.extents());
    std::iota(ramp.data<float>(), ramp.data<float>() + ramp.count(), -2.0f);
    exec.bind(input.name(), ramp);
  }
  exec.run();
  std::cout << "on " << env.device(session.node(0).device).name << ":";
  for (const float y : exec.output(0).values<float>()) std::cout << ' ' << y;
  std::cout << '\n';
} catch (const std::exception& error) {
  std::cerr << "run_on: " << error.what() << '\n';
  return 1;
}
