#include "base/lockstep.h"
#include "distributed/mesh.h"
#include "distributed/rank_budget.h"
#include "distributed/stages.h"
#include "distributed/windows.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "train/options.h"
#include "train/trainer.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <mutex>

namespace tenon::parallel_test {
namespace {

namespace fs = std::filesystem;

class Parallel : public ::testing::Test {
 protected:
  Parallel()
      : folder_(fs::path(::testing::TempDir()) /
                ("tenon_parallel_" + std::to_string(getpid()) + "_" +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(folder_);
  }
  ~Parallel() override { fs::remove_all(folder_); }
  std::string path(const std::string& file) const { return (folder_ / file).string(); }

 private:
  fs::path folder_;
};

// Extents that are not divisible by any number of ranks.
constexpr const char* kMlp = R"(graph mlp (x: f32[N, 13]) {
  w1 = constant f32[13, 17] normal(seed = 1, mean = 0.0, deviation = 0.3)
  b1 = constant f32[17] splat 0.0
  w2 = constant f32[17, 3] normal(seed = 2, mean = 0.0, deviation = 0.3)
  b2 = constant f32[3] splat 0.0
  a = matmul(x, w1)
  b = add(a, b1)
  c = tanh(b)
  d, mask = dropout(c)
  e = matmul(d, w2)
  logits = add(e, b2)
  return logits
})";

constexpr const char* kConvolution = R"(graph net (x: f32[N, 2, 6, 6]) {
  w1 = constant f32[5, 2, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.3)
  scale = constant f32[5] splat 1.0
  bias = constant f32[5] splat 0.0
  mean = constant f32[5] splat 0.0
  variance = constant f32[5] splat 1.0
  w2 = constant f32[180, 3] normal(seed = 3, mean = 0.0, deviation = 0.1)
  a = conv(x, w1) {pads = [1, 1, 1, 1]}
  b = batch_norm(a, scale, bias, mean, variance)
  c = relu(b)
  d = reshape(c) {shape = [N, 180]}
  logits = matmul(d, w2)
  return logits
})";

constexpr const char* kAttention = R"(graph block (x: f32[N, 6, 8]) {
  norm.scale = constant f32[8] splat 1.0
  norm.bias = constant f32[8] splat 0.0
  query = constant f32[8, 8] normal(seed = 1, mean = 0.0, deviation = 0.4)
  key = constant f32[8, 8] normal(seed = 2, mean = 0.0, deviation = 0.4)
  worth = constant f32[8, 8] normal(seed = 3, mean = 0.0, deviation = 0.4)
  up = constant f32[8, 19] normal(seed = 4, mean = 0.0, deviation = 0.3)
  down = constant f32[19, 8] normal(seed = 5, mean = 0.0, deviation = 0.3)
  head = constant f32[8, 4] normal(seed = 6, mean = 0.0, deviation = 0.3)
  a = layer_norm(x, norm.scale, norm.bias)
  q = matmul(a, query)
  k = matmul(a, key)
  v = matmul(a, worth)
  kt = transpose(k) {perm = [0, 2, 1]}
  s = matmul(q, kt)
  p = softmax(s)
  o = matmul(p, v)
  h = add(x, o)
  m = matmul(h, up)
  g = gelu(m)
  n = matmul(g, down)
  y = add(h, n)
  pooled = reduce_mean(y) {axes = [1], keep_axes = false}
  logits = matmul(pooled, head)
  return logits
})";

train::TrainerOptions options_for(const std::string& optimizer) {
  train::TrainerOptions options;
  train::set_optimizer(options.train, optimizer);
  options.synthetic_samples = 120;
  options.batch_size = 24;
  options.epochs = 2;
  options.thread_count = 1;
  options.bucket_bytes = 600;  // several buckets, of several tensors
  return options;
}

train::TrainResult trained(const char* model, const train::TrainerOptions& options) {
  return train::Trainer(parse_graph(model, all_ops()), options).run();
}

