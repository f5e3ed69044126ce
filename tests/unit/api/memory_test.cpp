#include "tenon/tenon.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace tenon::memory_test {
namespace {

// A kernel-only program, and a program with a host step that returns an input, a constant and one
// value twice.
constexpr const char* kKernels = R"(graph (x: f32[N]) {
  y = relu(x)
  z = neg(x)
  return y, z
}
)";
constexpr const char* kHostStep = R"(graph (x: f32[N]) {
  c = constant f32[2] [7, 8]
  ix = nonzero(x)
  y = identity(x)
  k = identity(c)
  a = identity(ix)
  return ix, y, k, a
}
)";

std::string last_error() { return tenon_last_error(); }

class PortMemory : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { make(GetParam()); }
  void make(const char* text) {
    tenon_model model = nullptr;
    ASSERT_EQ(tenon_model_parse(text, std::strlen(text), &model), TENON_OK) << last_error();
    ASSERT_EQ(tenon_model_compile(model, "{\"untuned\": true}", &program), TENON_OK)
        << last_error();
    tenon_model_free(model);
    ASSERT_EQ(tenon_context_create(program, "{\"threads\": 1}", &context), TENON_OK);
    std::size_t count = 0;
    ASSERT_EQ(tenon_program_port_count(program, TENON_OUTPUT, &count), TENON_OK);
    outputs.resize(count);
  }
  void TearDown() override {
    tenon_context_free(context);
    tenon_program_free(program);
  }
  tenon_status run() {
    return tenon_context_run(context, &input, 1, outputs.data(), outputs.size());
  }
  // The second output is an f32 tensor with the shape of the input in both programs.
  void place_second(void* data) { outputs[1] = {data, &extent, nullptr, 1, TENON_F32}; }
  void resize(std::int64_t size) {
    x.assign(static_cast<std::size_t>(size), 1);
    extent = size;
    input.data = x.data();
  }

  tenon_program program = nullptr;
  tenon_context context = nullptr;
  std::vector<float> x = {1, 2, 3, 4};
  std::int64_t extent = 4;
  tenon_tensor input{x.data(), &extent, nullptr, 1, TENON_F32};
  std::vector<tenon_tensor> outputs;
};

TEST_P(PortMemory, RefusesAnOutputThatOverlapsAnInput) {
  std::vector<float> memory(8, 1);
  input.data = memory.data() + 2;
  for (const std::size_t offset : {0, 2, 4}) {
    place_second(memory.data() + offset);
    EXPECT_EQ(run(), TENON_USAGE) << offset;
    EXPECT_NE(last_error().find(" overlaps input "), std::string::npos) << last_error();
    EXPECT_NE(last_error().find("bytes of both"), std::string::npos) << last_error();
  }
  extent = 2;
  for (const std::size_t offset : {0, 4}) {  // Adjacent.
    place_second(memory.data() + offset);
    EXPECT_EQ(run(), TENON_OK) << last_error();
    outputs.assign(outputs.size(), tenon_tensor{});
  }
}

TEST_P(PortMemory, RefusesOutputsThatOverlap) {
  place_second(nullptr);
  ASSERT_EQ(run(), TENON_OK) << last_error();
  outputs[0].data = outputs[1].data;
  EXPECT_EQ(run(), TENON_USAGE);
  EXPECT_NE(last_error().find(" overlaps output "), std::string::npos) << last_error();
}

TEST_P(PortMemory, TensorsWithoutElementsOverlapNoOther) {
  extent = 0;
  place_second(x.data());
  EXPECT_EQ(run(), TENON_OK) << last_error();
}

TEST_P(PortMemory, RefusesMemoryOfTheLastRunAsInput) {
  ASSERT_EQ(run(), TENON_OK) << last_error();
  input.data = outputs[1].data;
  outputs.assign(outputs.size(), tenon_tensor{});
  EXPECT_EQ(run(), TENON_USAGE);
  EXPECT_NE(last_error().find("copy"), std::string::npos) << last_error();
  // A failed run leaves the outputs of the last one valid.
  EXPECT_NE(static_cast<const float*>(input.data)[1], 0);
}

// A larger batch replaces the context's memory.
TEST_P(PortMemory, RefusesMemoryThatTheRunWouldReplaceAsInput) {
  resize(1000);
  ASSERT_EQ(run(), TENON_OK) << last_error();
  std::vector<std::int64_t> shape = {1000};
  const tenon_tensor last = outputs[1];
  outputs.assign(outputs.size(), tenon_tensor{});
  resize(100000);
  ASSERT_EQ(tenon_context_bind(context, &input, 1, outputs.data(), outputs.size()),
            outputs.size() == 2 ? TENON_OK : TENON_UNSUPPORTED);
  outputs.assign(outputs.size(), tenon_tensor{});
  input.data = last.data;
  extent = 1000;
  EXPECT_EQ(run(), TENON_USAGE) << last_error();
}

// The descriptions that a run filled in are valid outputs of the next one.
TEST_P(PortMemory, OutputsOfTheLastRunAreWrittenAgain) {
  ASSERT_EQ(run(), TENON_OK) << last_error();
  const std::vector<tenon_tensor> first = outputs;
  for (int k = 0; k < 3; ++k) {
    ASSERT_EQ(run(), TENON_OK) << last_error();
    for (std::size_t port = 0; port < outputs.size(); ++port)
      EXPECT_EQ(outputs[port].data, first[port].data);
  }
}

