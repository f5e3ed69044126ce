#include "base/error.h"
#include "driver/targets.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "passes/train/train.h"
#include "reference/evaluate.h"
#include "testing/random.h"
#include "train/options.h"
#include "train/session.h"
#include "train/trainer.h"
#include "zoo/zoo.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace tenon {
namespace {

constexpr const char* kConvolutions = R"(graph net (x: f32[4, 3, 10, 10]) {
  w1 = constant f32[8, 3, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.3)
  scale = constant f32[8] splat 1.0
  bias = constant f32[8] splat 0.0
  mean = constant f32[8] splat 0.0
  variance = constant f32[8] splat 1.0
  w2 = constant f32[6, 8, 3, 3] normal(seed = 2, mean = 0.0, deviation = 0.2)
  fc = constant f32[6, 5] normal(seed = 3, mean = 0.0, deviation = 0.3)
  a = conv(x, w1) {pads = [1, 1, 1, 1]}
  b = batch_norm(a, scale, bias, mean, variance)
  c = relu(b)
  d = conv(c, w2) {pads = [1, 1, 1, 1], strides = [2, 2]}
  e = tanh(d)
  f = reduce_mean(e) {axes = [2, 3], keep_axes = false}
  y = matmul(f, fc)
  return y
})";

passes::StatefulGraph step_of(const std::string& text, const std::string& optimizer,
                              const std::string& loss = "softmax_cross_entropy") {
  passes::TrainOptions options;
  train::set_optimizer(options, optimizer);
  train::set_loss(options.loss, loss);
  return passes::train(parse_graph(text, all_ops()), options);
}

std::vector<Tensor> batch_for(const passes::StatefulGraph& step, std::uint64_t seed) {
  std::vector<Tensor> batch;
  testing::Random random(seed);
  for (const std::size_t input : step.data_inputs()) {
    const TensorType& type = step.graph.value(step.graph.inputs()[input]).type.tensor();
    Tensor& tensor = batch.emplace_back(type.dtype, constants(type.dims));
    for (std::int64_t k = 0; k < tensor.size(); ++k) {
      if (is_float(type.dtype)) {
        tensor.set_real(k, random.real() - 0.5);
      } else {
        tensor.set_integer(k, static_cast<std::int64_t>(random.below(5)));
      }
    }
  }
  return batch;
}

bool has_equal_bits(const train::States& a, const train::States& b) {
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (!identical(a[k].second, b[k].second)) return false;
  }
  return a.size() == b.size();
}

// Compares with a copy of each state per step, for which the reference's order of execution is
// unambiguous.
void expect_as_reference(const passes::StatefulGraph& step, train::Session& session) {
  std::vector<Tensor> states;
  for (const passes::State& state : step.states) states.push_back(state.initial.materialise());
  for (std::uint64_t run = 1; run <= 3; ++run) {
    const std::vector<Tensor> batch = batch_for(step, run);
    session.run(batch);
    std::vector<Datum> inputs(step.graph.inputs().size());
    const std::vector<std::size_t> data = step.data_inputs();
    for (std::size_t k = 0; k < data.size(); ++k) inputs[data[k]] = batch[k];
    for (std::size_t k = 0; k < states.size(); ++k) inputs[step.states[k].input] = states[k];
    const std::vector<Datum> outputs = reference::evaluate(step.graph, inputs);
    for (std::size_t k = 0; k < states.size(); ++k)
      states[k] = outputs[step.states[k].output].tensor();
  }
  const train::States found = session.states();
  for (std::size_t k = 0; k < states.size(); ++k) {
    for (std::int64_t i = 0; i < states[k].size(); ++i) {
      const double expected = states[k].real_at(i);
      ASSERT_NEAR(found[k].second.real_at(i), expected, 2e-3 * (std::abs(expected) + 0.05))
          << found[k].first << " at " << i;
    }
  }
}

TEST(Session, UpdatesStatesInPlace) {
  for (const char* optimizer :
       {"sgd", "momentum", "nesterov", "rmsprop", "adagrad", "adam", "adamw,weight_decay=0.1"}) {
    const passes::StatefulGraph step = step_of(kConvolutions, concat(optimizer, ",epsilon=0.01"));
    train::Session session(step, {2});
    EXPECT_EQ(session.second_place_bytes(), 0u) << optimizer;
    expect_as_reference(step, session);
  }
}

TEST(Session, RefusesTrainingOfIntegers) {
  train::SessionOptions options{1};
  options.target = driver::parse_target("cuda:sm_90a", "int8");
  EXPECT_THROW(train::Session(step_of(kConvolutions, "sgd"), options), Error);
}

// A kernel that normalizes a small parameter reads all of it before it writes.
TEST(Session, DoubleBuffersReductionsOfStates) {
  for (const char* optimizer : {"lamb", "adam,clip=0.5"}) {
    const passes::StatefulGraph step = step_of(kConvolutions, concat(optimizer, ",epsilon=0.01"));
    train::Session session(step, {2});
    EXPECT_LT(session.second_place_bytes(), session.state_bytes() / 2) << optimizer;
    expect_as_reference(step, session);
  }
}

// A reader of the parameter after its update forces a second buffer.
TEST(Session, ControlFlowKeepsStatesForReaders) {
  const passes::StatefulGraph step =
      passes::train(train::with_batch(zoo::build("lstm?batch=N,seq=5,size=6,hidden=7"), 3), [] {
        passes::TrainOptions options;
        train::set_optimizer(options, "adamw,epsilon=0.01");
        train::set_loss(options.loss, "mse");
        return options;
      }());
  train::Session session(step, {2});
  EXPECT_LT(session.second_place_bytes(), session.state_bytes());
  expect_as_reference(step, session);
}

TEST(Session, KeepsTensorsHeldByTheCaller) {
  const passes::StatefulGraph step = step_of(kConvolutions, "adamw");
  train::Session session(step, {1});
  session.run(batch_for(step, 1));
  const train::States held = session.states();
  std::vector<std::vector<std::byte>> bytes;
  for (const auto& [name, tensor] : held)
    bytes.emplace_back(tensor.bytes().begin(), tensor.bytes().end());
  session.run(batch_for(step, 2));
  for (std::size_t k = 0; k < held.size(); ++k) {
    EXPECT_EQ(std::memcmp(bytes[k].data(), held[k].second.bytes().data(), bytes[k].size()), 0)
        << held[k].first;
  }
  EXPECT_FALSE(has_equal_bits(held, session.states()));
}

TEST(Session, NonFiniteLossKeepsStates) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const passes::StatefulGraph step = step_of(kConvolutions, "adamw");
    train::Session session(step, {2}), untroubled(step, {2});
    session.run(batch_for(step, 1));
    untroubled.run(batch_for(step, 1));
    std::vector<Tensor> batch = batch_for(step, 2);
    batch[0].set_real(7, bad);
    session.run(batch);
    EXPECT_TRUE(has_equal_bits(session.states(), untroubled.states()));
    EXPECT_NE(train::first_not_finite(session.step(), session.inputs_before(batch)).find("'x'"),
              std::string::npos);
    session.run(batch_for(step, 3));
    untroubled.run(batch_for(step, 3));
    EXPECT_TRUE(has_equal_bits(session.states(), untroubled.states()));
  }
}

}  // namespace
}  // namespace tenon
