// SPDX-License-Identifier: Apache-2.0
// Runs one graph on two devices: two_devices MODEL.onnx FIRST SECOND. Pins put additions on the first device and Relu
// on the second. A framework that has better information than the loader's cost estimates might do this. The model
// computes y from a and b, all float[2, 3].
#include <backplane/client.hpp>
#include <iostream>
#include <numeric>

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::cerr << "usage: two_devices MODEL.onnx FIRST SECOND; backplane list names the devices\n";
    return 2;
  }
  const backplane::Environment env;
  const backplane::Model model = env.open(argv[1]);

  backplane::SessionOptions options;
  options.devices = {argv[2], argv[3]};  // only these two
  options.pins = {{"op=Add", argv[2]}, {"op=Relu", argv[3]}};
  const backplane::Session session = env.compile(model, options);
  for (const backplane::view::Node& node : model.graph().nodes()) {
    const bp_placed_node_t placed = session.node(node.index());
    std::cout << node.op_type() << " on " << env.device(placed.device).name << ", island " << placed.island << '\n';
  }

  backplane::Exec exec = session.exec();
  for (const char* name : {"a", "b"}) {
    backplane::Tensor tensor(BP_DTYPE_FLOAT, {2, 3});
    std::iota(tensor.data<float>(), tensor.data<float>() + tensor.count(), -2.0f);
    exec.bind(name, tensor);
  }
  exec.run();  // the loader copies between devices that do not share memory
  std::cout << "y:";
  for (const float y : exec.output("y").values<float>()) std::cout << ' ' << y;
  std::cout << '\n';
} catch (const std::exception& error) {
  std::cerr << "two_devices: " << error.what() << '\n';
  return 1;
}