// Trains on ranks that are threads; returns rank 0's result after comparing it with the other
// ranks'.
train::TrainResult trained_on(int size, const char* model, train::TrainerOptions options) {
  std::mutex mutex;
  std::vector<train::TrainResult> results(static_cast<std::size_t>(size));
  run_in_lockstep(size, [&](Communicator& ranks) {
    train::TrainerOptions mine = options;
    mine.ranks = &ranks;
    train::Trainer trainer(parse_graph(model, all_ops()), mine);
    trainer.check_ranks();
    train::TrainResult result = trainer.run();
    const std::scoped_lock lock(mutex);
    results[static_cast<std::size_t>(ranks.rank())] = std::move(result);
  });
  for (const train::TrainResult& other : results)
    EXPECT_TRUE(identical(other.model, results[0].model));
  return results[0];
}

void expect_same(const train::TrainResult& a, const train::TrainResult& b) {
  EXPECT_TRUE(identical(a.model, b.model));
  ASSERT_EQ(a.curve.size(), b.curve.size());
  for (std::size_t k = 0; k < a.curve.size(); ++k) {
    EXPECT_EQ(a.curve[k].loss, b.curve[k].loss);
    EXPECT_EQ(a.curve[k].accuracy, b.curve[k].accuracy);
  }
}

TEST_F(Parallel, RanksMatchOneRankWithEqualMicroBatches) {
  const std::pair<const char*, int> cases[] = {{kMlp, 2}, {kConvolution, 4}, {kAttention, 3}};
  for (const auto& [model, size] : cases) {
    train::TrainerOptions options = options_for("adamw,lr=0.01,weight_decay=0.01");
    options.micro_batches = size;
    expect_same(trained_on(size, model, options), trained(model, options));
  }
}

// Each of fewer ranks than micro-batches runs several in sequence.
TEST_F(Parallel, ResultDependsOnMicroBatchesNotRanks) {
  train::TrainerOptions options = options_for("momentum,lr=0.05,clip=1");
  options.micro_batches = 12;
  const train::TrainResult alone = trained(kMlp, options);
  for (const int size : {2, 6}) expect_same(trained_on(size, kMlp, options), alone);
  options.micro_batches = 6;
  EXPECT_FALSE(identical(trained(kMlp, options).model, alone.model));  // other masks, other sums
}

// Every ZeRO stage on the smallest network, stage 3 on the others.
TEST_F(Parallel, ZeroStagesAreBitIdentical) {
  for (const auto& [model, size] :
       {std::pair{kConvolution, 4}, std::pair{kAttention, 2}, std::pair{kMlp, 3}}) {
    train::TrainerOptions options = options_for("adam,lr=0.01,weight_decay=0.01");
    options.micro_batches = 2 * size;
    options.epochs = 1;
    const train::TrainResult whole = trained(model, options);
    for (const std::int64_t fewest : {1, 100}) {  // uneven extents; only some tensors are sharded
      options.train.fewest_split = fewest;
      for (const train::RankSplit split :
           {train::RankSplit::Moments, train::RankSplit::Gradients, train::RankSplit::Parameters}) {
        const bool splits_most = split == train::RankSplit::Parameters ||
                                 (split == train::RankSplit::Gradients && fewest == 1);
        if (model != kMlp && !splits_most) continue;
        options.split = split;
        SCOPED_TRACE(concat(size, " ranks, split ", static_cast<int>(split), " from ", fewest));
        expect_same(trained_on(size, model, options), whole);
      }
    }
  }
}

std::string deep_network(int layers) {
  std::string text = "graph deep (x: f32[N, 64]) {\n", value = "x";
  for (int k = 0; k < layers; ++k) {
    text += concat("  w", k, " = constant f32[64, 64] normal(seed = ", k,
                   ", mean = 0.0, deviation = 0.1)\n");
    text += concat("  p", k, " = matmul(", value, ", w", k, ")\n  h", k, " = tanh(p", k, ")\n");
    value = concat("h", k);
  }
  return concat(text, "  return ", value, "\n}");
}

