// SPDX-License-Identifier: Apache-2.0
#include "kernels/integer/integer_gemm.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "kernels/common/quantization.h"
#include "kernels/common/support.h"
#include "kernels/integer/integer_amx_tile.h"
#include "kernels/simd/amx.h"
#include "kernels/simd/clones.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

constexpr int64_t kTogether = 4;  // row tiles per step, whose sums stay in the cache until they are finished
constexpr int64_t kGrain = int64_t{1} << 19;     // minimum multiplications of 8-bit integers per task
constexpr int64_t kRowGrain = int64_t{1} << 16;  // minimum values of A that a task prepares

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Return the offset to add to values that are packed as bytes: it makes those of A signed and those of B unsigned.
int32_t a_offset(bool bytes, bool is_signed) {
  return bytes && !is_signed ? -128 : 0;
}
int32_t b_offset(bool bytes, bool is_signed) {
  return bytes && is_signed ? 128 : 0;
}

constexpr uint32_t kFlip = 0x80808080;  // flips the top bit of four bytes, which adds or subtracts 128

// ---- packing B: groups of `lanes` columns, and the column sums

CLONED void pack_bytes(const uint8_t* b, int64_t row, uint32_t flip, int64_t lanes, uint32_t* to, uint32_t* sums) {
  for (int64_t l = 0; l < lanes; ++l) {
    const uint32_t w0 = b[l], w1 = b[row + l], w2 = b[2 * row + l], w3 = b[3 * row + l];
    const uint32_t word = (w0 | w1 << 8 | w2 << 16 | w3 << 24) ^ flip;
    to[l] = word;
    sums[l] += (word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24);
  }
}

template <class T>
void pack_pairs(const T* b, int64_t row, int64_t lanes, uint32_t* to, uint32_t* sums) {
  for (int64_t l = 0; l < lanes; ++l) {
    const int32_t low = b[l], high = b[row + l];
    to[l] = static_cast<uint16_t>(low) | static_cast<uint32_t>(high) << 16;
    sums[l] += static_cast<uint32_t>(low + high);
  }
}

// ---- packing A: the groups of the rows of a tile, interleaved

CLONED uint32_t sum_of_signed(const int8_t* a, int64_t k) {
  int32_t sum = 0;
  for (int64_t l = 0; l < k; ++l) sum += a[l];
  return static_cast<uint32_t>(sum);
}
CLONED uint32_t sum_of_unsigned(const uint8_t* a, int64_t k) {
  uint32_t sum = 0;
  for (int64_t l = 0; l < k; ++l) sum += a[l];
  return sum;
}

void spread_bytes(const void* a, int64_t k, uint32_t flip, uint32_t* to, int64_t step) {
  const auto* from = static_cast<const std::byte*>(a);
  uint32_t word;
  for (int64_t g = 0; g < k / 4; ++g) {
    std::memcpy(&word, from + 4 * g, 4);
    to[g * step] = word ^ flip;
  }
  if (k % 4 == 0) return;
  word = flip;  // so that padding is stored as 0 after the flip
  std::memcpy(&word, from + k / 4 * 4, static_cast<size_t>(k % 4));
  to[k / 4 * step] = word ^ flip;
}

CLONED void flip_bytes(const uint8_t* a, int64_t k, uint8_t flip, uint8_t* to) {
  for (int64_t l = 0; l < k; ++l) to[l] = a[l] ^ flip;
}

template <class T>
void spread_pairs(const T* a, int64_t k, uint32_t* to, int64_t step) {
  typedef T Bytes __attribute__((vector_size(16)));
  typedef int16_t Pairs __attribute__((vector_size(32)));
  int64_t l = 0;
  for (; l + 16 <= k; l += 16) {
    Bytes bytes;
    std::memcpy(&bytes, a + l, sizeof bytes);
    const Pairs pairs = __builtin_convertvector(bytes, Pairs);
    uint32_t words[8];
    std::memcpy(words, &pairs, sizeof words);
    for (int64_t i = 0; i < 8; ++i) to[(l / 2 + i) * step] = words[i];
  }
  for (; l < k; l += 2) {
    const int32_t low = a[l], high = l + 1 < k ? a[l + 1] : 0;
    to[l / 2 * step] = static_cast<uint16_t>(low) | static_cast<uint32_t>(high) << 16;
  }
}

int32_t zero_of(std::span<const int32_t> zeros, int64_t i) {
  return zeros.size() == 1 ? zeros[0] : zeros[static_cast<size_t>(i) % zeros.size()];
}

}  // namespace

