#include "tenon/tenon.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace tenon::api_states_test {
namespace {

// A running sum, updated in place.
constexpr const char* kSum = R"(graph sum (x: f32[2], a: f32[2]) {
  state a to a1 = f32[2] [1, 2]
  a1 = add(a, x)
  y = neg(a1)
  return y, a1
}
)";

// The same with an operator that the host executes; its state has no initial value.
constexpr const char* kPlaces = R"(graph places (x: f32[2], a: f32[2]) {
  state a to a1
  a1 = add(a, x)
  places = nonzero(a1)
  return places, a1
}
)";

class ContextStates : public ::testing::Test {
 protected:
  void make(const char* text) {
    tenon_model model = nullptr;
    ASSERT_EQ(tenon_model_parse(text, std::strlen(text), &model), TENON_OK) << tenon_last_error();
    ASSERT_EQ(tenon_model_compile(model, nullptr, &program), TENON_OK) << tenon_last_error();
    tenon_model_free(model);
    ASSERT_EQ(tenon_context_create(program, "{\"threads\": 1}", &context), TENON_OK);
  }
  void TearDown() override {
    tenon_context_free(context);
    tenon_program_free(program);
  }
  static tenon_tensor pair(std::vector<float>& values) {
    return {values.data(), kShape, nullptr, 1, TENON_F32};
  }
  static tenon_status run(tenon_context of, float first, float second) {
    std::vector<float> x = {first, second};
    const tenon_tensor input = pair(x);
    tenon_tensor output{};
    return tenon_context_run(of, &input, 1, &output, 1);
  }
  static std::vector<float> read(tenon_context of, const char* name = "a") {
    tenon_tensor value{};
    EXPECT_EQ(tenon_context_read_state(of, name, &value), TENON_OK) << tenon_last_error();
    const auto* data = static_cast<const float*>(value.data);
    return {data, data + value.shape[0]};
  }

  static constexpr std::int64_t kShape[] = {2};
  tenon_program program = nullptr;
  tenon_context context = nullptr;
};

using Floats = std::vector<float>;

TEST_F(ContextStates, AreNoInputsAndOutputs) {
  make(kSum);
  std::size_t count = 0;
  for (const auto& [kind, expected] :
       {std::pair(TENON_INPUT, 1u), {TENON_OUTPUT, 1u}, {TENON_STATE, 1u}}) {
    ASSERT_EQ(tenon_program_port_count(program, kind, &count), TENON_OK);
    EXPECT_EQ(count, expected) << kind;
  }
  tenon_port port{};
  ASSERT_EQ(tenon_program_port(program, TENON_STATE, 0, &port), TENON_OK);
  EXPECT_STREQ(port.name, "a");
  EXPECT_STREQ(port.type, "f32[2]");
}

TEST_F(ContextStates, PassFromRunToRun) {
  make(kSum);
  EXPECT_EQ(read(context), (Floats{1, 2}));
  ASSERT_EQ(run(context, 1, 1), TENON_OK) << tenon_last_error();
  ASSERT_EQ(run(context, 1, 1), TENON_OK);
  EXPECT_EQ(read(context), (Floats{3, 4}));
  Floats other = {10, 20};
  const tenon_tensor elements = pair(other);
  ASSERT_EQ(tenon_context_write_state(context, "a", &elements), TENON_OK) << tenon_last_error();
  ASSERT_EQ(run(context, 1, 1), TENON_OK);
  EXPECT_EQ(read(context), (Floats{11, 21}));
  EXPECT_EQ(other, (Floats{10, 20}));
  tenon_tensor copy = pair(other);
  ASSERT_EQ(tenon_context_read_state(context, "a", &copy), TENON_OK) << tenon_last_error();
  EXPECT_EQ(other, (Floats{11, 21}));
  ASSERT_EQ(tenon_context_reset_states(context), TENON_OK);
  EXPECT_EQ(read(context), (Floats{1, 2}));
}

TEST_F(ContextStates, ForksContinueApart) {
  for (const char* text : {kSum, kPlaces}) {
    make(text);
    Floats start = {5, 6};
    const tenon_tensor elements = pair(start);
    ASSERT_EQ(tenon_context_write_state(context, "a", &elements), TENON_OK) << tenon_last_error();
    tenon_context fork = nullptr;
    ASSERT_EQ(tenon_context_fork(context, &fork), TENON_OK) << tenon_last_error();
    ASSERT_EQ(run(fork, 1, 1), TENON_OK) << tenon_last_error();
    ASSERT_EQ(run(context, 2, 2), TENON_OK) << tenon_last_error();
    EXPECT_EQ(read(fork), (Floats{6, 7}));
    EXPECT_EQ(read(context), (Floats{7, 8}));
    tenon_context_free(fork);
    if (text == kSum) TearDown();
  }
}

TEST_F(ContextStates, LiveInMemoryOfTheCaller) {
  make(kSum);
  Floats memory = {3, 4};
  const tenon_tensor elements = pair(memory);
  ASSERT_EQ(tenon_context_bind_state(context, "a", &elements), TENON_OK) << tenon_last_error();
  ASSERT_EQ(run(context, 1, 1), TENON_OK) << tenon_last_error();
  EXPECT_EQ(memory, (Floats{4, 5}));
}

TEST_F(ContextStates, RefusesOtherNamesTypesAndRunsWithoutAValue) {
  make(kPlaces);
  EXPECT_EQ(run(context, 1, 1), TENON_USAGE);
  EXPECT_STREQ(tenon_last_error(),
               "state 'a' has no value before the first run\n  at        program 'places'\n"
               "  hint      write it first");
  Floats values = {1, 2};
  tenon_tensor elements = pair(values);
  EXPECT_EQ(tenon_context_write_state(context, "b", &elements), TENON_USAGE);
  EXPECT_EQ(std::string(tenon_last_error()).find("no state is called 'b'"), 0u)
      << tenon_last_error();
  elements.dtype = TENON_I32;
  EXPECT_EQ(tenon_context_write_state(context, "a", &elements), TENON_USAGE);
  EXPECT_STREQ(tenon_last_error(),
               "state 'a' does not fit\n  expected  f32[2]\n  got       i32[2]");
  EXPECT_EQ(tenon_context_fork(context, nullptr), TENON_USAGE);
}

}  // namespace
}  // namespace tenon::api_states_test