// With ZeRO-3, each rank of a deep network holds a quarter of the states, and only a few gradients
// and unsharded parameters at a time.
TEST_F(Parallel, ZeroStagesReduceMemory) {
  constexpr int kLayers = 24;
  const std::string text = deep_network(kLayers);
  constexpr std::uint64_t kWeights = kLayers * 64 * 64 * 4;
  const auto needs_of = [&](train::RankSplit split) {
    distributed::RankNeeds needs;
    run_in_lockstep(4, [&](Communicator& ranks) {
      train::TrainerOptions options = options_for("adam,lr=0.001");
      options.split = split;
      options.ranks = &ranks;
      const train::Trainer trainer(parse_graph(text, all_ops()), options);
      if (ranks.rank() == 0) needs = trainer.session().needs();
    });
    return needs;
  };
  const distributed::RankNeeds whole = needs_of(train::RankSplit::Nothing),
                               moments = needs_of(train::RankSplit::Moments),
                               gradients = needs_of(train::RankSplit::Gradients),
                               parameters = needs_of(train::RankSplit::Parameters);
  EXPECT_GE(whole.states, 2 * 3 * kWeights);
  // Shards of parameters are views of the unsharded buffers.
  EXPECT_LT(moments.states, 2 * kWeights + 2 * 2 * kWeights / 4 + 4096);
  EXPECT_EQ(gradients.states, moments.states);
  EXPECT_LT(gradients.exchanged + kWeights / 2, moments.exchanged);
  EXPECT_LT(parameters.states, 2 * 3 * kWeights / 4 + 4096);
  EXPECT_LT(parameters.exchanged, gradients.exchanged + kWeights / 2);
}

TEST_F(Parallel, ResumesOnAnotherNumberOfRanks) {
  train::TrainerOptions options = options_for("adam,lr=0.01");
  options.micro_batches = 12;
  const train::TrainResult whole = trained(kConvolution, options);
  options.checkpoint = path("run");
  options.micro_batches = 12;
  options.train.fewest_split = 1;
  // Four ranks with ZeRO-3, then three, then one, then two with ZeRO-1.
  const auto resumed = [&](int size, std::int64_t steps, train::RankSplit split,
                           std::int64_t micro_batches) {
    train::TrainerOptions next = options;
    next.max_steps = steps;
    next.split = split;
    next.micro_batches = micro_batches;
    next.resume = next.resume_if_any = true;
    return size == 1 ? trained(kConvolution, next) : trained_on(size, kConvolution, next);
  };
  resumed(4, 2, train::RankSplit::Parameters, 12);
  EXPECT_TRUE(fs::exists(path("run/checkpoint-2-3-of-4.safetensors")));
  resumed(3, 4, train::RankSplit::Nothing, 0);  // the checkpoint states the number of micro-batches
  EXPECT_FALSE(fs::exists(path("run/checkpoint-2-3-of-4.safetensors")));
  resumed(1, 6, train::RankSplit::Nothing, 0);
  EXPECT_FALSE(fs::exists(path("run/checkpoint.json")));
  const train::TrainResult last = resumed(2, 0, train::RankSplit::Moments, 0);
  EXPECT_TRUE(identical(last.model, whole.model));
}

TEST_F(Parallel, RefusesADamagedCheckpointShard) {
  train::TrainerOptions options = options_for("sgd,lr=0.1");
  options.max_steps = 2;
  options.checkpoint = path("run");
  trained_on(2, kMlp, options);
  options.resume = true;
  {
    std::fstream file(path("run/checkpoint-2-1-of-2.safetensors"),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-3, std::ios::end);
    file.put('\x55');
  }
  EXPECT_EQ(error_summary([&] { trained(kMlp, options); }),
            "the checkpoint is damaged: its bytes are not those that were written");
  fs::remove(path("run/checkpoint-2-1-of-2.safetensors"));
  EXPECT_NE(error_summary([&] { trained(kMlp, options); }), "no error");
  std::ofstream(path("run/checkpoint.json")) << "{\"format\": ";
  EXPECT_EQ(error_summary([&] { trained(kMlp, options); }),
            "the list of a checkpoint's files is damaged");
}

