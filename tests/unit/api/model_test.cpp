#include "api/handles.h"
#include "tenon/tenon.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace tenon::model_test {
namespace {

std::string last_error() { return tenon_last_error(); }
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string taken(char* text) {
  std::string copy = text;
  tenon_text_free(text);
  return copy;
}

tenon_model parsed(const std::string& text) {
  tenon_model model = nullptr;
  EXPECT_EQ(tenon_model_parse(text.data(), text.size(), &model), TENON_OK) << last_error();
  return model;
}

constexpr const char* kRelu = R"(graph (x: f32[N, 4]) {
  a = relu(x)
  y = neg(a)
  return y
}
)";

TEST(ModelApi, OpensDescribesTransformsAndSaves) {
  tenon_model model = nullptr;
  ASSERT_EQ(tenon_model_open("zoo:mlp?batch=N", &model), TENON_OK) << last_error();
  char* json = nullptr;
  ASSERT_EQ(tenon_model_describe(model, &json), TENON_OK);
  const std::string text = taken(json);
  EXPECT_TRUE(has(text, "\"f32[N, 784]\"")) << text;
  tenon_model fixed = nullptr;
  ASSERT_EQ(tenon_model_transform(model, "{\"shapes\": {\"x\": [7, 784]}}", &fixed), TENON_OK)
      << last_error();
  ASSERT_EQ(tenon_model_describe(fixed, &json), TENON_OK);
  EXPECT_TRUE(has(taken(json), "\"f32[7, 784]\""));
  EXPECT_EQ(tenon_model_transform(model, "{\"passes\": [\"fuze\"]}", &fixed), TENON_USAGE);
  EXPECT_TRUE(has(last_error(), "fuze")) << last_error();
  EXPECT_EQ(tenon_model_save(model, "nonsense", "/tmp/none"), TENON_USAGE);
  EXPECT_EQ(tenon_model_free(fixed), TENON_OK);
  EXPECT_EQ(tenon_model_free(model), TENON_OK);
  EXPECT_EQ(tenon_model_free(model), TENON_USAGE);
}

TEST(ModelApi, RefusesOtherFiles) {
  tenon_model model = nullptr;
  EXPECT_EQ(tenon_model_open("/no/such/file.onnx", &model), TENON_USAGE);
  EXPECT_EQ(tenon_model_open("zoo:resnet5000", &model), TENON_USAGE);
  EXPECT_TRUE(has(last_error(), "resnet50")) << last_error();
  EXPECT_EQ(tenon_model_parse("not a model", 11, &model), TENON_INVALID_MODEL);
  EXPECT_EQ(tenon_model_parse(nullptr, 3, &model), TENON_USAGE);
  EXPECT_EQ(tenon_model_open(nullptr, &model), TENON_USAGE);
  EXPECT_EQ(model, nullptr);
}

TEST(ModelApi, ConcurrentUseOfOneModel) {
  const tenon_model model = parsed(kRelu);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int k = 0; k < 3; ++k) {
    threads.emplace_back([&] {
      tenon_program program = nullptr;
      if (tenon_model_compile(model, "{\"untuned\": true}", &program) != TENON_OK) ++wrong;
      if (tenon_program_free(program) != TENON_OK) ++wrong;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  tenon_model_free(model);
}

TEST(ModelApi, RunsCommandsInProcess) {
  const char* words[] = {"ops", "relu"};
  int code = -1;
  char *out = nullptr, *messages = nullptr;
  ASSERT_EQ(tenon_command(words, 2, &code, &out, &messages), TENON_OK) << last_error();
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(has(taken(out), "relu"));
  EXPECT_EQ(taken(messages), "");
  const char* wrong[] = {"shwo"};
  ASSERT_EQ(tenon_command(wrong, 1, &code, nullptr, &messages), TENON_OK);
  EXPECT_EQ(code, 2);
  EXPECT_TRUE(has(taken(messages), "did you mean 'show'"));
}

TEST(ValueApi, SequencesAndStringsRoundTrip) {
  const tenon_model model = parsed(R"(graph (s: seq(f32[2])) {
  y = sequence_length(s)
  return y
}
)");
  tenon_program program = nullptr;
  ASSERT_EQ(tenon_model_compile(model, nullptr, &program), TENON_OK) << last_error();
  tenon_context context = nullptr;
  ASSERT_EQ(tenon_context_create(program, nullptr, &context), TENON_OK) << last_error();
  float numbers[2] = {1, 2};
  const std::int64_t shape[1] = {2};
  const tenon_tensor tensor{numbers, shape, nullptr, 1, TENON_F32};
  tenon_value item = nullptr, sequence = nullptr, result = nullptr;
  ASSERT_EQ(tenon_value_tensor(&tensor, &item), TENON_OK) << last_error();
  const tenon_value items[3] = {item, item, item};
  ASSERT_EQ(tenon_value_sequence(items, 3, TENON_F32, &sequence), TENON_OK) << last_error();
  ASSERT_EQ(tenon_context_run_values(context, &sequence, 1, &result, 1), TENON_OK) << last_error();
  tenon_value_kind kind{};
  tenon_tensor told{};
  std::size_t count = 0;
  ASSERT_EQ(tenon_value_look(result, &kind, &told, &count), TENON_OK);
  EXPECT_EQ(kind, TENON_TENSOR);
  EXPECT_EQ(told.dtype, TENON_I64);
  EXPECT_EQ(*static_cast<std::int64_t*>(told.data), 3);
  ASSERT_EQ(tenon_value_look(sequence, &kind, nullptr, &count), TENON_OK);
  EXPECT_EQ(kind, TENON_SEQUENCE);
  EXPECT_EQ(count, 3);
  tenon_value none = nullptr;
  EXPECT_EQ(tenon_value_item(sequence, 3, &none), TENON_USAGE);
  // A tensor is not a sequence; the run reports it.
  EXPECT_NE(tenon_context_run_values(context, &item, 1, &none, 1), TENON_OK);

  const char* texts[2] = {"a", "b\0c"};
  const std::size_t lengths[2] = {1, 3};
  tenon_value strings = nullptr;
  ASSERT_EQ(tenon_value_strings(texts, lengths, shape, 1, &strings), TENON_OK) << last_error();
  const char* text = nullptr;
  std::size_t length = 0;
  ASSERT_EQ(tenon_value_string(strings, 1, &text, &length), TENON_OK);
  EXPECT_EQ(std::string(text, length), std::string("b\0c", 3));
  EXPECT_EQ(tenon_value_string(strings, 2, &text, &length), TENON_USAGE);
  EXPECT_EQ(tenon_value_string(item, 0, &text, &length), TENON_USAGE);
  for (const tenon_value value : {item, sequence, result, strings})
    EXPECT_EQ(tenon_value_free(value), TENON_OK);
  EXPECT_EQ(tenon_value_free(item), TENON_USAGE);
  tenon_context_free(context);
  tenon_program_free(program);
  tenon_model_free(model);
}

class TrainerApi : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(tenon_model_open("zoo:mlp?batch=N", &model), TENON_OK) << last_error();
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = std::sin(static_cast<float>(k));
    for (std::size_t k = 0; k < target.size(); ++k) target[k] = static_cast<std::int64_t>(k) % 10;
  }
  void TearDown() override { tenon_model_free(model); }
  tenon_trainer made() {
    tenon_trainer trainer = nullptr;
    EXPECT_EQ(tenon_trainer_create(
                  model, "{\"batch\": 4, \"optimizer\": \"sgd,lr=0.1\", \"threads\": 1}", &trainer),
              TENON_OK)
        << last_error();
    return trainer;
  }
  float step(tenon_trainer trainer) {
    const tenon_tensor batch[2] = {{x.data(), x_shape, nullptr, 2, TENON_F32},
                                   {target.data(), target_shape, nullptr, 1, TENON_I64}};
    tenon_tensor outputs[2] = {};
    EXPECT_EQ(tenon_trainer_step(trainer, batch, 2, outputs, 2), TENON_OK) << last_error();
    return outputs[0].data == nullptr ? NAN : *static_cast<float*>(outputs[0].data);
  }
  tenon_model model = nullptr;
  std::vector<float> x = std::vector<float>(4 * 784);
  std::vector<std::int64_t> target = std::vector<std::int64_t>(4);
  std::int64_t x_shape[2] = {4, 784}, target_shape[1] = {4};
};

