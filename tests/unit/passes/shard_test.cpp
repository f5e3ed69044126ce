#include "base/lockstep.h"
#include "base/rank_group.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "ops/families/tensor_parts.h"
#include "passes/shard/shard.h"
#include "passes/train/train.h"
#include "reference/evaluate.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

#include <map>

namespace tenon::shard_test {
namespace {

constexpr const char* kMlp = R"(graph mlp (x: f32[6, 12]) {
  w1 = constant f32[12, 16] normal(seed = 1, mean = 0.0, deviation = 0.3)
  b1 = constant f32[16] splat 0.1
  w2 = constant f32[16, 3] normal(seed = 2, mean = 0.0, deviation = 0.3)
  b2 = constant f32[3] splat 0.0
  a = matmul(x, w1)
  b = add(a, b1)
  c = tanh(b)
  e = matmul(c, w2)
  logits = add(e, b2)
  return logits
})";

// Attention of four heads, then two products with a gelu between, each with a residual.
constexpr const char* kBlock = R"(graph block (x: f32[2, 6, 16]) {
  scale1 = constant f32[16] splat 1.0
  bias1 = constant f32[16] splat 0.0
  scale2 = constant f32[16] splat 1.0
  bias2 = constant f32[16] splat 0.0
  query = constant f32[16, 16] normal(seed = 1, mean = 0.0, deviation = 0.3)
  key = constant f32[16, 16] normal(seed = 2, mean = 0.0, deviation = 0.3)
  worth = constant f32[16, 16] normal(seed = 3, mean = 0.0, deviation = 0.3)
  out = constant f32[16, 16] normal(seed = 7, mean = 0.0, deviation = 0.3)
  up = constant f32[16, 64] normal(seed = 4, mean = 0.0, deviation = 0.3)
  up_bias = constant f32[64] splat 0.0
  down = constant f32[64, 16] normal(seed = 5, mean = 0.0, deviation = 0.3)
  down_bias = constant f32[16] splat 0.0
  head = constant f32[16, 4] normal(seed = 6, mean = 0.0, deviation = 0.3)
  a = layer_norm(x, scale1, bias1)
  q = matmul(a, query)
  k = matmul(a, key)
  v = matmul(a, worth)
  q4 = reshape(q) {shape = [2, 6, 4, 4]}
  k4 = reshape(k) {shape = [2, 6, 4, 4]}
  v4 = reshape(v) {shape = [2, 6, 4, 4]}
  qh = transpose(q4) {perm = [0, 2, 1, 3]}
  kh = transpose(k4) {perm = [0, 2, 3, 1]}
  vh = transpose(v4) {perm = [0, 2, 1, 3]}
  s = matmul(qh, kh)
  p = softmax(s)
  o = matmul(p, vh)
  ot = transpose(o) {perm = [0, 2, 1, 3]}
  o3 = reshape(ot) {shape = [2, 6, 16]}
  oo = matmul(o3, out)
  h = add(x, oo)
  c = layer_norm(h, scale2, bias2)
  m0 = matmul(c, up)
  m = add(m0, up_bias)
  g = gelu(m)
  n0 = matmul(g, down)
  n = add(n0, down_bias)
  y = add(h, n)
  pooled = reduce_mean(y) {axes = [1], keep_axes = false}
  logits = matmul(pooled, head)
  return logits
})";

constexpr const char* kConvolution = R"(graph net (x: f32[2, 4, 6, 6]) {
  w1 = constant f32[8, 4, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.2)
  scale = constant f32[8] splat 1.0
  bias = constant f32[8] splat 0.0
  mean = constant f32[8] splat 0.0
  variance = constant f32[8] splat 1.0
  w2 = constant f32[8, 8, 3, 3] normal(seed = 2, mean = 0.0, deviation = 0.2)
  w3 = constant f32[288, 3] normal(seed = 3, mean = 0.0, deviation = 0.1)
  a = conv(x, w1) {pads = [1, 1, 1, 1]}
  b = batch_norm(a, scale, bias, mean, variance)
  c = relu(b)
  d = conv(c, w2) {pads = [1, 1, 1, 1]}
  e = relu(d)
  f = reshape(e) {shape = [2, 288]}
  logits = matmul(f, w3)
  return logits
})";