// Ranks agree on stopping: an interrupt of one rank stops all after the same step.
TEST_F(Parallel, InterruptStopsAllRanksAfterOneStep) {
  const train::TrainerOptions options = options_for("sgd,lr=0.1");
  std::vector<std::int64_t> steps(3);
  run_in_lockstep(3, [&](Communicator& ranks) {
    train::TrainerOptions mine = options;
    mine.ranks = &ranks;
    train::Trainer trainer(parse_graph(kMlp, all_ops()), mine);
    int count = 0;
    trainer.should_stop = [&] { return ranks.rank() == 1 && ++count == 3; };
    const train::TrainResult result = trainer.run();
    EXPECT_TRUE(result.was_stopped);
    steps[static_cast<std::size_t>(ranks.rank())] = result.steps;
  });
  EXPECT_EQ(steps, (std::vector<std::int64_t>{3, 3, 3}));
}

TEST_F(Parallel, RefusesRanksWithDifferentOptions) {
  const auto differing = [&](const std::function<void(train::TrainerOptions&)>& change) {
    return error_summary([&] {
      run_in_lockstep(2, [&](Communicator& ranks) {
        train::TrainerOptions mine = options_for("sgd,lr=0.1");
        mine.ranks = &ranks;
        if (ranks.rank() == 1) change(mine);
        train::Trainer(parse_graph(kMlp, all_ops()), mine).check_ranks();
      });
    });
  };
  EXPECT_EQ(differing([](train::TrainerOptions&) {}), "no error");
  EXPECT_EQ(
      differing([](train::TrainerOptions& o) { train::set_optimizer(o.train, "sgd,lr=0.2"); }),
      "rank 1 has another model or options than rank 0");
  EXPECT_EQ(differing([](train::TrainerOptions& o) { o.synthetic_samples = 96; }),
            "rank 1 has another data than rank 0");
}

// Four heads, extents divisible by four ranks.
constexpr const char* kBlock = R"(graph block (x: f32[N, 6, 16]) {
  scale = constant f32[16] splat 1.0
  bias = constant f32[16] splat 0.0
  query = constant f32[16, 16] normal(seed = 1, mean = 0.0, deviation = 0.3)
  key = constant f32[16, 16] normal(seed = 2, mean = 0.0, deviation = 0.3)
  worth = constant f32[16, 16] normal(seed = 3, mean = 0.0, deviation = 0.3)
  out = constant f32[16, 16] normal(seed = 7, mean = 0.0, deviation = 0.3)
  up = constant f32[16, 32] normal(seed = 4, mean = 0.0, deviation = 0.3)
  down = constant f32[32, 16] normal(seed = 5, mean = 0.0, deviation = 0.3)
  head = constant f32[16, 4] normal(seed = 6, mean = 0.0, deviation = 0.3)
  a = layer_norm(x, scale, bias)
  q = matmul(a, query)
  k = matmul(a, key)
  v = matmul(a, worth)
  q4 = reshape(q) {shape = [N, 6, 4, 4]}
  k4 = reshape(k) {shape = [N, 6, 4, 4]}
  v4 = reshape(v) {shape = [N, 6, 4, 4]}
  qh = transpose(q4) {perm = [0, 2, 1, 3]}
  kh = transpose(k4) {perm = [0, 2, 3, 1]}
  vh = transpose(v4) {perm = [0, 2, 1, 3]}
  s = matmul(qh, kh)
  p = softmax(s)
  o = matmul(p, vh)
  ot = transpose(o) {perm = [0, 2, 1, 3]}
  o3 = reshape(ot) {shape = [N, 6, 16]}
  oo = matmul(o3, out)
  h = add(x, oo)
  m = matmul(h, up)
  g = gelu(m)
  n = matmul(g, down)
  y = add(h, n)
  pooled = reduce_mean(y) {axes = [1], keep_axes = false}
  logits = matmul(pooled, head)
  return logits
})";

