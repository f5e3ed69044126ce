#include "frontends/numpy/npz.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "tenon/builder.h"
#include "testing/random.h"
#include "train/curve.h"
#include "train/options.h"
#include "train/trainer.h"
#include "unit/driver/order_transformer.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <optional>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TENON_HAS_SANITIZER true
#else
#define TENON_HAS_SANITIZER false
#endif

namespace tenon::training_test {
namespace {

namespace fs = std::filesystem;

// Fixture with a temporary folder, removed after the test.
class Training : public ::testing::Test {
 protected:
  Training()
      : folder_(fs::path(::testing::TempDir()) /
                ("tenon_training_" + std::to_string(getpid()) + "_" + name())) {
    fs::create_directories(folder_);
  }
  ~Training() override { fs::remove_all(folder_); }
  std::string path(const std::string& file) const { return (folder_ / file).string(); }

 private:
  static std::string name() {
    return ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  fs::path folder_;
};

// Writes images of 8 by 8 with a horizontal line, a vertical line or a square in noise.
void write_shapes(const std::string& path, std::int64_t count, std::uint64_t seed) {
  Tensor x(DType::F32, {count, 1, 8, 8}), target(DType::I64, {count});
  testing::Random random(seed);
  for (std::int64_t k = 0; k < count; ++k) {
    const auto shape = static_cast<std::int64_t>(random.below(3));
    const auto at = static_cast<std::int64_t>(random.below(5)),
               left = static_cast<std::int64_t>(random.below(5));
    for (std::int64_t i = 0; i < 8; ++i) {
      for (std::int64_t j = 0; j < 8; ++j) {
        const bool is_inside = shape == 0   ? i == at
                               : shape == 1 ? j == at
                                            : i >= at && i < at + 3 && j >= left && j < left + 3;
        x.set_real((k * 8 + i) * 8 + j, (is_inside ? 1.0 : 0.0) + 0.3 * (random.real() - 0.5));
      }
    }
    target.set_integer(k, shape);
  }
  frontends::numpy::write_npz_file({{"x", x}, {"target", target}}, path);
}

Graph small_cnn() {
  Builder b("cnn");
  Var x = b.input("x", "f32[N, 1, 8, 8]");
  const std::vector<Attr> pads = {{"pads", Attr::Integers{1, 1, 1, 1}}};
  x = b.call("conv",
             {x, b.normal("conv1.w", "f32[8, 1, 3, 3]", 1, 0.4),
              b.constant("f32[8] splat 0.0", "conv1.b")},
             pads);
  x = b.call(
      "batch_norm",
      {x, b.constant("f32[8] splat 1.0", "bn.scale"), b.constant("f32[8] splat 0.0", "bn.bias"),
       b.constant("f32[8] splat 0.0", "bn.mean"), b.constant("f32[8] splat 1.0", "bn.variance")});
  x = b.call("relu", {x});
  x = b.call("max_pool", {x},
             {{"kernel_shape", Attr::Integers{2, 2}}, {"strides", Attr::Integers{2, 2}}});
  x = b.call("conv",
             {x, b.normal("conv2.w", "f32[16, 8, 3, 3]", 2, 0.17),
              b.constant("f32[16] splat 0.0", "conv2.b")},
             pads);
  x = b.call("relu", {x});
  x = b.call("reduce_mean", {x}, {{"axes", Attr::Integers{2, 3}}, {"keep_axes", false}});
  x = b.call("matmul", {x, b.normal("fc.w", "f32[16, 3]", 3, 0.3)}) +
      b.constant("f32[3] splat 0.0", "fc.b");
  b.output(x, "logits");
  return b.take();
}

train::TrainerOptions cnn_options(const std::string& data) {
  train::TrainerOptions options;
  train::set_optimizer(options.train, "adam,lr=0.01");
  options.data = "@" + data;
  options.batch_size = 32;
  options.epochs = 6;
  options.thread_count = 1;
  return options;
}

void expect_same(const Graph& a, const Graph& b) { EXPECT_TRUE(identical(a, b)); }

TEST_F(Training, ShapesTaskIsBitIdenticalInAnyMode) {
  write_shapes(path("shapes.npz"), 640, 7);
  const train::TrainerOptions options = cnn_options(path("shapes.npz"));
  train::Trainer plain(small_cnn(), options);
  const train::TrainResult learnt = plain.run();
  ASSERT_TRUE(learnt.validation.has_value());
  EXPECT_GT(learnt.validation->accuracy, 0.97);

  train::TrainerOptions on_two = options;
  on_two.thread_count = 2;
  expect_same(train::Trainer(small_cnn(), on_two).run().model, learnt.model);

  // Stopped in the middle of an epoch and resumed.
  train::TrainerOptions in_micro_batches = options;
  in_micro_batches.checkpoint = path("checkpoints");
  train::Trainer first(small_cnn(), in_micro_batches);
  std::int64_t count = 0;
  first.should_stop = [&] { return ++count == 41; };
  const train::TrainResult stopped = first.run();
  EXPECT_TRUE(stopped.was_stopped);
  EXPECT_EQ(stopped.steps, 41);
  in_micro_batches.resume = true;
  train::Trainer second(small_cnn(), in_micro_batches);
  EXPECT_EQ(second.note(), "resumed at step 41");
  const train::TrainResult resumed = second.run();
  expect_same(resumed.model, learnt.model);
  EXPECT_NE(train::curve_svg(resumed.curve, "a < b", true).find("a &lt; b"), std::string::npos);

  in_micro_batches.seed = 2;
  EXPECT_NE(train::Trainer(small_cnn(), in_micro_batches).note().find("goes another way"),
            std::string::npos);
}

// A kill between two checkpoints and between two points of the curve.
TEST_F(Training, CheckpointsAfterAKillAreBitIdentical) {
  train::TrainerOptions options = cnn_options("");
  options.data = "synthetic";
  options.synthetic_samples = 480;
  options.batch_size = 1;
  options.epochs = 3;
  options.max_steps = 1210;  // three steps for each point
  options.checkpoint_every = 500;
  options.checkpoint = path("whole");
  const std::vector<train::CurvePoint> curve = train::Trainer(small_cnn(), options).run().curve;
  ASSERT_GT(curve.size(), 400u);
  const auto content = [](const std::string& folder) {
    std::ifstream file(train::checkpoint_path(folder), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };

  struct Kill {};
  train::TrainerOptions killed = options;
  killed.checkpoint = path("killed");
  train::Trainer first(small_cnn(), killed);
  first.on_progress = [](const train::TrainProgress& progress) {
    if (progress.step == 508) throw Kill();
  };
  EXPECT_THROW(first.run(), Kill);
  EXPECT_EQ(train::read_checkpoint(killed.checkpoint).sums.count, 500 % 3);
  killed.resume = true;
  train::Trainer second(small_cnn(), killed);
  EXPECT_EQ(second.note(), "resumed at step 500");
  second.run();
  EXPECT_TRUE(content(killed.checkpoint) == content(options.checkpoint));
}

// Which of two marked tokens comes first?
TEST_F(Training, OrderTask) {
  const OrderedTokens data(3000, 3);
  frontends::numpy::write_npz_file({{"tokens", data.tokens}, {"target", data.target}},
                                   path("order.npz"));
  train::TrainerOptions options;
  train::set_optimizer(options.train, "adam,lr=3e-3,clip=1");
  train::set_schedule(options.train.schedule, "cosine,warm_up=50");
  options.data = "@" + path("order.npz");
  options.batch_size = 50;
  options.epochs = 8;
  const train::TrainResult learnt =
      train::Trainer(parse_graph(kOrderTransformer, all_ops()), options).run();
  ASSERT_TRUE(learnt.validation.has_value());
  EXPECT_GT(learnt.validation->accuracy, 0.97);
}

TEST_F(Training, ReportsInvalidData) {
  const auto text_for = [&](const std::vector<std::pair<std::string, Tensor>>& arrays) {
    frontends::numpy::write_npz_file(arrays, path("data.npz"));
    return error_summary([&] { train::Trainer(small_cnn(), cnn_options(path("data.npz"))); });
  };
  const Tensor x(DType::F32, {64, 1, 8, 8}), target(DType::I64, {64});
  EXPECT_EQ(text_for({{"x", x}}), "the data has no array 'target'");
  EXPECT_EQ(text_for({{"x", Tensor(DType::F32, {64, 1, 8, 9})}, {"target", target}}),
            "array 'x' does not fit the model");
  EXPECT_EQ(text_for({{"x", x}, {"target", Tensor(DType::F32, {64})}}),
            "array 'target' has the wrong element type");
  EXPECT_EQ(text_for({{"x", x}, {"target", Tensor(DType::I64, {60})}}),
            "the data has different numbers of samples");
  EXPECT_EQ(
      text_for({{"x", Tensor(DType::F32, {0, 1, 8, 8})}, {"target", Tensor(DType::I64, {0})}}),
      "the data has no samples");
  EXPECT_EQ(
      text_for({{"x", Tensor(DType::F32, {8, 1, 8, 8})}, {"target", Tensor(DType::I64, {8})}}),
      "the data has fewer samples than a batch");
  Tensor wrong = target;
  wrong.set_integer(17, 3);
  EXPECT_EQ(text_for({{"x", x}, {"target", wrong}}), "a label is no class of the model");
  train::TrainerOptions options = cnn_options(path("data.npz"));
  options.data = "data.npz";
  EXPECT_EQ(error_summary([&] { train::Trainer(small_cnn(), options); }),
            "cannot read the data's description");
  options.data = "synthetic";
  Graph of_two = passes::with_symbols(small_cnn(), {{"N", Dim(2)}});
  EXPECT_EQ(train::Trainer(of_two, options).step_count(),
            train::Trainer(small_cnn(), options).step_count());
}

// Resident anonymous memory of this process.
std::uint64_t own_memory_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8));
  }
  return 0;
}

