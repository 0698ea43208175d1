// SPDX-License-Identifier: Apache-2.0
// Replaces the weights of a compiled model: refit MODEL.onnx. Execs stay bound. A device that can replace weights
// does not compile again; for others, the loader compiles new programs. This is for training loops, and for models that
// are fine-tuned for each customer. The model computes y = Relu(a + b) with the weight b, all float[2, 3] (make_model
// FILE weights writes it).
#include <backplane/client.hpp>
#include <iostream>

namespace {

void print(const char* when, backplane::Exec& exec) {
  exec.run();
  std::cout << when << ":";
  for (const float y : exec.output("y").values<float>()) std::cout << ' ' << y;
  std::cout << '\n';
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: refit MODEL.onnx\n";
    return 2;
  }
  const backplane::Environment env;
  const backplane::Model model = env.open(argv[1]);
  backplane::SessionOptions options;
  options.flags = BP_SESSION_REFIT;  // devices use the weights only in ways that allow replacing them
  const backplane::Session session = env.compile(model, options);
  backplane::Exec exec = session.exec();
  exec.bind("a", backplane::Tensor(BP_DTYPE_FLOAT, {2, 3}));  // zeros
  print("as exported", exec);

  backplane::Tensor weight(BP_DTYPE_FLOAT, {2, 3});
  session.read_weight("b", weight);
  for (int i = 0; i < 6; ++i) weight.data<float>()[i] += static_cast<float>(i);
  session.refit("b", weight);
  print("refitted", exec);
} catch (const std::exception& error) {
  std::cerr << "refit: " << error.what() << '\n';
  return 1;
}
