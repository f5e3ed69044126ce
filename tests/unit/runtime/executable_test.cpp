// Under the thread sanitizer these tests check the runtime, not the kernels: generated code is not
// instrumented. Kernels are race-free by construction: the items of a step write disjoint elements,
// and the pool's fork and join, which the sanitizer sees, separate steps.
#include "base/error.h"
#include "driver/compile.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "program/checksum.h"
#include "program/file.h"
#include "program/verify.h"
#include "runtime/executor.h"
#include "unit/allocations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <latch>
#include <thread>

namespace tenon::executable_test {
namespace {

// Several kinds of step: a product with an epilogue, a reduction over rows, a transpose, a running
// sum.
constexpr const char* kNet = R"(graph net (x: f32[24, 32]) {
  w = constant f32[32, 40] normal(seed = 1, mean = 0.0, deviation = 0.3)
  h = matmul(x, w)
  a = relu(h)
  s = softmax(a) {axis = -1}
  t = transpose(s) {perm = [1, 0]}
  y = cumsum(t) {axis = 1}
  return y, a
}
)";
constexpr std::size_t kInputCount = 24 * 32, kOutputCount = 40 * 24;

std::shared_ptr<const Executable> net() {
  static const auto model = std::make_shared<const Executable>(
      codegen::compile(parse_graph(kNet, all_ops()), driver::cpu_options()).program);
  return model;
}

std::vector<float> input_of(std::size_t seed) {
  std::vector<float> values(kInputCount);
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = static_cast<float>((k * 7 + seed * 13) % 29) / 29 - 0.4F;
  return values;
}

struct Result {
  std::vector<float> y = std::vector<float>(kOutputCount), a = std::vector<float>(kOutputCount);
  bool operator==(const Result&) const = default;
};

void run(Executor& context, const std::vector<float>& input, Result& result) {
  const void* const inputs[] = {input.data()};
  void* const outputs[] = {result.y.data(), result.a.data()};
  context.run(inputs, outputs);
}

