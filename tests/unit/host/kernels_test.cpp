#include "driver/compile.h"
#include "host/compiled.h"
#include "host/kernels/kernel.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "runtime/thread_pool.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <random>

namespace tenon::host_kernels_test {
namespace {

using Operands = std::vector<std::optional<Datum>>;

// Runs a host kernel; nullopt if the kernel declines the call and leaves it to the reference.
std::optional<std::vector<Tensor>> run_kernel(const std::string& op, const Attributes& attributes,
                                              const Operands& operands,
                                              const std::vector<bool>& wanted, int threads) {
  const HostKernel kernel = host_kernel(op);
  if (kernel == nullptr) return std::nullopt;
  ThreadPool::shared().reserve(threads - 1);
  std::vector<const Tensor*> tensors;
  for (const auto& operand : operands) tensors.push_back(operand ? &operand->tensor() : nullptr);
  const std::vector<Datum> types =
      reference::evaluate_op(find_op(op), attributes, operands, {}, wanted, {});
  std::vector<Tensor> results(wanted.size());
  std::vector<std::unique_ptr<std::byte[]>> scratch;
  const HostCall call{attributes,
                      tensors,
                      wanted,
                      threads,
                      [&](std::size_t k, const Shape& shape) {
                        results[k] = Tensor(types[k].tensor().dtype(), shape);
                        return results[k].mutable_bytes().data();
                      },
                      [&](std::uint64_t bytes) {
                        scratch.emplace_back(new std::byte[bytes + 64]);
                        auto* data = scratch.back().get();
                        return data + (64 - reinterpret_cast<std::uintptr_t>(data) % 64) % 64;
                      }};
  if (!kernel(call)) return std::nullopt;
  return results;
}

// Expects the reference's bits for several numbers of threads.
void expect_reference(const std::string& op, const Attributes& attributes, const Operands& operands,
                      const std::vector<bool>& wanted) {
  const std::vector<Datum> expected =
      reference::evaluate_op(find_op(op), attributes, operands, {}, wanted, {});
  for (const int threads : {1, 2, 5}) {
    const auto actual = run_kernel(op, attributes, operands, wanted, threads);
    ASSERT_TRUE(actual) << op << " was left to the reference";
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      if (!wanted[k]) continue;
      EXPECT_TRUE(identical((*actual)[k], expected[k].tensor()))
          << op << ", result " << k << ", " << threads << " threads, "
          << to_string(operands[0]->type());
    }
  }
}

constexpr DType kTypes[] = {DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64,
                            DType::I32, DType::I16, DType::I8,  DType::U64,  DType::U32,
                            DType::U16, DType::U8,  DType::Bool};

// Values with many duplicates and special values: both zeros, infinities, NaN of both signs.
Tensor with_edges(DType dtype, Shape shape, unsigned seed, int different) {
  std::mt19937 random(seed);
  Tensor x(dtype, std::move(shape));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double edges[] = {0.0,
                          -0.0,
                          kInfinity,
                          -kInfinity,
                          std::numeric_limits<double>::quiet_NaN(),
                          -std::numeric_limits<double>::quiet_NaN()};
  for (std::int64_t k = 0; k < x.size(); ++k) {
    const auto number =
        static_cast<std::int64_t>(random() % static_cast<unsigned>(different)) - different / 2;
    if (!is_float(dtype)) {
      x.set_integer(k, number);
    } else if (random() % 16 == 0) {
      x.set_real(k, edges[random() % 6]);
    } else {
      x.set_real(k, static_cast<double>(number) / 8);
    }
  }
  return x;
}

TEST(HostKernels, TopKMatchesTheReference) {
  for (const DType dtype : kTypes) {
    for (const bool is_largest : {true, false}) {
      for (const std::int64_t k : {0, 1, 7, 16, 60, 200, 1000}) {
        const Attributes attributes{{"k", Dim(k)}, {"largest", is_largest}};
        expect_reference("top_k", attributes, {Datum(with_edges(dtype, {3, 1000}, 1, 100000))},
                         {true, true});
      }
      expect_reference("top_k", {{"k", Dim(5)}, {"largest", is_largest}, {"axis", Dim(1)}},
                       {Datum(with_edges(dtype, {2, 90, 21}, 2, 20))}, {true, true});
    }
  }
}

// Small k of long rows, by a heap or by partial selection; a long row, whose parts run in parallel;
// a row in ascending order, which replaces the worst element every time.
TEST(HostKernels, TopKOfLongRows) {
  for (const std::int64_t k : {1, 128, 2000}) {
    for (const bool is_largest : {true, false}) {
      const Attributes attributes{{"k", Dim(k)}, {"largest", is_largest}};
      expect_reference("top_k", attributes,
                       {Datum(with_edges(DType::F32, {1, 150001}, 3, 1 << 30))}, {true, true});
    }
  }
  Tensor rising(DType::F32, {2, 5003});
  for (std::int64_t at = 0; at < rising.size(); ++at) rising.set_real(at, static_cast<double>(at));
  for (const std::int64_t k : {3, 40, 250}) {
    expect_reference("top_k", {{"k", Dim(k)}}, {Datum(rising)}, {true, true});
    expect_reference("top_k", {{"k", Dim(k)}, {"largest", false}}, {Datum(rising)}, {false, true});
  }
  Tensor nothing(DType::F32, {1, 3000});
  for (std::int64_t at = 0; at < nothing.size(); ++at)
    nothing.set_real(at, at % 900 == 5 ? 1.0 : std::numeric_limits<double>::quiet_NaN());
  expect_reference("top_k", {{"k", Dim(150)}, {"largest", false}}, {Datum(nothing)}, {true, true});
}

TEST(HostKernels, DeclinesInvalidCalls) {
  const HostKernel kernel = host_kernel("top_k");
  const Tensor x(DType::F32, {3});
  const std::vector<const Tensor*> operands{&x};
  const auto no_memory = [](std::size_t, const Shape&) -> std::byte* {
    ADD_FAILURE() << "made a result";
    return nullptr;
  };
  for (const Attributes& attributes : {Attributes{{"k", Dim(4)}}, Attributes{{"k", Dim(-1)}},
                                       Attributes{{"k", Dim(1)}, {"axis", Dim(1)}}}) {
    EXPECT_FALSE(kernel({attributes, operands, {true, true}, 1, no_memory, {}}));
  }
  EXPECT_EQ(host_kernel("regex_full_match"), nullptr);
}

TEST(HostKernels, UniqueMatchesTheReference) {
  const std::vector<bool> all{true, true, true, true};
  for (const DType dtype : kTypes) {
    for (const bool is_sorted : {true, false}) {
      expect_reference("unique", {{"sorted", is_sorted}},
                       {Datum(with_edges(dtype, {31, 40}, 4, 300))}, all);
      expect_reference("unique", {{"sorted", is_sorted}, {"axis", Dim(0)}},
                       {Datum(with_edges(dtype, {50}, 5, 30))}, {true, false, true, false});
    }
  }
  expect_reference("unique", {}, {Datum(with_edges(DType::I64, {20000}, 6, 1 << 30))}, all);
}

TEST(HostKernels, NonzeroMatchesTheReference) {
  for (const DType dtype : kTypes) {
    for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{700}, Shape{5, 1, 7, 3}, Shape{3, 0}})
      expect_reference("nonzero", {}, {Datum(with_edges(dtype, shape, 7, 4))}, {true});
  }
  expect_reference("nonzero", {}, {Datum(with_edges(DType::F32, {300, 401}, 8, 3))}, {true});
}

