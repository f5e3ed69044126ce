#include "api/handles.h"
#include "embed/tensor.h"
#include "ir/dtype.h"
#include "tenon/tenon.h"
#include "unit/allocations.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace tenon::program_test {
namespace {

// y = x w; the extent of the batch is the caller's.
constexpr const char* kMatmul = R"(graph (x: f32[N, 3]) {
  w = constant f32[3, 2] [1, 2, 3, 4, 5, 6]
  y = matmul(x, w)
  return y
}
)";

std::string last_error() { return tenon_last_error(); }
bool has(const std::string& part) { return last_error().find(part) != std::string::npos; }

tenon_program compiled(const char* text, const char* options = nullptr) {
  tenon_model model = nullptr;
  EXPECT_EQ(tenon_model_parse(text, std::strlen(text), &model), TENON_OK) << last_error();
  tenon_program program = nullptr;
  EXPECT_EQ(tenon_model_compile(model, options, &program), TENON_OK) << last_error();
  EXPECT_EQ(tenon_model_free(model), TENON_OK);
  return program;
}

// Fixture with a program, a context and a batch of two.
class WithContext : public ::testing::Test {
 protected:
  void SetUp() override { make(kMatmul); }
  void make(const char* text, const char* options = nullptr) {
    release();
    program = compiled(text, options);
    ASSERT_EQ(tenon_context_create(program, "{\"threads\": 1}", &context), TENON_OK)
        << last_error();
  }
  void release() {
    if (context != nullptr) tenon_context_free(context);
    if (program != nullptr) tenon_program_free(program);
    context = nullptr;
    program = nullptr;
  }
  void TearDown() override { release(); }
  tenon_status run() { return tenon_context_run(context, &input, 1, &output, 1); }

  tenon_program program = nullptr;
  tenon_context context = nullptr;
  std::vector<float> x = {1, 0, 0, 1, 1, 1}, y = std::vector<float>(4, -1.0F);
  std::int64_t x_shape[2] = {2, 3}, y_shape[2] = {2, 2};
  tenon_tensor input{x.data(), x_shape, nullptr, 2, TENON_F32};
  tenon_tensor output{y.data(), y_shape, nullptr, 2, TENON_F32};
};

using Program_ = WithContext;

TEST_F(Program_, RunsOnTheCallersMemory) {
  ASSERT_EQ(run(), TENON_OK) << last_error();
  EXPECT_EQ(y, (std::vector<float>{1, 2, 9, 12}));
  EXPECT_EQ(output.data, y.data());
}

TEST_F(Program_, StartAndFinish) {
  EXPECT_EQ(tenon_context_finish(context), TENON_USAGE);
  EXPECT_TRUE(has("no run of the context was started")) << last_error();
  ASSERT_EQ(tenon_context_start(context, &input, 1, &output, 1), TENON_OK) << last_error();
  tenon_tensor told{};
  EXPECT_EQ(run(), TENON_USAGE);
  EXPECT_EQ(tenon_context_bind(context, &input, 1, &told, 1), TENON_USAGE);
  EXPECT_EQ(tenon_context_start(context, &input, 1, &output, 1), TENON_USAGE);
  EXPECT_TRUE(has("a run of the context is in progress")) << last_error();
  ASSERT_EQ(tenon_context_finish(context), TENON_OK) << last_error();
  EXPECT_EQ(y, (std::vector<float>{1, 2, 9, 12}));
  ASSERT_EQ(run(), TENON_OK) << last_error();
  output = {};
  ASSERT_EQ(tenon_context_start(context, &input, 1, &output, 1), TENON_OK);
  EXPECT_EQ(tenon_context_start(context, nullptr, 1, &output, 1), TENON_USAGE);
  ASSERT_EQ(tenon_context_finish(context), TENON_OK);
  EXPECT_EQ(static_cast<float*>(output.data)[3], 12);
}

TEST_F(Program_, DoesNotAllocateForConstantShapes) {
  ASSERT_EQ(run(), TENON_OK);
  const std::size_t before = allocation_count();
  for (int k = 0; k < 10; ++k) run();
  EXPECT_EQ(allocation_count(), before);
}