TEST(Contexts, OfOneModelRunConcurrently) {
  constexpr std::size_t kThreads = 6, kRounds = 40;
  std::vector<Result> expected(kThreads);
  Executor alone(net(), 1);
  for (std::size_t k = 0; k < kThreads; ++k) run(alone, input_of(k), expected[k]);
  EXPECT_FALSE(expected[0] == expected[1]);

  std::latch start(kThreads);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::size_t k = 0; k < kThreads; ++k) {
    threads.emplace_back([&, k] {
      Executor context(net(), static_cast<int>(k % 3) + 1);
      const std::vector<float> input = input_of(k);
      start.arrive_and_wait();
      for (std::size_t round = 0; round < kRounds; ++round) {
        Result result;
        run(context, input, result);
        wrong += !(result == expected[k]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Contexts, AreBitIdenticalOnAnyThreads) {
  Result first;
  for (const int threads : {1, 2, 3, 7, 0}) {
    Executor context(net(), threads);
    Result result;
    for (int round = 0; round < 3; ++round) {
      run(context, input_of(3), result);
      if (threads == 1) first = result;
      EXPECT_TRUE(result == first) << threads << " threads, round " << round;
    }
  }
}

TEST(Contexts, AllocateNothingWhileRunning) {
  for (const int threads : {1, 3}) {
    Executor context(net(), threads);
    const std::vector<float> input = input_of(1);
    Result result;
    const std::size_t before = allocation_count();
    for (int round = 0; round < 5; ++round) run(context, input, result);
    EXPECT_EQ(allocation_count() - before, 0u) << threads << " threads";
    RunEvents events;
    Observers observers;
    observers.events = &events;
    const void* const inputs[] = {input.data()};
    void* const outputs[] = {result.y.data(), result.a.data()};
    context.run(inputs, outputs, observers);  // allocates memory for events
    events.clear();
    const std::size_t before_timed = allocation_count();
    context.run(inputs, outputs, observers);
    EXPECT_EQ(allocation_count() - before_timed, 0u) << threads << " threads";
  }
  const std::size_t before = allocation_count();  // guards the counter itself
  ::operator delete(::operator new(8));
  EXPECT_EQ(allocation_count() - before, 1u);
}

// File of two products, whose weights take several checksum blocks each; those of the first are
// large enough to be verified while they are read.
std::string file_of_two_products() {
  constexpr const char* text = R"(graph net (x: f32[8, 500]) {
  v = constant f32[500, 700] normal(seed = 1, mean = 0.0, deviation = 0.1)
  w = constant f32[700, 300] normal(seed = 2, mean = 0.0, deviation = 0.1)
  h = matmul(x, v)
  a = relu(h)
  y = matmul(a, w)
  return y
}
)";
  const std::string path = ::testing::TempDir() + "model_test_two_products.tnn";
  write_program(codegen::compile(parse_graph(text, all_ops()), driver::cpu_options()).program,
                path);
  std::ifstream stream(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  std::remove(path.c_str());
  return bytes;
}

std::shared_ptr<const Executable> model_in(const std::string& bytes) {
  void* copy = std::aligned_alloc(4096, (bytes.size() + 4095) / 4096 * 4096);
  const std::shared_ptr<void> owner(copy, std::free);
  std::memcpy(copy, bytes.data(), bytes.size());
  return std::make_shared<const Executable>(
      parse_program({static_cast<const std::byte*>(copy), bytes.size()}, owner));
}

struct TwoProducts {
  std::vector<float> x = std::vector<float>(8 * 500, 0.5F), y = std::vector<float>(8 * 300);
  void run(Executor& context) {
    const void* const inputs[] = {x.data()};
    void* const outputs[] = {y.data()};
    context.run(inputs, outputs);
  }
};

TEST(ConstantsOfAFile, RefuseAnAlteredBlock) {
  const std::string file = file_of_two_products();
  const std::size_t constant_bytes = model_in(file)->program().constant_bytes;
  ASSERT_GT(constant_bytes, 5 * kChecksumBlock);
  for (std::size_t at = 100; at < constant_bytes; at += kChecksumBlock) {
    std::string altered = file;
    altered[file.size() - constant_bytes + at] ^= 1;
    const auto model = model_in(altered);
    for (const int threads : {1, 3}) {
      Executor context(model, threads);
      TwoProducts values;
      EXPECT_THROW(values.run(context), Error) << at;
      EXPECT_THROW(values.run(context), Error) << at << ", again";
    }
  }
}

// All contexts verify concurrently without waiting for each other; the second run skips verified
// blocks.
TEST(ConstantsOfAFile, ConcurrentVerification) {
  constexpr std::size_t kThreads = 5;
  const auto model = model_in(file_of_two_products());
  std::latch start(kThreads);
  std::vector<TwoProducts> values(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t k = 0; k < kThreads; ++k) {
    threads.emplace_back([&, k] {
      Executor context(model, static_cast<int>(k % 3) + 1);
      start.arrive_and_wait();
      for (int round = 0; round < 2; ++round) values[k].run(context);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const TwoProducts& each : values) EXPECT_EQ(each.y, values[0].y);
}

TEST(ConstantsOfAFile, VerificationDoesNotAllocate) {
  for (const int threads : {1, 3}) {
    Executor context(model_in(file_of_two_products()), threads);
    TwoProducts values;
    const std::size_t before = allocation_count();
    values.run(context);
    EXPECT_EQ(allocation_count() - before, 0u) << threads << " threads";
  }
}

TEST(ExecutorUse, RefusesConcurrentUse) {
  std::atomic_flag is_in_use;
  {
    const ExecutorUse first(is_in_use);
    EXPECT_THROW(ExecutorUse second(is_in_use), Error);
    EXPECT_THROW(ExecutorUse third(is_in_use), Error);
  }
  EXPECT_NO_THROW(ExecutorUse fourth(is_in_use));
}

// Threads that share one context: each run succeeds alone or is refused; results never mix.
TEST(Contexts, ConcurrentUseIsReported) {
  Executor context(net(), 2);
  std::atomic<int> refused{0}, wrong{0};
  std::vector<Result> expected(2);
  for (std::size_t k = 0; k < 2; ++k) run(context, input_of(k), expected[k]);
  std::vector<std::thread> threads;
  for (std::size_t k = 0; k < 2; ++k) {
    threads.emplace_back([&, k] {
      const std::vector<float> input = input_of(k);
      for (int round = 0; round < 100000 && refused == 0; ++round) {
        Result result;
        try {
          run(context, input, result);
          wrong += !(result == expected[k]);
        } catch (const Error& error) {
          wrong += error.kind() != ErrorKind::Usage ||
                   error.summary() != "two threads use one context at the same time";
          ++refused;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(refused, 0);
  EXPECT_EQ(wrong, 0);
  Result after;
  run(context, input_of(0), after);  // and it continues to work
  EXPECT_TRUE(after == expected[0]);
}

}  // namespace
}  // namespace tenon::executable_test
