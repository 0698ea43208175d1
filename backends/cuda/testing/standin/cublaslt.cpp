// SPDX-License-Identifier: Apache-2.0
// Test code: a stand-in for cuBLASLt that computes products by plain loops (matrix.h). It refuses calls that the real
// library could not execute correctly: with objects that were destroyed, extents that do not fit, an algorithm of
// another problem, pointers that are not memory or not aligned, a workspace that is too small or overlaps an operand.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "testing/standin/hooks.h"
#include "testing/standin/matrix.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace standin;

struct Operation {
  lt::ComputeType compute;
  int transposed[2] = {};
  uint32_t epilogue = lt::kNoEpilogue;
  const void* bias = nullptr;
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t reductions = lt::kReduceInAnyType;
  uint32_t alignments[4] = {256, 256, 256, 256};
};

// ---- objects --------------------------------------------------------------------------------------------------------

std::mutex& objects_mutex = *new std::mutex;
std::set<const void*>& objects = *new std::set<const void*>;

template <class Object>
lt::Status create(void** out, const char* kind, Object object) {
  auto* made = new Object(object);
  const std::lock_guard lock(objects_mutex);
  objects.insert(made);
  count(kind, 1);
  *out = made;
  return lt::kSuccess;
}

bool exists(const void* object) {
  const std::lock_guard lock(objects_mutex);
  return objects.count(object) != 0;
}

template <class Object>
lt::Status destroy(void* object, const char* kind) {
  {
    const std::lock_guard lock(objects_mutex);
    if (objects.erase(object) == 0) return lt::kInvalidValue;
  }
  delete static_cast<Object*>(object);
  count(kind, -1);
  return lt::kSuccess;
}

// An attribute of an object: where it is, and its size.
struct Field {
  void* place;
  size_t bytes;
};

lt::Status set(const void* object, const Field& field, const void* value, size_t bytes) {
  if (!exists(object) || field.place == nullptr || value == nullptr || bytes != field.bytes) return lt::kInvalidValue;
  std::memcpy(field.place, value, bytes);
  return lt::kSuccess;
}

#define CALLED() \
  if (const int refused = called(__func__); refused != 0) return refused

// ---- algorithms -----------------------------------------------------------------------------------------------------

constexpr uint64_t kMagic = 0x6c74737461;

// The content of an lt::Algorithm. The algorithm with `number` 1 is the fastest.
struct Choice {
  uint64_t magic = kMagic;
  uint64_t number = 0;
  uint64_t workspace = 0;
  uint64_t problem = 0;  // hash_of the product for which the algorithm was listed
  uint32_t alignments[4] = {};
  uint64_t unused[2] = {};
};
static_assert(sizeof(Choice) == sizeof(lt::Algorithm));

constexpr uint64_t kWorkspace = 4096;
// The delay of all algorithms but the fastest: more than a busy machine delays every round of a measurement.
constexpr auto kSlowness = std::chrono::milliseconds(10);

uint64_t hash_of(const MatrixProduct& p) {
  std::string all;
  for (const Matrix* each : {&p.a, &p.b, &p.c, &p.d})
    all += std::to_string(each->type) + " " + std::to_string(each->rows) + " " + std::to_string(each->columns) + " " +
           std::to_string(each->leading) + " " + std::to_string(each->batch) + " " + std::to_string(each->stride) +
           "\n";
  all += std::to_string(p.compute) + std::to_string(p.a_transposed) + std::to_string(p.b_transposed) + " " +
         std::to_string(p.epilogue);
  return std::hash<std::string>()(all);
}

// Collects what the objects describe. Returns false if one of them does not exist, or if they do not fit each other.
bool describe(const void* handle, const void* operation, const void* a, const void* b, const void* c, const void* d,
              MatrixProduct& out) {
  for (const void* each : {handle, operation, a, b, c, d})
    if (!exists(each)) return false;
  const auto& own = *static_cast<const Operation*>(operation);
  out.compute = own.compute;
  out.a_transposed = own.transposed[0] != 0;
  out.b_transposed = own.transposed[1] != 0;
  out.epilogue = own.epilogue;
  out.bias = own.bias;
  out.a = *static_cast<const Matrix*>(a);
  out.b = *static_cast<const Matrix*>(b);
  out.c = *static_cast<const Matrix*>(c);
  out.d = *static_cast<const Matrix*>(d);
  return out.is_consistent();
}