// Samples at any offset of the archive and in a wider type than the model's are read batch by
// batch.
TEST_F(Training, StreamsSamplesFromTheFile) {
  constexpr std::int64_t count = 40'000;
  Builder b("mlp");
  const Var x = b.input("x", "f32[8, 64]");
  b.output(b.call("matmul", {x, b.normal("w", "f32[64, 5]", 1, 0.1)}), "y");
  const passes::StatefulGraph step = passes::evaluation(b.take(), {});
  Tensor samples(DType::F64, {count, 64}), target(DType::I64, {count});
  for (std::int64_t k = 0; k < count; ++k) {
    samples.set_real(k * 64 + 3, static_cast<double>(k));
    target.set_integer(k, k % 5);
  }
  for (const char* other : {"a", "ab", "abc", "abcd"}) {  // shifts the following data by a byte
    const std::string file = path(concat(other, ".npz"));
    frontends::numpy::write_npz_file(
        {{other, Tensor(DType::U8, {1})}, {"x", samples}, {"target", target}}, file);
    const std::uint64_t before = own_memory_kilobytes();
    const train::DataSet data(file, step, {{"x", 0}, {"target", 0}}, {5, std::nullopt});
    const std::vector<std::int64_t> order = train::shuffled(count, 1, 0);
    const std::vector<Tensor> batch = data.batch(order, 100, 8);
    if (!TENON_HAS_SANITIZER) {
      EXPECT_LT(own_memory_kilobytes(), before + 8'000) << "of 20,480 kB";
    }
    ASSERT_EQ(batch[0].dtype(), DType::F32);
    for (std::int64_t k = 0; k < 8; ++k) {
      const auto sample = order[static_cast<std::size_t>(100 + k)];
      EXPECT_EQ(batch[0].real_at(k * 64 + 3), static_cast<double>(sample));
      EXPECT_EQ(batch[1].integer_at(k), sample % 5);
    }
  }
}

TEST_F(Training, CtcTask) {
  constexpr std::int64_t kSamples = 512, kSteps = 12, kClassCount = 4, kLabels = 3;
  Tensor x(DType::F32, {kSamples, kSteps, kClassCount}), target(DType::I64, {kSamples, kLabels});
  testing::Random random(3);
  for (std::int64_t k = 0; k < x.size(); ++k)
    x.set_real(k, 0.1 * static_cast<double>(random.below(10)));
  for (std::int64_t sample = 0; sample < kSamples; ++sample) {
    const auto count = static_cast<std::int64_t>(random.below(kLabels + 1));
    for (std::int64_t k = 0; k < kLabels; ++k) {
      const auto label = static_cast<std::int64_t>(1 + random.below(kClassCount - 1));
      target.set_integer(sample * kLabels + k, k < count ? label : -1);
      const std::int64_t step = 4 * k + static_cast<std::int64_t>(random.below(3));
      if (k < count) x.set_real((sample * kSteps + step) * kClassCount + label, 3);
    }
  }
  frontends::numpy::write_npz_file({{"x", x}, {"target", target}}, path("sequences.npz"));
  Builder b("sequences");
  const Var in = b.input("x", "f32[N, 12, 4]");
  const Var hidden = b.call("relu", {b.call("matmul", {in, b.normal("w1", "f32[4, 16]", 1, 0.5)}) +
                                     b.constant("f32[16] splat 0.0", "b1")});
  b.output(b.call("matmul", {hidden, b.normal("w2", "f32[16, 4]", 2, 0.3)}) +
               b.constant("f32[4] splat 0.0", "b2"),
           "scores");
  const Graph model = b.take();
  train::TrainerOptions options = cnn_options(path("sequences.npz"));
  train::set_loss(options.train.loss, "ctc,labels=3");
  train::set_optimizer(options.train, "adam,lr=0.02");
  options.epochs = 30;
  const train::TrainResult learnt = train::Trainer(model, options).run();
  ASSERT_TRUE(learnt.validation.has_value());
  EXPECT_LT(learnt.validation->loss, 0.05);

  const auto text_for = [&](std::int64_t position, std::int64_t label) {
    Tensor wrong = target;
    for (std::int64_t k = 0; k < 3; ++k) wrong.set_integer(k, 1);
    wrong.set_integer(position, label);
    frontends::numpy::write_npz_file({{"x", x}, {"target", wrong}}, path("data.npz"));
    train::TrainerOptions other = options;
    other.data = "@" + path("data.npz");
    return error_summary([&] { train::Trainer(model, other); });
  };
  const std::string wrong_label = "labels of a sequence are classes, then negative numbers";
  EXPECT_EQ(text_for(1, 1), "no error");
  EXPECT_EQ(text_for(1, 4), wrong_label);
  EXPECT_EQ(text_for(1, 0), wrong_label);   // the blank
  EXPECT_EQ(text_for(1, -1), wrong_label);  // one that is left out between two
  Builder few("few");
  few.output(
      few.call("matmul", {few.input("x", "f32[N, 4, 4]"), few.normal("w", "f32[4, 4]", 1, 1)}),
      "y");
  Tensor alike(DType::I64, {64, 3});
  for (std::int64_t k = 0; k < alike.size(); ++k) alike.set_integer(k, 2);
  frontends::numpy::write_npz_file({{"x", Tensor(DType::F32, {64, 4, 4})}, {"target", alike}},
                                   path("data.npz"));
  options.data = "@" + path("data.npz");
  EXPECT_EQ(error_summary([&] { train::Trainer(few.take(), options); }),
            "a sample has more labels than the model has steps for");
}

TEST_F(Training, RefusesDamagedAndForeignCheckpoints) {
  train::TrainerOptions options = cnn_options("");
  options.data = "synthetic";
  options.synthetic_samples = 128;
  options.max_steps = 2;
  options.checkpoint = path("checkpoints");
  train::Trainer(small_cnn(), options).run();
  const std::string file = train::checkpoint_path(options.checkpoint);
  const auto summary = [&] { return error_summary([&] { train::Trainer(small_cnn(), options); }); };
  EXPECT_EQ(summary(),
            "the folder has the checkpoint of another run, which this one would overwrite");
  options.resume = true;
  EXPECT_EQ(summary(), "no error");
  train::set_optimizer(options.train, "momentum");
  EXPECT_EQ(summary(), "state 'conv1.w/velocity' is missing");
  train::set_optimizer(options.train, "adam,lr=0.01");
  {
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(-200, std::ios::end);
    bytes.put('\x55');
  }
  EXPECT_EQ(summary(), "the checkpoint is damaged: its bytes are not those that were written");
  fs::resize_file(file, fs::file_size(file) - 8);
  EXPECT_EQ(summary(), "the file ends before the tensor does: it was cut off or is damaged");
  fs::remove(file);
  EXPECT_EQ(summary(), "there is no checkpoint to resume from");
  options.checkpoint.clear();
  EXPECT_EQ(summary(), "no checkpoint to resume from");
}

// A full disk: the previous checkpoint stays intact.
TEST_F(Training, KeepsThePreviousCheckpointOnAFullDisk) {
  train::TrainerOptions options = cnn_options("");
  options.data = "synthetic";
  options.synthetic_samples = 128;
  options.max_steps = 2;
  options.checkpoint = path("checkpoints");
  train::Trainer(small_cnn(), options).run();
  const auto content = [&] {
    std::ifstream file(train::checkpoint_path(options.checkpoint), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string before = content();
  ASSERT_GT(before.size(), 4096u);
  options.max_steps = 4;
  options.resume = true;
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    const std::string text = error_text([&] { train::Trainer(small_cnn(), options).run(); });
    _exit(text.find("cannot write") != std::string::npos &&
                  text.find("too large") != std::string::npos
              ? 0
              : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(content(), before);
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(options.checkpoint))
    files += entry.is_regular_file();
  EXPECT_EQ(files, 1u);
}

TEST_F(Training, NamesTheNodeOfTheFirstNan) {
  Builder b("log");
  const Var x = b.input("x", "f32[N, 2]");
  const Var w = b.constant("f32[2] [-1, 1]", "w");
  b.set_node_name("the logarithm");
  const Var y = b.call("log", {x * w});
  b.output(y, "y");
  train::TrainerOptions options;
  train::set_loss(options.train.loss, "mse");
  options.batch_size = 4;
  options.synthetic_samples = 64;
  train::Trainer trainer(b.take(), options);
  const std::string text = error_text([&] { trainer.run(); });
  EXPECT_NE(text.find("the loss of step 1 is not finite"), std::string::npos) << text;
  EXPECT_NE(text.find("the logarithm"), std::string::npos) << text;
}

TEST(TrainingOptions, ParsesSettings) {
  passes::TrainOptions options;
  train::set_optimizer(options, "adamw,lr=3e-4,weight_decay=0.1,clip=1,loss_scale=auto");
  EXPECT_EQ(options.schedule.rate, 3e-4);
  EXPECT_EQ(options.optimizer.clip_norm, 1);
  EXPECT_LT(options.optimizer.loss_scale, 0);
  train::set_loss(options.loss,
                  "softmax_cross_entropy,axis=-1,ignore=-100,weights=1:2.5,reduction=sum");
  EXPECT_EQ(options.loss.class_weights, (std::vector<double>{1, 2.5}));
  EXPECT_EQ(options.loss.ignore_label, -100);
  EXPECT_EQ(error_summary([&] { train::set_optimizer(options, "adamm"); }),
            "no optimizer is called 'adamm'");
  EXPECT_EQ(error_summary([&] { train::set_optimizer(options, "adam,rl=1"); }),
            "the optimizer has no setting 'rl'");
  EXPECT_EQ(error_summary([&] { train::set_optimizer(options, "adam,lr=fast"); }),
            "'lr' of the optimizer cannot be 'fast'");
  EXPECT_EQ(error_summary([&] { train::set_schedule(options.schedule, "cosine,warm_up=-1"); }),
            "'warm_up' of the schedule cannot be '-1'");
}

}  // namespace
}  // namespace tenon::training_test