TEST_F(Program_, AllocatesUnboundOutputs) {
  output = {};
  ASSERT_EQ(run(), TENON_OK) << last_error();
  EXPECT_EQ(output.rank, 2);
  EXPECT_EQ(output.shape[0], 2);
  EXPECT_EQ(output.dtype, TENON_F32);
  EXPECT_EQ(static_cast<float*>(output.data)[3], 12);
}

TEST_F(Program_, AnotherBatchChangesOutputShapes) {
  x = std::vector<float>(15, 1);
  x_shape[0] = 5;
  input.data = x.data();
  tenon_tensor told{};
  ASSERT_EQ(tenon_context_bind(context, &input, 1, &told, 1), TENON_OK) << last_error();
  EXPECT_EQ(told.shape[0], 5);
  EXPECT_EQ(told.data, nullptr);
  output = {};
  ASSERT_EQ(run(), TENON_OK);
  EXPECT_EQ(static_cast<float*>(output.data)[9], 12);
}

TEST_F(Program_, DescribesPorts) {
  std::size_t count = 0;
  ASSERT_EQ(tenon_program_port_count(program, TENON_INPUT, &count), TENON_OK);
  EXPECT_EQ(count, 1);
  tenon_port port{};
  ASSERT_EQ(tenon_program_port(program, TENON_INPUT, 0, &port), TENON_OK);
  EXPECT_STREQ(port.name, "x");
  EXPECT_STREQ(port.type, "f32[N, 3]");
  EXPECT_EQ(port.shape[0], -1);
  EXPECT_EQ(port.shape[1], 3);
  EXPECT_EQ(tenon_program_port(program, TENON_INPUT, 1, &port), TENON_USAGE);
  EXPECT_EQ(tenon_program_port(program, 9, 0, &port), TENON_USAGE);
}

TEST_F(Program_, ReportsStepTimes) {
  char* json = nullptr;
  ASSERT_EQ(tenon_context_watch(context, &input, 1, &output, 1, &json), TENON_OK) << last_error();
  EXPECT_NE(std::string(json).find("\"seconds\""), std::string::npos);
  tenon_text_free(json);
  EXPECT_EQ(y[3], 12);
}

TEST_F(Program_, RefusesAnotherElementType) {
  input.dtype = TENON_F64;
  EXPECT_EQ(run(), TENON_USAGE);
  EXPECT_TRUE(has("input 'x' has the wrong element type") && has("f32") && has("f64"))
      << last_error();
  input.dtype = 99;
  EXPECT_EQ(run(), TENON_USAGE);
  EXPECT_TRUE(has("99")) << last_error();
}

TEST_F(Program_, RefusesAnotherShape) {
  x_shape[1] = 2;
  EXPECT_EQ(run(), TENON_USAGE);
  EXPECT_TRUE(has("input 'x'")) << last_error();
  x_shape[1] = 3;
  input.rank = 1;
  EXPECT_EQ(run(), TENON_USAGE);
  input.rank = -1;
  EXPECT_EQ(run(), TENON_USAGE);
  input.rank = 2;
  x_shape[0] = -2;
  EXPECT_EQ(run(), TENON_USAGE);
  x_shape[0] = 2;
  EXPECT_EQ(run(), TENON_OK) << last_error();
  y_shape[0] = 3;
  EXPECT_EQ(run(), TENON_USAGE);
  EXPECT_TRUE(has("output 'y'") && has("f32[2, 2]")) << last_error();
}

TEST_F(Program_, RefusesWrongAlignmentAndStrides) {
  input.data = reinterpret_cast<char*>(x.data()) + 1;
  EXPECT_EQ(run(), TENON_USAGE);
  EXPECT_TRUE(has("not aligned")) << last_error();
  input.data = nullptr;
  EXPECT_EQ(run(), TENON_USAGE);
  input.data = x.data();
  const std::int64_t columns[2] = {1, 2};
  input.strides = columns;
  EXPECT_EQ(run(), TENON_USAGE);
  EXPECT_TRUE(has("row by row")) << last_error();
  const std::int64_t rows[2] = {3, 1};
  input.strides = rows;
  EXPECT_EQ(run(), TENON_OK) << last_error();
}