TEST_F(TrainerApi, TrainsAndReturnsTheModel) {
  const tenon_trainer trainer = made();
  char* json = nullptr;
  ASSERT_EQ(tenon_trainer_describe(trainer, &json), TENON_OK);
  const std::string text = taken(json);
  EXPECT_TRUE(has(text, "\"target\"") && has(text, "\"loss\"")) << text;
  const float first = step(trainer);
  float last = first;
  for (int k = 0; k < 20; ++k) last = step(trainer);
  EXPECT_LT(last, first);
  tenon_model trained = nullptr;
  ASSERT_EQ(tenon_trainer_model(trainer, &trained), TENON_OK) << last_error();
  tenon_program program = nullptr;
  EXPECT_EQ(tenon_model_compile(trained, "{\"untuned\": true}", &program), TENON_OK)
      << last_error();
  tenon_program_free(program);
  tenon_model_free(trained);
  EXPECT_EQ(tenon_trainer_free(trainer), TENON_OK);
  EXPECT_EQ(tenon_trainer_free(trainer), TENON_USAGE);
}

TEST_F(TrainerApi, ResumesBitIdentically) {
  const auto folder =
      (std::filesystem::temp_directory_path() / ("tenon_trainer_" + std::to_string(getpid())))
          .string();
  const tenon_trainer one = made();
  step(one);
  ASSERT_EQ(tenon_trainer_save(one, folder.c_str()), TENON_OK) << last_error();
  const float next = step(one);
  const tenon_trainer two = made();
  ASSERT_EQ(tenon_trainer_restore(two, folder.c_str()), TENON_OK) << last_error();
  EXPECT_EQ(step(two), next);
  EXPECT_NE(tenon_trainer_restore(two, "/no/such/folder"), TENON_OK);
  tenon_trainer_free(one);
  tenon_trainer_free(two);
  std::filesystem::remove_all(folder);
}

TEST_F(TrainerApi, RefusesInvalidData) {
  const tenon_trainer trainer = made();
  x_shape[0] = 3;
  const tenon_tensor batch[2] = {{x.data(), x_shape, nullptr, 2, TENON_F32},
                                 {target.data(), target_shape, nullptr, 1, TENON_I64}};
  tenon_tensor outputs[2] = {};
  EXPECT_EQ(tenon_trainer_step(trainer, batch, 2, outputs, 2), TENON_USAGE);
  EXPECT_TRUE(has(last_error(), "input 'x'")) << last_error();
  EXPECT_EQ(tenon_trainer_step(trainer, batch, 1, outputs, 2), TENON_USAGE);
  tenon_tensor state{};
  EXPECT_EQ(tenon_trainer_state(trainer, "none", &state), TENON_USAGE);
  tenon_trainer other = nullptr;
  EXPECT_EQ(tenon_trainer_create(model, "{\"optimizer\": \"nonsense\"}", &other), TENON_USAGE);
  tenon_trainer_free(trainer);
}

}  // namespace
}  // namespace tenon::model_test
