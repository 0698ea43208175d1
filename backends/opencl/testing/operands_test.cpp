// SPDX-License-Identifier: Apache-2.0
// Operands whose extents are known at run time only, and do not fit each other: the run fails, and names the node.
#include <gmock/gmock.h>

#include "testing/session.h"

namespace backplane::opencl::testing {
namespace {

using ::testing::HasSubstr;
using OperandsTest = OpenCl;
using Shape = std::vector<int64_t>;

class Operands {
 public:
  Operands(const char* op, const std::map<std::string, int64_t>& how) : op_(op), how_(how) {}
  // Adds an input with these extents. The model declares only its rank.
  Operands& unknown(const Shape& shape, bp_dtype_t dtype = BP_DTYPE_FLOAT) {
    return add(shape, Shape(shape.size(), -1), dtype);
  }
  Operands& known(const Shape& shape, bp_dtype_t dtype = BP_DTYPE_FLOAT) { return add(shape, shape, dtype); }
  Error failure_of_run() {
    Exec exec = opencl().compile(graph_.finish({graph_.node(op_, "y", slots_, how_)}), only_opencl()).exec();
    for (uint32_t i = 0; i < tensors_.size(); ++i) exec.bind(i, tensors_[i]);
    return failure([&] { exec.run(); });
  }

 private:
  Operands& add(const Shape& shape, const Shape& declared, bp_dtype_t dtype) {
    slots_.push_back(graph_.input("x" + std::to_string(slots_.size()), dtype, declared));
    tensors_.emplace_back(dtype, shape);
    return *this;
  }

  const char* op_;
  std::map<std::string, int64_t> how_;
  Graph graph_;
  std::vector<uint32_t> slots_;
  std::vector<Tensor> tensors_;
};

void expect_refused(const Error& error, const char* text) {
  EXPECT_EQ(error.status(), BP_TYPE_MISMATCH);
  EXPECT_THAT(error.text(), HasSubstr("'y': "));
  EXPECT_THAT(error.text(), HasSubstr(text));
}

TEST_F(OperandsTest, BatchNormalizationHasOneNumberPerChannel) {
  for (uint32_t slot = 1; slot < 5; ++slot) {
    SCOPED_TRACE(slot);
    Operands operands("BatchNormalization", {});
    operands.known({1, 3, 2});
    for (uint32_t i = 1; i < 5; ++i) operands.unknown({i == slot ? 2 : 3});
    expect_refused(operands.failure_of_run(), "has shape [2] instead of [3], one number per channel");
  }
  Operands operands("BatchNormalization", {});
  operands.unknown({1, 5, 2});
  for (uint32_t i = 1; i < 5; ++i) operands.known({3});
  expect_refused(operands.failure_of_run(), "input 1 has shape [3] instead of [5], one number per channel");
}

TEST_F(OperandsTest, ASlopeDoesNotEnlargeTheInput) {
  expect_refused(Operands("PRelu", {}).unknown({1}).known({5}).failure_of_run(), "[5] does not broadcast to [1]");
}

TEST_F(OperandsTest, AWindowHasElements) {
  for (const char* op : {"Conv", "ConvTranspose"}) {
    SCOPED_TRACE(op);
    expect_refused(Operands(op, {}).known({1, 1, 4}).unknown({1, 1, 0}).failure_of_run(),
                   "the window has extent 0 in dimension 2");
  }
}

TEST_F(OperandsTest, BlocksHaveAScaleAndAZeroPointEach) {
  Operands operands("QuantizeLinear", {{"axis", 1}, {"block_size", 2}});
  operands.known({2, 6}).unknown({2, 3}).unknown({3, 2}, BP_DTYPE_UINT8);
  expect_refused(operands.failure_of_run(), "zero points have extents [3,2] but scales [2,3]");
}

}  // namespace
}  // namespace backplane::opencl::testing