TEST_P(PortMemory, AFailedRunWritesNoDescription) {
  const std::int64_t wrong = 3;
  std::vector<float> y(3);
  outputs[1] = {y.data(), &wrong, nullptr, 1, TENON_F32};
  EXPECT_EQ(run(), TENON_USAGE);
  EXPECT_EQ(outputs[0].data, nullptr);
  EXPECT_EQ(outputs[0].shape, nullptr);
}

TEST_P(PortMemory, AStartedRunRejectsOtherCalls) {
  ASSERT_EQ(tenon_context_start(context, &input, 1, outputs.data(), outputs.size()), TENON_OK)
      << last_error();
  EXPECT_EQ(run(), TENON_USAGE);
  EXPECT_EQ(tenon_context_start(context, &input, 1, outputs.data(), outputs.size()), TENON_USAGE);
  EXPECT_NE(last_error().find("in progress"), std::string::npos) << last_error();
  EXPECT_EQ(tenon_context_finish(context), TENON_OK);
  EXPECT_EQ(run(), TENON_OK) << last_error();
}

INSTANTIATE_TEST_SUITE_P(Programs, PortMemory, ::testing::Values(kKernels, kHostStep),
                         [](const auto& each) { return each.index == 0 ? "Kernels" : "HostStep"; });

class HostStepMemory : public PortMemory {};

// An output that equals an input, a constant or another output has memory of its own.
TEST_P(HostStepMemory, OutputsOutliveInputsAndShareNoMemory) {
  ASSERT_EQ(run(), TENON_OK) << last_error();
  for (std::size_t a = 0; a < outputs.size(); ++a) {
    EXPECT_NE(outputs[a].data, x.data()) << a;
    for (std::size_t b = 0; b < a; ++b) EXPECT_NE(outputs[a].data, outputs[b].data) << a << b;
  }
  x.assign(4, -1);
  const auto* y = static_cast<const float*>(outputs[1].data);
  EXPECT_EQ((std::vector<float>(y, y + 4)), (std::vector<float>{1, 2, 3, 4}));
  static_cast<float*>(outputs[2].data)[0] = 9;  // Not the program's constant.
  outputs.assign(outputs.size(), tenon_tensor{});
  ASSERT_EQ(run(), TENON_OK) << last_error();
  EXPECT_EQ(static_cast<const float*>(outputs[2].data)[0], 7);
}

// Ports have the model's names, although three outputs equal other values.
TEST_P(HostStepMemory, PortsHaveTheNamesOfTheModel) {
  const char* names[] = {"ix", "y", "k", "a"};
  for (std::size_t k = 0; k < 4; ++k) {
    tenon_port port{};
    ASSERT_EQ(tenon_program_port(program, TENON_OUTPUT, k, &port), TENON_OK);
    EXPECT_STREQ(port.name, names[k]);
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, HostStepMemory, ::testing::Values(kHostStep));

class GivenShapes : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string text =
        "graph (a: f32[N, 3], b: f32[N, 2*N]) {\n  y = relu(a)\n  z = relu(b)\n  return y, z\n}\n";
    ASSERT_EQ(tenon_model_parse(text.data(), text.size(), &model), TENON_OK) << last_error();
  }
  void TearDown() override { tenon_model_free(model); }
  // Returns the message of the refusal.
  std::string refusal(const std::string& shapes) {
    tenon_model result = nullptr;
    EXPECT_EQ(tenon_model_transform(model, ("{\"shapes\": " + shapes + "}").c_str(), &result),
              TENON_USAGE)
        << shapes;
    return last_error();
  }
  tenon_model model = nullptr;
};

TEST_F(GivenShapes, AreRefusedIfTheyContradictTheModel) {
  EXPECT_EQ(refusal(R"({"a": [3, 999]})"),
            "the shape given for 'a' does not fit\n"
            "  at        input 'a', axis 1\n"
            "  expected  f32[N, 3]\n"
            "  got       [3, 999]\n"
            "  hint      the extent is 3");
  EXPECT_EQ(refusal(R"({"a": [-5, 3]})"),
            "the shape given for 'a' does not fit\n"
            "  at        input 'a', axis 0\n"
            "  expected  f32[N, 3]\n"
            "  got       [-5, 3]\n"
            "  hint      an extent lies from 0 to 72057594037927936");
  EXPECT_EQ(refusal(R"({"a": [2, 3], "b": [4, 8]})"),
            "the shape given for 'b' does not fit\n"
            "  at        input 'b', axis 0\n"
            "  expected  f32[N, 2*N]\n"
            "  got       [4, 8]\n"
            "  hint      N is 2 on another axis");
  EXPECT_EQ(refusal(R"({"b": [4, 9]})"),
            "the shape given for 'b' does not fit\n"
            "  at        input 'b', axis 1\n"
            "  expected  f32[N, 2*N]\n"
            "  got       [4, 9]\n"
            "  hint      the extent is 8");
  EXPECT_EQ(refusal(R"({"b": [4]})"),
            "the shape given for 'b' has the wrong rank\n"
            "  at        input 'b'\n"
            "  expected  f32[N, 2*N]\n"
            "  got       [4]");
}

TEST_F(GivenShapes, OfSpecialisedKernelsAreCheckedToo) {
  tenon_program program = nullptr;
  EXPECT_EQ(tenon_model_compile(model, "{\"specialised_shapes\": [\"a:3x999\"]}", &program),
            TENON_USAGE);
  EXPECT_NE(last_error().find("the shape given for 'a' does not fit"), std::string::npos)
      << last_error();
}

}  // namespace
}  // namespace tenon::memory_test