void expect_near(const train::TrainResult& a, const train::TrainResult& b) {
  for (NodeId id : a.model.nodes_in_order()) {
    const ValueId value = a.model.node(id).results.front();
    const Constant* mine = a.model.constant_of(value);
    if (mine == nullptr) continue;
    const Constant* other = b.model.constant_of(b.model.find(a.model.value(value).name));
    ASSERT_NE(other, nullptr);
    const std::vector<double> x = mine->materialise().reals(), y = other->materialise().reals();
    ASSERT_EQ(x.size(), y.size());
    for (std::size_t k = 0; k < x.size(); ++k)
      ASSERT_NEAR(x[k], y[k], 1e-5) << a.model.value(value).name << " " << k;
  }
}

// Tensor-parallel training matches one rank up to rounding: alone, in two data-parallel groups, and
// with several micro-batches per group.
TEST_F(Parallel, TensorParallelMatchesOneRank) {
  struct Case {
    const char* model;
    int ranks;
    std::int64_t tensor, micro_batches;
  };
  for (const Case& one :
       {Case{kBlock, 2, 2, 1}, Case{kBlock, 4, 2, 4}, Case{kConvolution, 2, 2, 1}}) {
    train::TrainerOptions options = options_for("sgd,lr=0.05");
    options.micro_batches = one.micro_batches;
    options.max_steps = 4;
    const train::TrainResult whole = trained(one.model, options);
    options.tensor_ranks = one.tensor;
    const train::TrainResult micro_batches = trained_on(one.ranks, one.model, options);
    expect_near(micro_batches, whole);
    ASSERT_EQ(micro_batches.curve.size(), whole.curve.size());
    for (std::size_t k = 0; k < micro_batches.curve.size(); ++k)
      EXPECT_NEAR(micro_batches.curve[k].loss, whole.curve[k].loss, 1e-5);
  }
}

// Checkpoints hold unsharded tensors, so that a run may resume with another degree of tensor
// parallelism.
TEST_F(Parallel, ResumesWithAnotherTensorParallelDegree) {
  train::TrainerOptions options = options_for("adam,lr=0.01");
  options.micro_batches = 1;
  options.max_steps = 3;
  const train::TrainResult whole = trained(kBlock, options);
  options.checkpoint = path("run");
  options.resume = options.resume_if_any = true;
  const auto resumed = [&](int ranks, std::int64_t tensor, std::int64_t steps) {
    train::TrainerOptions next = options;
    next.max_steps = steps;
    next.tensor_ranks = tensor;
    return ranks == 1 ? trained(kBlock, next) : trained_on(ranks, kBlock, next);
  };
  resumed(2, 2, 1);
  resumed(1, 1, 2);
  expect_near(resumed(2, 2, 3), whole);
}

// A sufficient budget changes no bit; an insufficient one is refused with the smallest sufficient
// one.
TEST_F(Parallel, KeepsABudgetPerRank) {
  train::TrainerOptions options = options_for("adam,lr=0.01");
  options.micro_batches = 2;
  const std::string deep = deep_network(12);
  const train::TrainResult plain = trained(deep.c_str(), options);
  options.budget.budget = "100%";
  expect_same(trained_on(2, deep.c_str(), options), plain);
  options.budget.budget = "3KB";
  const std::string text = error_text([&] { trained_on(2, deep.c_str(), options); });
  EXPECT_NE(text.find("a step does not fit into a rank's memory"), std::string::npos) << text;
  EXPECT_NE(text.find("--split-states=parameters keeps 1/2 of them on each"), std::string::npos)
      << text;
}