TEST_F(Program_, RefusesAnotherNumberOfTensors) {
  EXPECT_EQ(tenon_context_run(context, &input, 0, &output, 1), TENON_USAGE);
  EXPECT_EQ(tenon_context_run(context, &input, 1, &output, 0), TENON_USAGE);
  EXPECT_EQ(tenon_context_run(context, nullptr, 1, &output, 1), TENON_USAGE);
}

TEST_F(Program_, RefusesBatchesBeyondMemory) {
  x_shape[0] = std::int64_t{1} << 42;
  output = {};
  EXPECT_EQ(run(), TENON_OUT_OF_MEMORY) << last_error();
  x_shape[0] = 2;
  EXPECT_EQ(run(), TENON_OK) << last_error();
}

// For any failing allocation of a call, the call reports an error, and the next call succeeds.
TEST_F(Program_, EveryFailedAllocationIsReported) {
  make(kMatmul, "{\"swappable_weights\": true}");
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("tenon_memory_" + std::to_string(getpid()) + ".tnn"))
                               .string();
  ASSERT_EQ(tenon_program_save(program, path.c_str(), nullptr), TENON_OK) << last_error();
  std::int64_t batch = 0;
  const std::vector<float> weights(6, 2.0F);
  const std::int64_t weight_shape[2] = {3, 2};
  const tenon_tensor weight{const_cast<float*>(weights.data()), weight_shape, nullptr, 2,
                            TENON_F32};
  const std::vector<std::pair<const char*, std::function<tenon_status()>>> calls = {
      {"load",
       [&] {
         tenon_program loaded = nullptr;
         const tenon_status status = tenon_program_load(path.c_str(), &loaded);
         if (status == TENON_OK) tenon_program_free(loaded);
         return status;
       }},
      {"create",
       [&] {
         tenon_context made = nullptr;
         const tenon_status status = tenon_context_create(program, "{\"threads\": 1}", &made);
         if (status == TENON_OK) tenon_context_free(made);
         return status;
       }},
      {"run with another batch",
       [&] {
         x.assign(static_cast<std::size_t>(3 * ++batch), 1.0F);
         x_shape[0] = batch;
         input.data = x.data();
         output = {};
         return run();
       }},
      {"watch",
       [&] {
         char* json = nullptr;
         output = {};
         const tenon_status status = tenon_context_watch(context, &input, 1, &output, 1, &json);
         if (status == TENON_OK) tenon_text_free(json);
         return status;
       }},
      {"describe",
       [&] {
         char* json = nullptr;
         const tenon_status status = tenon_context_describe(context, &json);
         if (status == TENON_OK) tenon_text_free(json);
         return status;
       }},
      {"set a weight", [&] { return tenon_program_set_weight(program, "w", &weight); }},
      {"a value",
       [&] {
         tenon_value made = nullptr, sequence = nullptr;
         tenon_status status = tenon_value_tensor(&weight, &made);
         if (status != TENON_OK) return status;
         status = tenon_value_sequence(&made, 1, TENON_F32, &sequence);
         tenon_value_free(made);
         if (status == TENON_OK) tenon_value_free(sequence);
         return status;
       }},
      {"a mistake", [&] { return tenon_program_set_weight(program, "no such weight", &weight); }},
  };
  for (const auto& [name, call] : calls) {
    const bool is_mistake = std::string(name) == "a mistake";
    const tenon_status wanted = is_mistake ? TENON_USAGE : TENON_OK;
    ASSERT_EQ(call(), wanted) << name << ": " << last_error();
    std::size_t failures = 0;
    for (std::size_t number = 1; number < 10000; ++number) {
      fail_allocation(number);
      const tenon_status status = call();
      if (!fail_allocation(0)) {
        EXPECT_EQ(status, wanted) << name << ": " << last_error();
        break;
      }
      ++failures;
      EXPECT_TRUE(status == TENON_OUT_OF_MEMORY || status == wanted)
          << name << ", allocation " << number << ": " << status << " " << last_error();
      EXPECT_EQ(call(), wanted) << name << ", behind allocation " << number << ": " << last_error();
    }
    EXPECT_GT(failures, 0) << name;
  }
  std::filesystem::remove(path);
}