passes::StatefulGraph step_of(const char* text, std::int64_t micro_batches) {
  passes::TrainOptions options;
  options.optimizer.kind = "adamw";
  options.schedule.rate = 0.01;
  options.micro_batches = micro_batches;
  return passes::train(parse_graph(text, all_ops()), options);
}

// A batch of one data rank: an input of floats, and labels.
std::vector<Tensor> batch(const passes::StatefulGraph& step, int number) {
  std::vector<Tensor> made;
  for (std::size_t k : step.data_inputs()) {
    const TensorType& type = step.graph.value(step.graph.inputs()[k]).type.tensor();
    const Shape shape = constants(type.dims);
    if (type.dtype == DType::F32) {
      made.push_back(
          Constant::normal(DType::F32, shape, 40 + static_cast<std::uint64_t>(number), 0, 1)
              .materialise());
      continue;
    }
    Tensor labels(type.dtype, shape);
    for (std::int64_t i = 0; i < labels.size(); ++i) labels.set_integer(i, (i + number) % 3);
    made.push_back(std::move(labels));
  }
  return made;
}

std::vector<Datum> run(const passes::StatefulGraph& step, Communicator& ranks,
                       std::int64_t tensor_ranks) {
  std::vector<Datum> inputs(step.graph.inputs().size());
  const std::vector<std::size_t> data = step.data_inputs();
  const std::vector<Tensor> given = batch(step, ranks.rank() / static_cast<int>(tensor_ranks));
  for (std::size_t k = 0; k < data.size(); ++k) inputs[data[k]] = given[k];
  for (const passes::State& state : step.states) {
    Tensor value = state.initial.materialise();
    if (state.split) {
      const std::int64_t extent = value.shape()[*state.split->axis] / tensor_ranks;
      value = slice_of(value, *state.split->axis, extent * (ranks.rank() % tensor_ranks), extent);
    }
    inputs[state.input] = value;
  }
  reference::EvaluateOptions options;
  options.communicator = &ranks;
  options.thread_count = 1;
  return reference::evaluate(step.graph, inputs, options);
}

void expect_near(const Tensor& found, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(found.shape(), expected.shape()) << what;
  const std::vector<double> a = found.reals(), b = expected.reals();
  for (std::size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], 1e-5) << what << " " << k;
}

// A mesh of data * tensor ranks gives the results of `data` ranks without tensor parallelism.
void expect_same_step(const char* model, int data, int tensor) {
  const passes::StatefulGraph whole = step_of(model, data);
  std::vector<Datum> expected;
  run_in_lockstep(data, [&](Communicator& ranks) {
    std::vector<Datum> made = run(whole, ranks, 1);
    if (ranks.rank() == 0) expected = std::move(made);
  });
  const passes::StatefulGraph micro_batches = shard(whole, {tensor, data, {}});
  run_in_lockstep(data * tensor, [&](Communicator& ranks) {
    const std::vector<Datum> made = run(micro_batches, ranks, tensor);
    for (std::size_t k : micro_batches.data_outputs())
      expect_near(made[k].tensor(), expected[k].tensor(), "output");
    for (const passes::State& state : micro_batches.states) {
      Tensor value = expected[state.output].tensor();
      if (state.split) {
        const std::int64_t extent = value.shape()[*state.split->axis] / tensor;
        value = slice_of(value, *state.split->axis, extent * (ranks.rank() % tensor), extent);
      }
      expect_near(made[state.output].tensor(), value, state.name);
    }
  });
}