// Activations exceed the parameters of a layer by far: within a fraction of them, steps are
// recomputed.
TEST_F(Parallel, RecomputesWithinABudget) {
  train::TrainerOptions options = options_for("adam,lr=0.01");
  options.micro_batches = 2;
  options.batch_size = 120;
  options.synthetic_samples = 240;
  const std::string deep = deep_network(10);
  const train::TrainResult plain = trained(deep.c_str(), options);
  const auto arena_of = [&](const std::string& budget) {
    std::pair<std::uint64_t, std::size_t> found;  // and the number of steps
    run_in_lockstep(2, [&](Communicator& ranks) {
      train::TrainerOptions mine = options;
      mine.budget.budget = budget;
      mine.ranks = &ranks;
      const train::Trainer trainer(parse_graph(deep, all_ops()), mine);
      if (ranks.rank() == 0)
        found = {trainer.session().needs().arena, trainer.session().program().steps.size()};
    });
    return found;
  };
  const auto [whole_bytes, whole_steps] = arena_of("");
  const auto [bytes, steps] = arena_of("60%");
  EXPECT_LE(bytes, whole_bytes * 6 / 10);
  EXPECT_GT(steps, whole_steps);
  options.budget.budget = "60%";
  expect_same(trained_on(2, deep.c_str(), options), plain);
}

TEST(RankBudget, SuggestsASufficientBudget) {
  const distributed::RankShares shares{4, 4, 8, false};
  distributed::require_fits({100, 100, 800}, 1000, shares);
  EXPECT_EQ(error_text([&] {
              distributed::require_fits({100, 100, 1600}, 1000, shares);
            }),
            "a step does not fit into a rank's memory\n"
            "  expected  at most 1000 B\n"
            "  got       1.76 KiB: 100 B states, 100 B exchanged between ranks, 1.56 KiB "
            "arena of 8 samples\n"
            "  hint      --batch=16 would fit, 4 samples a part; or --budget=1000, which runs "
            "steps again");
  EXPECT_NE(error_text([&] {
              distributed::require_fits({900, 300, 1600}, 1000, {4, 4, 8, true});
            }).find("more than 5 ranks"),
            std::string::npos);
}

TEST(Windows, ShareMemoryBetweenIntervals) {
  EXPECT_EQ(distributed::intervals_of({3, 5, 40, 41}, 2, 10).size(), 2U);
  EXPECT_EQ(distributed::intervals_of({3, 5, 40, 41}, 2, 10)[1].begin, 38U);
  EXPECT_EQ(distributed::intervals_of({1}, 6, 10)[0].begin, 0U);
  const std::vector<distributed::WindowedValue> values = {
      {100, {{0, 5}, {20, 25}}}, {100, {{6, 19}}}, {50, {{4, 7}}}, {100, {{24, 30}}}};
  const distributed::WindowPlan plan = distributed::place_windows(values, 64);
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
  EXPECT_NE(plan.offsets[0], plan.offsets[3]);
  for (std::size_t a = 0; a < values.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const bool overlap = plan.offsets[a] < plan.offsets[b] + values[b].bytes &&
                           plan.offsets[b] < plan.offsets[a] + values[a].bytes;
      EXPECT_FALSE(overlap && distributed::are_together(values[a], values[b])) << a << " and " << b;
    }
  }
  EXPECT_EQ(plan.bytes, 228U);
}

TEST_F(Parallel, ReportsIndivisibleExtents) {
  train::TrainerOptions options = options_for("sgd,lr=0.1");
  options.micro_batches = 5;
  EXPECT_EQ(error_summary([&] { trained(kMlp, options); }),
            "the batch size is not a multiple of the number of micro-batches");
  options.micro_batches = 4;
  EXPECT_EQ(error_summary([&] { trained_on(3, kMlp, options); }),
            "the number of micro-batches is not a multiple of the number of ranks");
  options.micro_batches = 2;
  options.split = train::RankSplit::Moments;
  train::set_optimizer(options.train, "lamb,lr=0.1");
  EXPECT_EQ(error_summary([&] { trained_on(2, kMlp, options); }),
            "states cannot be split over ranks with these options");
  options.split = train::RankSplit::Nothing;
  options.micro_batches = 1;
  options.tensor_ranks = 2;
  EXPECT_EQ(error_summary([&] { trained_on(3, kBlock, options); }),
            "the number of ranks is not a multiple of the tensor-parallel group size");
  EXPECT_EQ(error_summary([] { distributed::parse_mesh("tensor:2", 3); }),
            "another number of ranks was started than shares the work");
  EXPECT_EQ(error_summary([] { distributed::parse_mesh("pipeline:2"); }),
            "ranks cannot share out 'pipeline:2'");
  EXPECT_EQ(distributed::parse_mesh("data,tensor:2", 6).data, 3);
}