TEST_F(Program_, RefusesFreedHandles) {
  ASSERT_EQ(tenon_program_free(program), TENON_OK);
  EXPECT_EQ(run(), TENON_OK) << "a context keeps its program";
  EXPECT_EQ(tenon_program_free(program), TENON_USAGE);
  EXPECT_TRUE(has("was freed")) << last_error();
  tenon_context again = nullptr;
  EXPECT_EQ(tenon_context_create(program, nullptr, &again), TENON_USAGE);
  ASSERT_EQ(tenon_context_free(context), TENON_OK);
  EXPECT_EQ(run(), TENON_USAGE);
  EXPECT_TRUE(has("the context was freed")) << last_error();
  EXPECT_EQ(tenon_context_free(context), TENON_USAGE);
  // The slot of a freed handle is reused; the old handle stays invalid.
  tenon_program next = compiled(kMatmul);
  EXPECT_EQ(tenon_program_free(program), TENON_USAGE);
  EXPECT_EQ(tenon_program_free(next), TENON_OK);
  program = nullptr;
  context = nullptr;
}

TEST_F(Program_, RefusesHandlesOfAnotherKind) {
  EXPECT_EQ(tenon_context_free(reinterpret_cast<tenon_context>(program)), TENON_USAGE);
  EXPECT_TRUE(has("no handle of a context")) << last_error();
  int number = 0;
  EXPECT_EQ(tenon_program_free(reinterpret_cast<tenon_program>(&number)), TENON_USAGE);
  EXPECT_EQ(tenon_program_free(nullptr), TENON_USAGE);
}

TEST_F(Program_, ConcurrentUseOfAContextIsReported) {
  make(R"(graph (x: f32[256, 256]) {
  a = matmul(x, x)
  b = matmul(a, x)
  y = matmul(b, x)
  return y
}
)");
  std::atomic<int> refused = 0, others = 0;
  std::atomic<bool> is_done = false;
  const auto work = [&] {
    std::vector<float> in(256 * 256, 0.001F), out(256 * 256);
    const std::int64_t shape[2] = {256, 256};
    const tenon_tensor given{in.data(), shape, nullptr, 2, TENON_F32};
    tenon_tensor made{out.data(), shape, nullptr, 2, TENON_F32};
    for (int k = 0; k < 2000 && !is_done; ++k) {
      const tenon_status status = tenon_context_run(context, &given, 1, &made, 1);
      if (status == TENON_USAGE &&
          std::string(tenon_last_error()).find("two threads") != std::string::npos) {
        ++refused;
        is_done = true;
      } else if (status != TENON_OK) {
        ++others;
      }
    }
  };
  std::thread one(work), two(work);
  one.join();
  two.join();
  EXPECT_GT(refused, 0);
  EXPECT_EQ(others, 0);
}

TEST_F(Program_, ConcurrentContexts) {
  std::atomic<int> wrong = 0;
  const auto work = [&](float value) {
    tenon_context own = nullptr;
    if (tenon_context_create(program, "{\"threads\": 1}", &own) != TENON_OK) ++wrong;
    std::vector<float> in(3, value), out(2);
    const std::int64_t in_shape[2] = {1, 3}, out_shape[2] = {1, 2};
    const tenon_tensor given{in.data(), in_shape, nullptr, 2, TENON_F32};
    tenon_tensor made{out.data(), out_shape, nullptr, 2, TENON_F32};
    for (int k = 0; k < 100; ++k) {
      if (tenon_context_run(own, &given, 1, &made, 1) != TENON_OK || out[1] != 12 * value) ++wrong;
    }
    if (tenon_context_free(own) != TENON_OK) ++wrong;
  };
  std::vector<std::thread> threads;
  for (int k = 1; k <= 4; ++k) threads.emplace_back(work, static_cast<float>(k));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Program_, ErrorsAreThreadLocal) {
  input.dtype = TENON_I8;
  ASSERT_EQ(run(), TENON_USAGE);
  std::string elsewhere = "unset";
  std::thread([&] { elsewhere = tenon_last_error(); }).join();
  EXPECT_EQ(elsewhere, "");
  EXPECT_NE(last_error(), "");
}