struct Range {
  uint64_t begin, bytes;
  bool overlaps(const Range& other) const {
    return bytes != 0 && other.bytes != 0 && begin < other.begin + other.bytes && other.begin < begin + bytes;
  }
};

uint64_t address(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

// Whether all pointers can be used as the product uses them.
bool has_valid_memory(const MatrixProduct& p, const Choice& choice, const void* workspace) {
  const Range a{address(p.a_data), p.a.bytes()}, b{address(p.b_data), p.b.bytes()}, d{address(p.d_data), p.d.bytes()};
  const Range c{address(p.c_data), p.beta != 0 ? p.c.bytes() : 0};
  const Range bias{address(p.bias), (p.epilogue & lt::kBias) != 0 ? p.d.rows * p.d.element_bytes() : 0};
  const Range work{address(workspace), choice.workspace};
  for (const Range& each : {a, b, c, d, bias, work})
    if (each.bytes != 0 && !is_memory(each.begin, each.bytes)) return false;
  const uint64_t pointers[] = {a.begin, b.begin, c.begin, d.begin};
  for (size_t i = 0; i < 4; ++i)
    if (pointers[i] % choice.alignments[i] != 0) return false;
  for (const Range& each : {a, b, c, bias, d})
    if (each.overlaps(work)) return false;
  return !d.overlaps(a) && !d.overlaps(b) && !d.overlaps(bias) && (!d.overlaps(c) || d.begin == c.begin) &&
         (work.bytes == 0 || work.begin % 256 == 0);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the library's own names
EXPORT size_t cublasLtGetVersion() {
  return 130000;
}

EXPORT const char* cublasLtGetStatusName(lt::Status status) {
  return status == lt::kAllocFailed    ? "CUBLAS_STATUS_ALLOC_FAILED"
         : status == lt::kInvalidValue ? "CUBLAS_STATUS_INVALID_VALUE"
         : status == lt::kNotSupported ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                       : "an error of the stand-in for cuBLASLt";
}

EXPORT lt::Status cublasLtCreate(lt::Handle* out) {
  CALLED();
  if (!has_context()) return lt::kNotInitialized;
  return create(out, "cublaslt", 0);
}

EXPORT lt::Status cublasLtDestroy(lt::Handle handle) {
  return destroy<int>(handle, "cublaslt");
}

EXPORT lt::Status cublasLtMatmulDescCreate(lt::Operation* out, lt::ComputeType compute, lt::DataType scale) {
  CALLED();
  if (scale != (compute == lt::kCompute64F ? lt::kF64 : lt::kF32)) return lt::kNotSupported;
  return create(out, "operations", Operation{compute});
}

EXPORT lt::Status cublasLtMatmulDescDestroy(lt::Operation operation) {
  return destroy<Operation>(operation, "operations");
}

EXPORT lt::Status cublasLtMatmulDescSetAttribute(lt::Operation raw, lt::OperationAttribute attribute, const void* value,
                                                 size_t bytes) {
  CALLED();
  auto* own = static_cast<Operation*>(raw);
  const Field field = attribute == lt::kTransA        ? Field{&own->transposed[0], sizeof own->transposed[0]}
                      : attribute == lt::kTransB      ? Field{&own->transposed[1], sizeof own->transposed[1]}
                      : attribute == lt::kEpilogue    ? Field{&own->epilogue, sizeof own->epilogue}
                      : attribute == lt::kBiasPointer ? Field{&own->bias, sizeof own->bias}
                                                      : Field{};
  return set(raw, field, value, bytes);
}

EXPORT lt::Status cublasLtMatrixLayoutCreate(lt::Layout* out, lt::DataType type, uint64_t rows, uint64_t columns,
                                             int64_t leading) {
  CALLED();
  return create(out, "layouts", Matrix{type, rows, columns, leading, 1, 0});
}

EXPORT lt::Status cublasLtMatrixLayoutDestroy(lt::Layout layout) {
  return destroy<Matrix>(layout, "layouts");
}

EXPORT lt::Status cublasLtMatrixLayoutSetAttribute(lt::Layout raw, lt::LayoutAttribute attribute, const void* value,
                                                   size_t bytes) {
  CALLED();
  auto* own = static_cast<Matrix*>(raw);
  const Field field = attribute == lt::kBatchCount    ? Field{&own->batch, sizeof own->batch}
                      : attribute == lt::kBatchStride ? Field{&own->stride, sizeof own->stride}
                                                      : Field{};
  return set(raw, field, value, bytes);
}

EXPORT lt::Status cublasLtMatmulPreferenceCreate(lt::Preference* out) {
  CALLED();
  return create(out, "preferences", Preference{});
}

EXPORT lt::Status cublasLtMatmulPreferenceDestroy(lt::Preference preference) {
  return destroy<Preference>(preference, "preferences");
}

EXPORT lt::Status cublasLtMatmulPreferenceSetAttribute(lt::Preference raw, lt::PreferenceAttribute attribute,
                                                       const void* value, size_t bytes) {
  CALLED();
  auto* own = static_cast<Preference*>(raw);
  const int operand = attribute - lt::kMinAlignmentA;
  const Field field = attribute == lt::kMaxWorkspace    ? Field{&own->workspace, sizeof own->workspace}
                      : attribute == lt::kReductionMask ? Field{&own->reductions, sizeof own->reductions}
                      : operand >= 0 && operand < 4     ? Field{&own->alignments[operand], sizeof own->alignments[0]}
                                                        : Field{};
  return set(raw, field, value, bytes);
}

// Lists algorithm 1 only if the preference allows its workspace, and supports 16-bit types only if the preference
// excludes algorithms that round partial sums.
EXPORT lt::Status cublasLtMatmulAlgoGetHeuristic(lt::Handle handle, lt::Operation operation, lt::Layout a, lt::Layout b,
                                                 lt::Layout c, lt::Layout d, lt::Preference preference, int most,
                                                 lt::Heuristic* out, int* found) {
  CALLED();
  MatrixProduct product;
  if (!describe(handle, operation, a, b, c, d, product) || !exists(preference) || most < 1) return lt::kInvalidValue;
  const auto& own = *static_cast<const Preference*>(preference);
  *found = 0;
  const bool narrow = product.d.element_bytes() == 2;
  if (narrow && own.reductions != lt::kReduceInComputeType) return lt::kNotSupported;
  for (const uint32_t alignment : own.alignments)
    if (alignment < product.d.element_bytes()) return lt::kNotSupported;
  for (uint64_t number = 0; number < 3 && *found < most; ++number) {
    Choice choice;
    choice.number = number;
    choice.workspace = number == 1 ? kWorkspace : 0;
    choice.problem = hash_of(product);
    std::copy_n(own.alignments, 4, choice.alignments);
    if (choice.workspace > own.workspace) continue;
    lt::Heuristic& each = out[(*found)++];
    each = {};
    each.algorithm = std::bit_cast<lt::Algorithm>(choice);
    each.workspace_bytes = choice.workspace;
    each.status = lt::kSuccess;
  }
  return *found == 0 ? lt::kNotSupported : lt::kSuccess;
}

EXPORT lt::Status cublasLtMatmul(lt::Handle handle, lt::Operation operation, const void* alpha, const void* a,
                                 lt::Layout a_layout, const void* b, lt::Layout b_layout, const void* beta,
                                 const void* c, lt::Layout c_layout, void* d, lt::Layout d_layout,
                                 const lt::Algorithm* algorithm, void* workspace, size_t workspace_bytes,
                                 CUstream stream) {
  CALLED();
  MatrixProduct product;
  if (!has_context() || !describe(handle, operation, a_layout, b_layout, c_layout, d_layout, product))
    return lt::kInvalidValue;
  const auto scale = [&](const void* value) {
    return product.compute == lt::kCompute64F ? *static_cast<const double*>(value)
                                              : static_cast<double>(*static_cast<const float*>(value));
  };
  product.alpha = scale(alpha);
  product.beta = scale(beta);
  product.a_data = a;
  product.b_data = b;
  product.c_data = c;
  product.d_data = d;
  const auto choice = std::bit_cast<Choice>(*algorithm);
  if (choice.magic != kMagic || choice.problem != hash_of(product) || workspace_bytes < choice.workspace ||
      !has_valid_memory(product, choice, workspace))
    return lt::kInvalidValue;
  static_cast<void>(called(("algorithm " + std::to_string(choice.number)).c_str()));
  const bool enqueued = enqueue(stream, [=] {
    if (choice.workspace != 0) std::memset(workspace, 0xff, choice.workspace);
    product.compute_all();
    if (choice.number != 1) std::this_thread::sleep_for(kSlowness);
  });
  return enqueued ? lt::kSuccess : lt::kInvalidValue;
}
// NOLINTEND(readability-identifier-naming)