ZeroPointVector::ZeroPointVector(const Tensor& tensor)
    : values_(tensor.present() ? static_cast<size_t>(tensor.shape.elements()) : 1) {
  if (!tensor.present()) return;
  for (size_t i = 0; i < values_.size(); ++i)
    values_[i] = q8_at(tensor.data, tensor.dtype == BP_DTYPE_INT8, static_cast<int64_t>(i));
}

std::optional<std::string> check_zero_point(const Tensor& tensor, std::string_view name, int64_t channels,
                                            int64_t batches) {
  const int64_t elements = tensor.shape.elements();
  if (!tensor.present() || elements == 1 || elements == channels || elements == channels * batches) return std::nullopt;
  const std::string for_all = batches > 1 ? " or " + std::to_string(channels * batches) : "";
  return std::string(name) + " has extents " + to_string(tensor.shape) + "; it must have 1 or " +
         std::to_string(channels) + for_all + " elements";
}

struct IntegerGemm::Product {
  const Caller& caller;
  int64_t index;
  bool a_signed;
  std::span<const int32_t> a_zeros;
  int64_t a_row;  // first row of A, counted over all matrices of the batch
  ScratchAreas areas;
};

IntegerGemm::IntegerGemm(int threads, MatMulSize size)
    : size_(std::move(size)),
      kernels_(integer_tiles()),
      amx_(has_integer_amx() && size_.m > kRowsOfWideTiles),
      groups_(has_integer_amx() ? kAmxGroups * ceil_div(size_.k, kAmxGroups * kernels_.group())
                                : ceil_div(size_.k, kernels_.group())),
      blocks_(ceil_div(size_.n, kernels_.lanes)),
      max_tile_rows_(amx_ ? kMaxAmxRows : kernels_.max_rows),
      tiles_(ceil_div(size_.m, max_tile_rows_)),
      threads_(threads) {}

void IntegerGemm::pack(PackedWeights& packed, const Tensor& b) {
  const int64_t step = size_.k * size_.n;
  if (b.data == nullptr || step == 0) return;
  pack(packed, b, b.shape.elements() / step, [&](int64_t i) { return b.as<std::byte>() + i * step; });
}

PackedWeights::Pack IntegerGemm::allocate_matrices(int64_t count) const {
  return allocate_pages(count * matrix_words() * int64_t{sizeof(uint32_t)});
}

uint32_t* IntegerGemm::matrix_at(const PackedWeights::Pack& pack, int64_t i) const {
  return reinterpret_cast<uint32_t*>(const_cast<std::byte*>(pack.get())) + i * matrix_words();
}

int64_t IntegerGemm::scratch_bytes() const {
  const int64_t words =
      size_.m * groups_ + 2 * align_up(size_.m) + blocks_ * kernels_.lanes + (pack_ ? 0 : matrix_words());
  return words * int64_t{sizeof(uint32_t)} + threads_ * align_up(size_.k);
}

// Writes the column sums to `matrix`, then the packed blocks.
void IntegerGemm::pack_matrix(const void* b, bool is_signed, uint32_t* matrix) const {
  const int64_t lanes = kernels_.lanes, group = kernels_.group(), n = size_.n, k = size_.k;
  const bool bytes = kernels_.bytes;
  const uint32_t flip = b_offset(bytes, is_signed) != 0 ? kFlip : 0;
  parallel(blocks_, 1 + kGrain / (1 + lanes * k), [&](int64_t begin, int64_t end) {
    uint8_t edge[4 * 16];
    for (int64_t block = begin; block < end; ++block) {
      uint32_t* sums = matrix + block * lanes;
      std::fill_n(sums, lanes, 0);
      uint32_t* to = matrix + (blocks_ + block * groups_) * lanes;
      const int64_t columns = std::min(lanes, n - block * lanes);
      for (int64_t g = 0; g < groups_; ++g, to += lanes) {
        const auto* from = static_cast<const uint8_t*>(b) + g * group * n + block * lanes;
        const int64_t rows = std::min(group, k - g * group);
        int64_t row = n;
        if (rows < group || columns < lanes) {
          std::fill(std::begin(edge), std::end(edge), static_cast<uint8_t>(flip));
          for (int64_t i = 0; i < rows; ++i) std::copy_n(from + i * n, columns, edge + i * lanes);
          from = edge;
          row = lanes;
        }
        if (bytes)
          clone_of<pack_bytes>(from, row, flip, lanes, to, sums);
        else if (is_signed)
          pack_pairs(reinterpret_cast<const int8_t*>(from), row, lanes, to, sums);
        else
          pack_pairs(from, row, lanes, to, sums);
      }
    }
  });
}

