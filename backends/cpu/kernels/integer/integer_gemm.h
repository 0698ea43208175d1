// SPDX-License-Identifier: Apache-2.0
// Matrix products of 8-bit integers minus their zero points. The sums are 32-bit integers, exact modulo 2^32.
#pragma once

#include <memory>
#include <span>

#include "kernels/integer/integer_tile.h"
#include "kernels/matmul/matmul.h"
#include "kernels/onednn/packed_weights.h"
#include "runtime/kernel.h"

namespace backplane::cpu {

// The zero points in a tensor, widened to 32 bits; a single 0 if the tensor is absent.
class ZeroPointVector {
 public:
  explicit ZeroPointVector(const Tensor& tensor);
  std::span<const int32_t> values() const { return values_; }

 private:
  std::vector<int32_t> values_;
};

// Returns nullopt if the tensor is absent or has 1, `channels` or `channels` · `batches` elements, otherwise an error
// message.
std::optional<std::string> check_zero_point(const Tensor& tensor, std::string_view name, int64_t channels,
                                            int64_t batches);

// The zero points of A and B: one for all elements, or one per row of A and column of B. In the latter case, all
// matrices of the batch share their zero points, or each matrix has its own.
struct ZeroPoints {
  std::span<const int32_t> a, b;
};

// Some rows and columns of one product of a batch.
struct SumsPart {
  int64_t batch;
  int64_t first_row, last_row, first_column, last_column;
};

class IntegerGemm {
 public:
  IntegerGemm(int threads, MatMulSize size);

  // Packs known matrices B once for all plans. matrix(i) returns the i-th of `count` matrices [k, n] derived from
  // `weights`. The returned memory must stay valid until the next call.
  template <class Matrix>
  void pack(PackedWeights& packed, const Tensor& weights, int64_t count, const Matrix& matrix) {
    pack_ = packed.get(weights, {}, [&] {
      PackedWeights::Pack memory = allocate_matrices(count);
      for (int64_t i = 0; i < count; ++i) pack_matrix(matrix(i), weights.dtype == BP_DTYPE_INT8, matrix_at(memory, i));
      return memory;
    });
  }
  // Packs the matrices of a tensor if its data are known.
  void pack(PackedWeights& packed, const Tensor& b);

  const MatMulSize& size() const { return size_; }
  bool is_packed() const { return pack_ != nullptr; }
  // Depends on whether B is packed: call it after `pack`.
  int64_t scratch_bytes() const;

  struct Operands {
    bool a_signed;
    Tensor b;  // its data are not read if they were packed
    ZeroPoints zeros;
    int32_t* sums;
    int64_t sums_step;  // elements from one product's sums to the next product's
  };
  // Computes the sums of all products, one product after another, and calls finish(part) for each part on the thread
  // that computed it. row_at(product, row, buffer) returns a pointer to the k values of a row of A, for which it may
  // use `buffer`.
  template <class RowAt, class Finish>
  void run(const Operands& operands, const RowAt& row_at, void* scratch, const Finish& finish) const {
    const Caller caller{row_function<RowAt>, &row_at,
                        [](const void* f, const SumsPart& part) { (*static_cast<const Finish*>(f))(part); }, &finish};
    run(operands, caller, scratch);
  }
  // Like the function above, but reads the rows of A from a tensor.
  template <class Finish>
  void run(const Tensor& a, const Tensor& b, const ZeroPoints& zeros, int32_t* sums, void* scratch,
           const Finish& finish) const {
    const auto row_at = [&](int64_t product, int64_t row, uint8_t*) {
      return a.as<uint8_t>() + (size_.a_offsets[product] * size_.m + row) * size_.k;
    };
    run({a.dtype == BP_DTYPE_INT8, b, zeros, sums, size_.m * size_.n}, row_at, scratch, finish);
  }

  // For callers that loop over blocks of columns themselves, once B is packed: `prepare` packs the size().m rows of A
  // and stores the zero points of B's matrix with index `matrix`. `multiply` computes the sums of the blocks
  // [first, last) of that matrix on the calling thread. There are blocks() blocks of lanes() columns.
  int64_t blocks() const { return blocks_; }
  int64_t lanes() const { return kernels_.lanes; }
  template <class RowAt>
  void prepare(const Operands& operands, int64_t matrix, const RowAt& row_at, void* scratch) const {
    prepare(operands, matrix, {row_function<RowAt>, &row_at, nullptr, nullptr}, scratch);
  }
  void multiply(int64_t matrix, int32_t* sums, void* scratch, int64_t first, int64_t last) const;

 private:
  struct Caller {
    const void* (*row_at)(const void* f, int64_t product, int64_t row, uint8_t* buffer);
    const void* row_function;
    void (*finish)(const void* f, const SumsPart& part);
    const void* finish_function;
  };
  // The start of each part of scratch memory.
  struct ScratchAreas {
    uint32_t *rows, *row_zero, *row_rest, *column_zero, *matrix;  // `rows` are in the order that the tiles need
    uint8_t* buffers;                                             // one of k bytes for each thread
  };
  struct Product;

  template <class RowAt>
  static const void* row_function(const void* f, int64_t product, int64_t row, uint8_t* buffer) {
    return (*static_cast<const RowAt*>(f))(product, row, buffer);
  }
  ScratchAreas areas_in(void* scratch) const;
  void set_column_zeros(const Operands& operands, int64_t matrix, const ScratchAreas& areas) const;
  void prepare(const Operands& operands, int64_t matrix, const Caller& caller, void* scratch) const;
  void run(const Operands& operands, const Caller& caller, void* scratch) const;
  PackedWeights::Pack allocate_matrices(int64_t count) const;
  uint32_t* matrix_at(const PackedWeights::Pack& pack, int64_t i) const;
  void pack_matrix(const void* b, bool is_signed, uint32_t* matrix) const;
  void prepare_rows(const Product& product, int64_t first_tile, int64_t last_tile) const;
  void store_row(const void* a, bool is_signed, int64_t step, uint32_t* to) const;
  void multiply(const ScratchAreas& areas, const uint32_t* matrix, int32_t* sums, int64_t first_tile, int64_t last_tile,
                int64_t first_block, int64_t last_block) const;

  int64_t first_row(int64_t tile) const { return tile * size_.m / tiles_; }
  int64_t matrix_words() const { return blocks_ * kernels_.lanes * (1 + groups_); }

  MatMulSize size_;
  const IntegerTiles& kernels_;
  bool amx_;        // whether tiles are multiplied by multiply_on_amx
  int64_t groups_;  // groups along k, see IntegerTile
  int64_t blocks_;  // blocks of columns
  int64_t max_tile_rows_;
  int64_t tiles_;  // tiles of rows
  int64_t threads_;
  PackedWeights::Pack pack_;
};

}  // namespace backplane::cpu