// Boxes in clusters, with duplicates, swapped corners, empty, infinite and NaN boxes; scores with
// ties.
Tensor boxes_in_clusters(std::int64_t batches, std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> near(-4, 4), size(0, 30);
  Tensor boxes(DType::F32, {batches, count, 4});
  auto numbers = boxes.as_mutable<float>();
  for (std::size_t k = 0; k < numbers.size(); k += 4) {
    const float x = static_cast<float>(random() % 5) * 40 + near(random),
                y = static_cast<float>(random() % 3) * 40;
    const float wide = size(random), high = size(random);
    const float box[] = {x, y, x + wide, random() % 8 == 0 ? y - high : y + high};
    for (std::size_t c = 0; c < 4; ++c)
      numbers[k + c] = k >= 40 && random() % 8 == 0 ? numbers[k - 40 + c] : box[c];
    if (random() % 64 == 0) numbers[k + random() % 4] = std::numeric_limits<float>::infinity();
    if (random() % 64 == 0) numbers[k + random() % 4] = std::numeric_limits<float>::quiet_NaN();
  }
  return boxes;
}

TEST(HostKernels, NonMaxSuppressionMatchesTheReference) {
  const Tensor boxes = boxes_in_clusters(2, 600, 9);
  const Tensor scores = with_edges(DType::F32, {2, 3, 600}, 10, 200);
  for (const bool is_center : {false, true}) {
    for (const double overlap : {0.0, 0.3, 0.5, 1.0}) {
      for (const int most : {0, 1, 17, 1000000}) {
        for (const double least : {-1.0, 4.0}) {
          expect_reference("non_max_suppression", {{"center_point_box", is_center}},
                           {Datum(boxes), Datum(scores), Datum(Tensor::scalar(DType::I64, most)),
                            Datum(Tensor::scalar(DType::F32, overlap)),
                            Datum(Tensor::scalar(DType::F32, least))},
                           {true});
        }
      }
    }
  }
}