std::map<std::string, int> collectives_of(const passes::StatefulGraph& step) {
  std::map<std::string, int> counts;
  for (NodeId id : step.graph.nodes_in_order()) {
    const std::string name(step.graph.op_name(id));
    if (name == "all_reduce" || name == "all_gather" || name == "reduce_scatter" ||
        name == "rank_slice")
      ++counts[name];
  }
  return counts;
}

const passes::State& state_of(const passes::StatefulGraph& step, const std::string& name) {
  for (const passes::State& state : step.states) {
    if (state.name == name) return state;
  }
  throw std::runtime_error("no state " + name);
}

TEST(Shard, OneAllReducePerMlp) {
  const passes::StatefulGraph micro_batches = shard(step_of(kMlp, 1), {2, 1, {}});
  // Column-parallel, then row-parallel: one all-reduce in the forward pass.
  ASSERT_TRUE(state_of(micro_batches, "w1").split);
  EXPECT_EQ(state_of(micro_batches, "w1").split->axis, 1U);
  ASSERT_TRUE(state_of(micro_batches, "w2").split);
  EXPECT_EQ(state_of(micro_batches, "w2").split->axis, 0U);
  EXPECT_TRUE(state_of(micro_batches, "b1").split);
  EXPECT_FALSE(state_of(micro_batches, "b2").split);
  EXPECT_EQ(collectives_of(micro_batches), (std::map<std::string, int>{{"all_reduce", 1}}));
}

TEST(Shard, MomentsAreShardedAsTheirParameters) {
  const passes::StatefulGraph micro_batches = shard(step_of(kMlp, 1), {4, 1, {}});
  for (const passes::State& state : micro_batches.states) {
    if (state.name.find("w1") == std::string::npos) continue;
    ASSERT_TRUE(state.split) << state.name;
    EXPECT_EQ(state.split->axis, 1U) << state.name;
    EXPECT_EQ(constants(micro_batches.graph.value(micro_batches.graph.inputs()[state.input])
                            .type.tensor()
                            .dims),
              (Shape{12, 4}));
  }
}

// Heads are sharded, and each half of the block has one all-reduce forward and one backward.
TEST(Shard, FourAllReducesPerBlock) {
  const passes::StatefulGraph micro_batches = shard(step_of(kBlock, 1), {2, 1, {}});
  // In addition to those of the output head, which is too small to shard.
  EXPECT_EQ(collectives_of(micro_batches)["all_reduce"], 4);
  EXPECT_EQ(collectives_of(micro_batches)["reduce_scatter"], 0);
  EXPECT_LE(collectives_of(micro_batches)["all_gather"], 2);
  for (const char* columns : {"query", "key", "worth", "up"}) {
    ASSERT_TRUE(state_of(micro_batches, columns).split) << columns;
    EXPECT_EQ(state_of(micro_batches, columns).split->axis, 1U) << columns;
  }
  for (const char* rows : {"out", "down"}) {
    ASSERT_TRUE(state_of(micro_batches, rows).split) << rows;
    EXPECT_EQ(state_of(micro_batches, rows).split->axis, 0U) << rows;
  }
}

TEST(Shard, MatchesOneRank) {
  for (const char* model : {kMlp, kBlock, kConvolution}) {
    expect_same_step(model, 1, 2);
    expect_same_step(model, 1, 4);
    expect_same_step(model, 2, 2);
  }
}

TEST(Shard, RemarksOnUnshardedTensors) {
  EXPECT_EQ(error_summary([] {
              shard(step_of(kMlp, 1), {5, 1, {}});
            }),
            "no tensor can be split over 5 ranks");
  passes::Remarks remarks;
  shard(step_of(kMlp, 1), {2, 1, {}}, &remarks);
  ASSERT_FALSE(remarks.about("a").empty());
  EXPECT_NE(remarks.about("a")[0].text.find("'w1' split along axis 1"), std::string::npos)
      << remarks.about("a")[0].text;
}

}  // namespace
}  // namespace tenon::shard_test
