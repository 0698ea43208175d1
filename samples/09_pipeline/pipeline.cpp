// SPDX-License-Identifier: Apache-2.0
// A pipeline whose source is faster than the device: pipeline MODEL.onnx [FRAMES]. A fixed number of runs is in flight.
// The source waits for a free place before it reads the next frame, so memory is bounded and no frame is dropped.
// Results leave in the order of the frames. The model computes y from a and b, all float[2, 3].
#include <backplane/client.hpp>
#include <iostream>
#include <vector>

namespace {

constexpr size_t kInFlight = 3;

// A place in the pipeline: an exec with its own memory. Its semaphore counts the runs that have ended; when the count
// reaches the number of submitted runs, the exec is free.
class Place {
 public:
  explicit Place(backplane::Exec exec) : exec_(std::move(exec)) {
    exec_.bind("a", a);
    exec_.bind("b", b);
    exec_.bind_output("y", y);
  }

  void submit() {  // returns at once
    const bp_point_t end = ended_.at(++runs_);
    bp_run_t run{};
    run.size = sizeof run;
    run.signals = &end;
    run.signal_count = 1;
    exec_.submit(run);
  }
  bool is_running() const { return ended_.value() < runs_; }
  void wait() const { ended_.wait(runs_); }  // throws the run's error if it failed

  backplane::Tensor a{BP_DTYPE_FLOAT, {2, 3}}, b{BP_DTYPE_FLOAT, {2, 3}}, y{BP_DTYPE_FLOAT, {2, 3}};

 private:
  backplane::Exec exec_;
  backplane::Semaphore ended_;
  uint64_t runs_ = 0;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::cerr << "usage: pipeline MODEL.onnx [FRAMES]\n";
    return 2;
  }
  const size_t frames = argc > 2 ? std::stoul(argv[2]) : 1000;
  const backplane::Environment env;
  const backplane::Session session = env.compile(env.open(argv[1]));
  std::vector<Place> places;
  for (size_t i = 0; i < kInFlight; ++i) places.emplace_back(session.exec());

  size_t waits = 0;
  double sum = 0;
  for (size_t frame = 0; frame < frames + kInFlight; ++frame) {
    Place& place = places[frame % kInFlight];
    if (frame >= kInFlight &&
        frame - kInFlight < frames) {  // the oldest run must end: its result comes next, and then its place is free
      waits += place.is_running() ? 1 : 0;
      place.wait();
      sum += place.y.data<float>()[5];
    }
    if (frame >= frames) continue;
    for (int i = 0; i < 6; ++i) place.a.data<float>()[i] = static_cast<float>(frame);
    place.submit();
  }
  std::cout << frames << " frames, at most " << kInFlight << " in flight, sum " << sum << '\n';
  std::cerr << "the source waited " << waits << " times\n";
} catch (const std::exception& error) {
  std::cerr << "pipeline: " << error.what() << '\n';
  return 1;
}