// The reference evaluator runs the graph of a step on all ranks at once, including collectives.
TEST_F(Parallel, MatchesTheReference) {
  passes::TrainOptions options;
  options.micro_batches = 3;
  options.optimizer.kind = "sgd";
  options.schedule.rate = 0.1;
  const passes::StatefulGraph step =
      passes::train(train::with_batch(parse_graph(kConvolution, all_ops()), 4), options);
  train::Session session(
      passes::train(train::with_batch(parse_graph(kConvolution, all_ops()), 4), options),
      {.thread_count = 1}, train::SessionRanks{nullptr, 3});
  std::vector<std::vector<Tensor>> micro_batches;
  for (std::uint64_t k = 0; k < 3; ++k) {
    micro_batches.push_back(
        {Constant::normal(DType::F32, {4, 2, 6, 6}, 10 + k, 0, 1).materialise(),
         Tensor::of<std::int64_t>(DType::I64, {4}, {0, 1, 2, static_cast<std::int64_t>(k)})});
  }
  const std::vector<Tensor> outputs = session.run_micro_batches(micro_batches);
  run_in_lockstep(3, [&](Communicator& ranks) {
    std::vector<Datum> inputs(step.graph.inputs().size());
    const std::vector<std::size_t> data = step.data_inputs();
    for (std::size_t k = 0; k < data.size(); ++k)
      inputs[data[k]] = micro_batches[static_cast<std::size_t>(ranks.rank())][k];
    for (const passes::State& state : step.states)
      inputs[state.input] = state.initial.materialise();
    reference::EvaluateOptions reference_options;
    reference_options.communicator = &ranks;
    const std::vector<Datum> made = reference::evaluate(step.graph, inputs, reference_options);
    EXPECT_NEAR(made[0].tensor().real_at(0), outputs[0].real_at(0), 1e-5);
    const train::States states = session.states();
    for (std::size_t k = 0; k < step.states.size(); ++k) {
      const std::vector<double> expected = made[step.states[k].output].tensor().reals();
      const std::vector<double> found = states[k].second.reals();
      ASSERT_EQ(expected.size(), found.size());
      for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5);
    }
  });
}

// A value that only later stages read is computed there; a constant is placed at its reader.
TEST(Stages, CutAtCollectives) {
  const Graph graph = parse_graph(R"(graph (x: f32[4], w: f32[4]) {
    two = constant f32[] 2.0
    a = mul(x, two)
    s = all_reduce(a)
    decay = mul(w, two)
    t = add(s, decay)
    g = all_gather(t) {ranks = 2}
    u = relu(g)
    return u
  })",
                                  all_ops());
  const std::vector<distributed::StepStage> stages = distributed::cut_at_collectives(graph);
  ASSERT_EQ(stages.size(), 3U);
  EXPECT_EQ(print(stages[0].graph), print(parse_graph(R"(graph (x: f32[4]) {
    two = constant f32[] 2.0
    a = mul(x, two)
    return a
  })",
                                                      all_ops())));
  EXPECT_EQ(print(stages[1].graph), print(parse_graph(R"(graph (w: f32[4], s: f32[4]) {
    two = constant f32[] 2.0
    decay = mul(w, two)
    t = add(s, decay)
    return t
  })",
                                                      all_ops())));
  EXPECT_EQ(stages[1].collectives.size(), 1U);
  EXPECT_EQ(stages[2].graph.node_count(), 1U);
}

}  // namespace
}  // namespace tenon::parallel_test