TEST_F(Program_, RefusesUnknownOptions) {
  tenon_context other = nullptr;
  EXPECT_EQ(tenon_context_create(program, "{\"thread\": 1}", &other), TENON_USAGE);
  EXPECT_TRUE(has("there is no option 'thread'") && has("threads")) << last_error();
  EXPECT_EQ(tenon_context_create(program, "{\"threads\": \"two\"}", &other), TENON_USAGE);
  EXPECT_EQ(tenon_context_create(program, "{\"threads\": -1}", &other), TENON_USAGE);
  EXPECT_EQ(tenon_context_create(program, "[1]", &other), TENON_USAGE);
  EXPECT_EQ(tenon_context_create(program, "{", &other), TENON_USAGE);
  EXPECT_EQ(tenon_context_create(program, nullptr, nullptr), TENON_USAGE);
}

TEST_F(Program_, SwappedWeightsMatchANewCompile) {
  std::size_t count = 9;
  ASSERT_EQ(tenon_program_port_count(program, TENON_WEIGHT, &count), TENON_OK);
  EXPECT_EQ(count, 0);
  make(kMatmul, "{\"swappable_weights\": true}");
  ASSERT_EQ(run(), TENON_OK) << last_error();
  EXPECT_EQ(y, (std::vector<float>{1, 2, 9, 12}));
  std::vector<float> w = {6, 5, 4, 3, 2, 1};
  const std::int64_t w_shape[2] = {3, 2};
  tenon_tensor weight{w.data(), w_shape, nullptr, 2, TENON_F32};
  ASSERT_EQ(tenon_program_set_weight(program, "w", &weight), TENON_OK) << last_error();
  EXPECT_EQ(tenon_program_set_weight(program, "v", &weight), TENON_USAGE);
  EXPECT_TRUE(has("no weight 'v'") && has("w")) << last_error();
  ASSERT_EQ(run(), TENON_OK);
  EXPECT_EQ(y[3], 12) << "a context keeps the weights it was made with";
  ASSERT_EQ(tenon_context_free(context), TENON_OK);
  ASSERT_EQ(tenon_context_create(program, nullptr, &context), TENON_OK);
  w.assign(6, -1);  // the weights were copied
  ASSERT_EQ(run(), TENON_OK);
  EXPECT_EQ(y, (std::vector<float>{6, 5, 12, 9}));
  weight.rank = 1;
  EXPECT_EQ(tenon_program_set_weight(program, "w", &weight), TENON_USAGE);
  EXPECT_TRUE(has("does not fit") && has("f32[3, 2]")) << last_error();
}

TEST_F(Program_, SaveAndLoad) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("tenon_api_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "program.tnn").string();
  ASSERT_EQ(tenon_program_save(program, path.c_str(), nullptr), TENON_OK) << last_error();
  EXPECT_EQ(tenon_program_save(program, path.c_str(), "{\"constants\": \"a\"}"), TENON_USAGE);
  release();
  ASSERT_EQ(tenon_program_load(path.c_str(), &program), TENON_OK) << last_error();
  ASSERT_EQ(tenon_context_create(program, nullptr, &context), TENON_OK);
  ASSERT_EQ(run(), TENON_OK);
  EXPECT_EQ(y[3], 12);
  tenon_program none = nullptr;
  EXPECT_EQ(tenon_program_load((folder / "none.tnn").string().c_str(), &none), TENON_USAGE);
  EXPECT_EQ(tenon_program_parse("nonsense", 8, &none), TENON_INVALID_MODEL);
  EXPECT_EQ(tenon_program_parse("", 0, &none), TENON_INVALID_MODEL);
  EXPECT_EQ(tenon_program_self(&none), TENON_USAGE) << "there is none in the test program";
  EXPECT_TRUE(has("no program in this file")) << last_error();
  std::filesystem::remove_all(folder);
}

TEST(ElementTypes, MatchTheIr) {
  for (const DTypeInfo& row : all_dtypes()) {
    const auto number = static_cast<std::int32_t>(row.dtype) + 1;
    EXPECT_EQ(embed::name_of(number), row.name);
    EXPECT_EQ(embed::dtype_of(row.name), number);
    if (row.dtype != DType::String) {
      EXPECT_EQ(embed::element_bytes(number), row.storage_bytes);
    }
  }
}

}  // namespace
}  // namespace tenon::program_test