void IntegerGemm::prepare_rows(const Product& p, int64_t first_tile, int64_t last_tile) const {
  const int32_t offset = a_offset(kernels_.bytes, p.a_signed);
  uint8_t* buffer = p.areas.buffers + thread_index() * align_up(size_.k);
  for (int64_t tile = first_tile; tile < last_tile; ++tile) {
    const int64_t first = first_row(tile), rows = first_row(tile + 1) - first;
    for (int64_t row = first; row < first + rows; ++row) {
      const auto* unsigned_row =
          static_cast<const uint8_t*>(p.caller.row_at(p.caller.row_function, p.index, row, buffer));
      uint32_t sum = p.a_signed ? clone_of<sum_of_signed>(reinterpret_cast<const int8_t*>(unsigned_row), size_.k)
                                : clone_of<sum_of_unsigned>(unsigned_row, size_.k);
      sum += static_cast<uint32_t>(offset) * static_cast<uint32_t>(size_.k);
      const auto zero = static_cast<uint32_t>(zero_of(p.a_zeros, p.a_row + row) + offset);
      p.areas.row_zero[row] = zero;
      p.areas.row_rest[row] = zero * static_cast<uint32_t>(size_.k) - sum;
      if (amx_)
        store_row(unsigned_row, p.a_signed, 1, p.areas.rows + row * groups_);
      else
        store_row(unsigned_row, p.a_signed, rows, p.areas.rows + first * groups_ + row - first);
    }
  }
}

// Stores the groups of a row of A, `step` words apart. Groups beyond k are not stored: B has zeros there.
void IntegerGemm::store_row(const void* a, bool is_signed, int64_t step, uint32_t* to) const {
  const uint32_t flip = a_offset(kernels_.bytes, is_signed) != 0 ? kFlip : 0;
  if (amx_) {
    auto* bytes = reinterpret_cast<uint8_t*>(to);
    clone_of<flip_bytes>(static_cast<const uint8_t*>(a), size_.k, static_cast<uint8_t>(flip), bytes);
  } else if (kernels_.bytes) {
    spread_bytes(a, size_.k, flip, to, step);
  } else if (is_signed) {
    spread_pairs(static_cast<const int8_t*>(a), size_.k, to, step);
  } else {
    spread_pairs(static_cast<const uint8_t*>(a), size_.k, to, step);
  }
}

void IntegerGemm::multiply(const ScratchAreas& areas, const uint32_t* matrix, int32_t* all, int64_t first_tile,
                           int64_t last_tile, int64_t first_block, int64_t last_block) const {
  constexpr int64_t kMaxSums = kMaxAmxRows * 2 * 16;
  const int64_t lanes = kernels_.lanes, n = size_.n;
  uint32_t edge[kMaxSums];
  int64_t blocks = 0;
  Pace pace;
  std::optional<amx::TileRegisters> registers;
  const int64_t max_rows = ceil_div(size_.m, tiles_);
  const int64_t register_rows = max_rows <= amx::kTileRows ? max_rows : ceil_div(max_rows, 2);
  if (amx_) registers.emplace(register_rows);
  for (int64_t block = first_block; block < last_block; block += blocks) {
    const int64_t rest = last_block - block, column = block * lanes;
    blocks = rest >= 4 && size_.m <= kRowsOfWideTiles ? 4 : std::min<int64_t>(2, rest);
    const bool at_edge = column + blocks * lanes > n;
    for (int64_t tile = first_tile; tile < last_tile; ++tile) {
      const int64_t first = first_row(tile), rows = first_row(tile + 1) - first;
      pace.spend(rows * blocks * lanes * groups_);
      auto* sums = reinterpret_cast<uint32_t*>(all) + first * n + column;
      const IntegerTile work{.a = areas.rows + first * groups_,
                             .b = matrix + (blocks_ + block * groups_) * lanes,
                             .b_block = groups_ * lanes,
                             .groups = groups_,
                             .row_zero = areas.row_zero + first,
                             .row_rest = areas.row_rest + first,
                             .column_zero = areas.column_zero + column,
                             .column_sum = matrix + column,
                             .y = at_edge ? edge : sums,
                             .y_row = at_edge ? blocks * lanes : n};
      if (amx_)
        multiply_on_amx(work, blocks, rows, register_rows);
      else
        kernels_.kernel(blocks, rows)(work);
      if (!at_edge) continue;
      for (int64_t row = 0; row < rows; ++row) std::copy_n(edge + row * blocks * lanes, n - column, sums + row * n);
    }
  }
}