// The intersection of two boxes is exactly the permitted share of their union: one bit decides.
TEST(HostKernels, NonMaxSuppressionAtTheLimit) {
  Tensor boxes(DType::F32, {1, 2, 4}), scores(DType::F32, {1, 1, 2});
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const auto high = static_cast<double>(random() % 97 + 1),
               shift = static_cast<double>(random() % 97) / 97 * high;
    const double corners[] = {0, 0, high, 1, shift, 0, high + shift, 1};
    for (std::int64_t k = 0; k < 8; ++k) boxes.set_real(k, corners[k]);
    const double shared = boxes.real_at(2) - boxes.real_at(4);
    const double joint = boxes.real_at(2) + (boxes.real_at(6) - boxes.real_at(4)) - shared;
    expect_reference("non_max_suppression", {},
                     {Datum(boxes), Datum(scores), Datum(Tensor::scalar(DType::I64, 5)),
                      Datum(Tensor::scalar(DType::F64, joint > 0 ? shared / joint : 0))},
                     {true});
  }
}

// In a program: k is an operand, results in the arena and in memory of their own.
TEST(HostKernels, RunAsStepsOfPrograms) {
  const Graph graph = parse_graph(R"(graph (x: f32[4, 300], k: i64[1]) {
  v, i = top_k(x) {k = 20}
  w, j = top_k(x, k = k)
  z = neg(v)
  n = nonzero(z)
  m = add(n, n)
  return z, i, w, j, m
}
)",
                                  all_ops());
  const std::vector<Datum> inputs{Datum(with_edges(DType::F32, {4, 300}, 12, 1000)),
                                  Datum(Tensor::of_integers(std::vector<std::int64_t>{11}))};
  const std::vector<Datum> expected = reference::evaluate(graph, inputs);
  const Program program = codegen::compile(graph, driver::cpu_options()).program;
  for (const int threads : {1, 2}) {
    CompiledModel model(program, threads);
    for (int round = 0; round < 2; ++round) {
      const std::vector<Datum> actual = model.run(inputs);
      for (std::size_t k = 0; k < expected.size(); ++k)
        EXPECT_TRUE(identical(actual[k].tensor(), expected[k].tensor())) << k;
    }
  }
}

}  // namespace
}  // namespace tenon::host_kernels_test