IntegerGemm::ScratchAreas IntegerGemm::areas_in(void* scratch) const {
  ScratchAreas areas;
  areas.rows = static_cast<uint32_t*>(scratch);
  areas.row_zero = areas.rows + size_.m * groups_;
  areas.row_rest = areas.row_zero + align_up(size_.m);
  areas.column_zero = areas.row_rest + align_up(size_.m);
  areas.matrix = areas.column_zero + blocks_ * kernels_.lanes;
  areas.buffers = reinterpret_cast<uint8_t*>(areas.matrix + (pack_ ? 0 : matrix_words()));
  return areas;
}

void IntegerGemm::set_column_zeros(const Operands& operands, int64_t matrix, const ScratchAreas& areas) const {
  const int64_t n = size_.n;
  const int32_t offset = b_offset(kernels_.bytes, operands.b.dtype == BP_DTYPE_INT8);
  for (int64_t j = 0; j < n; ++j)
    areas.column_zero[j] = static_cast<uint32_t>(zero_of(operands.zeros.b, matrix * n + j) + offset);
  std::fill(areas.column_zero + n, areas.column_zero + blocks_ * kernels_.lanes, 0);
}

void IntegerGemm::prepare(const Operands& operands, int64_t matrix, const Caller& caller, void* scratch) const {
  const ScratchAreas areas = areas_in(scratch);
  set_column_zeros(operands, matrix, areas);
  prepare_rows({caller, 0, operands.a_signed, operands.zeros.a, 0, areas}, 0, tiles_);
}

void IntegerGemm::multiply(int64_t matrix, int32_t* sums, void* scratch, int64_t first, int64_t last) const {
  multiply(areas_in(scratch), matrix_at(pack_, matrix), sums, 0, tiles_, first, last);
}

void IntegerGemm::run(const Operands& operands, const Caller& caller, void* scratch) const {
  const int64_t m = size_.m, n = size_.n, k = size_.k;
  if (m == 0 || n == 0) return;
  const ScratchAreas areas = areas_in(scratch);
  const int64_t pairs = ceil_div(blocks_, 2);
  for (int64_t i = 0; i < size_.a_offsets.size(); ++i) {
    const int64_t which = size_.b_offsets[i];
    if (!pack_)
      pack_matrix(operands.b.as<std::byte>() + which * k * n, operands.b.dtype == BP_DTYPE_INT8, areas.matrix);
    set_column_zeros(operands, which, areas);
    const uint32_t* matrix = pack_ ? matrix_at(pack_, which) : areas.matrix;
    int32_t* sums = operands.sums + i * operands.sums_step;
    const Product p{.caller = caller,
                    .index = i,
                    .a_signed = operands.a_signed,
                    .a_zeros = operands.zeros.a,
                    .a_row = size_.a_offsets[i] * m,
                    .areas = areas};
    const auto finish = [&](const SumsPart& part) { caller.finish(caller.finish_function, part); };
    // Threads compute either different rows, and each reads all of B, or different columns, and each reads all of A. On
    // AMX, reading takes longer than multiplying, so threads compute different columns if B is larger than A.
    if (tiles_ >= 2 * threads_ && !(amx_ && n > m)) {
      parallel(tiles_, 1 + kGrain / (1 + max_tile_rows_ * n * k), [&](int64_t begin, int64_t end) {
        for (int64_t tile = begin; tile < end; tile += kTogether) {
          const int64_t last = std::min(end, tile + kTogether);
          prepare_rows(p, tile, last);
          multiply(areas, matrix, sums, tile, last, 0, blocks_);
          finish({i, first_row(tile), first_row(last), 0, n});
        }
      });
    } else {
      parallel(tiles_, 1 + kRowGrain / (1 + max_tile_rows_ * k),
               [&](int64_t begin, int64_t end) { prepare_rows(p, begin, end); });
      parallel(pairs, 1 + kGrain / (1 + 2 * kernels_.lanes * m * k), [&](int64_t begin, int64_t end) {
        multiply(areas, matrix, sums, 0, tiles_, 2 * begin, std::min(blocks_, 2 * end));
        finish({i, 0, m, begin * 2 * kernels_.lanes, std::min(n, end * 2 * kernels_.lanes)});
      });
    }
  }
}

}  // namespace backplane::cpu
