#include "ir/text.h"
#include "ir/verify.h"
#include "ops/definition/registry.h"
#include "passes/train/train.h"
#include "reference/evaluate.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::train_test {
namespace {

// y = x·w, of which mse against a target has the gradient 2·x·(x·w - t)/3.
constexpr const char* kProduct = R"(graph (x: f64[3]) {
  w = constant f64[3] [0.5, -1, 2]
  y = mul(x, w)
  return y
}
)";

Tensor reals(std::vector<double> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return Tensor::of(DType::F64, {count}, values);
}

// Runs a step graph in the reference and carries its states from run to run.
class Steps {
 public:
  explicit Steps(passes::StatefulGraph step) : step_(std::move(step)) {
    verify(step_.graph);
    for (const passes::State& state : step_.states) values_.push_back(state.initial.materialise());
  }

  std::vector<Datum> run(const std::vector<Tensor>& batch) {
    std::vector<Datum> inputs(step_.graph.inputs().size());
    const std::vector<std::size_t> places = step_.data_inputs();
    for (std::size_t k = 0; k < places.size(); ++k) inputs[places[k]] = batch.at(k);
    for (std::size_t k = 0; k < values_.size(); ++k) inputs[step_.states[k].input] = values_[k];
    const std::vector<Datum> outputs = reference::evaluate(step_.graph, inputs);
    for (std::size_t k = 0; k < values_.size(); ++k)
      values_[k] = outputs[step_.states[k].output].tensor();
    std::vector<Datum> rest;
    for (std::size_t k : step_.data_outputs()) rest.push_back(outputs[k]);
    return rest;
  }

  const Tensor& state(std::string_view name) const {
    for (std::size_t k = 0; k < values_.size(); ++k) {
      if (step_.states[k].name == name) return values_[k];
    }
    throw std::runtime_error("no such state: " + std::string(name));
  }

 private:
  passes::StatefulGraph step_;
  std::vector<Tensor> values_;
};

passes::TrainOptions with(const std::string& optimizer) {
  passes::TrainOptions options;
  options.loss.kind = "mse";
  options.optimizer.kind = optimizer;
  options.schedule.rate = 0.1;
  return options;
}

using Vector = std::vector<double>;

const Vector kX = {1, 2, -1}, kTargets = {1, 1, 1};

Vector gradient_at(const Vector& w) {
  Vector g;
  for (std::size_t k = 0; k < w.size(); ++k)
    g.push_back(2 * kX[k] * (kX[k] * w[k] - kTargets[k]) / 3);
  return g;
}

double length(const Vector& v) {
  double total = 0;
  for (const double x : v) total += x * x;
  return std::sqrt(total);
}

// Expects three steps of an optimizer to match scalar code: `move` updates w by its gradient, at
// step 1, 2, 3.
template <class Move>
void expect_steps(const passes::TrainOptions& options, Move move) {
  Steps steps(passes::train(parse_graph(kProduct, all_ops()), options));
  Vector w = {0.5, -1, 2};
  for (int step = 1; step <= 3; ++step) {
    move(w, gradient_at(w), step);
    steps.run({reals(kX), reals(kTargets)});
    for (std::size_t k = 0; k < w.size(); ++k) {
      EXPECT_NEAR(steps.state("w").real_at(static_cast<std::int64_t>(k)), w[k], 1e-6)
          << "step " << step << ", element " << k;
    }
  }
}

TEST(Train, Sgd) {
  expect_steps(with("sgd"), [](Vector& w, const Vector& g, int) {
    for (std::size_t k = 0; k < w.size(); ++k) w[k] -= 0.1 * g[k];
  });
}

TEST(Train, WeightDecay) {
  passes::TrainOptions options = with("sgd");
  options.optimizer.weight_decay = 0.5;
  expect_steps(options, [](Vector& w, const Vector& g, int) {
    for (std::size_t k = 0; k < w.size(); ++k) w[k] -= 0.1 * (g[k] + 0.5 * w[k]);
  });
}

TEST(Train, Momentum) {
  for (const bool is_nesterov : {false, true}) {
    Vector v(3, 0.0);
    expect_steps(with(is_nesterov ? "nesterov" : "momentum"), [&](Vector& w, const Vector& g, int) {
      for (std::size_t k = 0; k < w.size(); ++k) {
        v[k] = 0.9 * v[k] + g[k];
        w[k] -= 0.1 * (is_nesterov ? g[k] + 0.9 * v[k] : v[k]);
      }
    });
  }
}

TEST(Train, AdagradAndRmsprop) {
  for (const bool is_adagrad : {false, true}) {
    Vector s(3, 0.0);
    expect_steps(with(is_adagrad ? "adagrad" : "rmsprop"), [&](Vector& w, const Vector& g, int) {
      for (std::size_t k = 0; k < w.size(); ++k) {
        s[k] = is_adagrad ? s[k] + g[k] * g[k] : 0.999 * s[k] + 0.001 * g[k] * g[k];
        w[k] -= 0.1 * g[k] / (std::sqrt(s[k]) + 1e-8);
      }
    });
  }
}

TEST(Train, AdamVariants) {
  for (const std::string kind : {"adam", "adamw", "lamb"}) {
    passes::TrainOptions options = with(kind);
    options.optimizer.weight_decay = 0.3;
    Vector m(3, 0.0), v(3, 0.0);
    expect_steps(options, [&](Vector& w, Vector g, int step) {
      Vector move(3);
      for (std::size_t k = 0; k < w.size(); ++k) {
        if (kind == "adam") g[k] += 0.3 * w[k];
        m[k] = 0.9 * m[k] + 0.1 * g[k];
        v[k] = 0.999 * v[k] + 0.001 * g[k] * g[k];
        move[k] = m[k] / (1 - std::pow(0.9, step)) /
                  (std::sqrt(v[k] / (1 - std::pow(0.999, step))) + 1e-8);
        if (kind != "adam") move[k] += 0.3 * w[k];
      }
      const double scale = kind == "lamb" ? length(w) / length(move) : 1;
      for (std::size_t k = 0; k < w.size(); ++k) w[k] -= 0.1 * scale * move[k];
    });
  }
}

TEST(Train, ClipsByGlobalNorm) {
  passes::TrainOptions options = with("sgd");
  options.optimizer.clip_norm = 0.5;
  expect_steps(options, [](Vector& w, const Vector& g, int) {
    const double factor = 0.5 / std::max(0.5, length(g));
    for (std::size_t k = 0; k < w.size(); ++k) w[k] -= 0.1 * factor * g[k];
  });
}

TEST(Train, LearningRateSchedule) {
  passes::TrainOptions options = with("sgd");
  options.schedule = {
      .kind = "step", .rate = 0.2, .warm_up = 2, .every = 2, .total = 1, .factor = 0.5, .floor = 0};
  const Vector steps = {0.1, 0.2, 0.1};  // half warm, warm, decayed by half
  expect_steps(options, [&](Vector& w, const Vector& g, int step) {
    for (std::size_t k = 0; k < w.size(); ++k)
      w[k] -= steps[static_cast<std::size_t>(step - 1)] * g[k];
  });
  options.schedule = {.kind = "cosine",
                      .rate = 0.2,
                      .warm_up = 0,
                      .every = 1,
                      .total = 2,
                      .factor = 0.1,
                      .floor = 0.25};
  const Vector wave = {0.2, 0.2 * 0.625, 0.2 * 0.25};
  expect_steps(options, [&](Vector& w, const Vector& g, int step) {
    for (std::size_t k = 0; k < w.size(); ++k)
      w[k] -= wave[static_cast<std::size_t>(step - 1)] * g[k];
  });
}

TEST(Train, LossScaling) {
  for (const double scale : {1024.0, -1.0}) {
    passes::TrainOptions options = with("sgd");
    options.optimizer.loss_scale = scale;
    expect_steps(options, [](Vector& w, const Vector& g, int) {
      for (std::size_t k = 0; k < w.size(); ++k) w[k] -= 0.1 * g[k];
    });
  }
}

TEST(Train, SkipsOverflowingSteps) {
  passes::TrainOptions options = with("momentum");
  options.optimizer.loss_scale = -1;
  Steps steps(passes::train(parse_graph(kProduct, all_ops()), options));
  steps.run({reals({1e200, 1, 1}), reals({1, 1, 1})});  // its gradient times the scale is infinite
  EXPECT_EQ(steps.state("w").reals(), (Vector{0.5, -1, 2}));
  EXPECT_EQ(steps.state("w/velocity").reals(), (Vector{0, 0, 0}));
  EXPECT_EQ(steps.state("train/loss_scale").real_at(0), 32768);
}

double loss_of(const passes::LossOptions& loss, const char* model,
               const std::vector<Tensor>& batch) {
  passes::TrainOptions options;
  options.loss = loss;
  Steps steps(passes::train(parse_graph(model, all_ops()), options));
  return steps.run(batch).front().tensor().real_at(0);
}

constexpr const char* kClasses = R"(graph (x: f64[2, 3]) {
  w = constant f64[3] [1, 1, 1]
  y = mul(x, w)
  p = softmax(y) {axis = 1}
  return p
}
)";

TEST(Train, CrossEntropy) {
  const Tensor x = Tensor::of(DType::F64, {2, 3}, Vector{1, 2, 3, 0.5, -1, 0});
  const Tensor target = Tensor::of_integers(std::vector<std::int64_t>{2, 1});
  const double a = std::log(std::exp(1) + std::exp(2) + std::exp(3)) - 3;
  const double b = std::log(std::exp(0.5) + std::exp(-1) + std::exp(0)) + 1;
  EXPECT_NEAR(loss_of({}, kClasses, {x, target}), (a + b) / 2, 1e-9);
  passes::LossOptions sum;
  sum.is_sum = true;
  EXPECT_NEAR(loss_of(sum, kClasses, {x, target}), a + b, 1e-9);
  passes::LossOptions weighted;
  weighted.class_weights = {1, 3, 2};
  EXPECT_NEAR(loss_of(weighted, kClasses, {x, target}), (2 * a + 3 * b) / 5, 1e-9);
  passes::LossOptions ignoring;
  ignoring.ignore_label = 1;
  EXPECT_NEAR(loss_of(ignoring, kClasses, {x, target}), a, 1e-9);
}

TEST(Train, OtherLosses) {
  const std::vector<Tensor> batch = {reals({1, 2, -1}), reals({0, 1, 1})};  // y = 0.5, -2, -2
  const auto each = [](double x, double t) {
    return std::max(x, 0.0) - x * t + std::log(1 + std::exp(-std::abs(x)));
  };
  passes::LossOptions loss;
  loss.kind = "sigmoid_cross_entropy";
  EXPECT_NEAR(loss_of(loss, kProduct, batch), (each(0.5, 0) + each(-2, 1) + each(-2, 1)) / 3, 1e-9);
  loss.kind = "huber";
  EXPECT_NEAR(loss_of(loss, kProduct, batch), (0.125 + 2.5 + 2.5) / 3, 1e-9);
}

// The probability that these class probabilities decode to `labels` after removal of blanks and
// repeats: the sum over all paths.
double likelihood(const std::vector<Vector>& steps, const std::vector<std::int64_t>& labels,
                  std::size_t blank) {
  const std::size_t classes = steps.front().size();
  std::size_t path_count = 1;
  for (std::size_t k = 0; k < steps.size(); ++k) path_count *= classes;
  double total = 0;
  for (std::size_t path = 0; path < path_count; ++path) {
    double likely = 1;
    std::vector<std::int64_t> read;
    std::size_t rest = path, before = blank;
    for (const Vector& step : steps) {
      const std::size_t taken = rest % classes;
      rest /= classes;
      likely *= step[taken];
      if (taken != blank && taken != before) read.push_back(static_cast<std::int64_t>(taken));
      before = taken;
    }
    if (read == labels) total += likely;
  }
  return total;
}

std::string sequence_model(const Vector& w, bool is_time_first) {
  std::string text = "graph (x: f64[" + std::string(is_time_first ? "5, 3" : "3, 5") +
                     ", 3]) {\n  w = constant f64[3] [";
  for (std::size_t k = 0; k < w.size(); ++k) text += (k > 0 ? ", " : "") + std::to_string(w[k]);
  return text + "]\n  y = mul(x, w)\n  p = softmax(y) {axis = 2}\n  return p\n}\n";
}

TEST(Train, CtcLoss) {
  constexpr std::size_t kSteps = 5, kClassCount = 3;
  const std::vector<std::vector<std::int64_t>> labels = {{1, 0}, {0, 0, 1}, {}};
  Tensor x(DType::F64, {3, 5, 3}), time_first(DType::F64, {5, 3, 3}), target(DType::I64, {3, 3});
  double mean = 0, sum = 0;
  for (std::size_t sample = 0; sample < labels.size(); ++sample) {
    std::vector<Vector> steps(kSteps, Vector(kClassCount));
    for (std::size_t step = 0; step < kSteps; ++step) {
      double total = 0;
      for (std::size_t c = 0; c < kClassCount; ++c) {
        const double score = std::sin(3.7 * static_cast<double>(sample * 15 + step * 3 + c)) * 2;
        x.set_real(static_cast<std::int64_t>((sample * kSteps + step) * 3 + c), score);
        time_first.set_real(static_cast<std::int64_t>((step * 3 + sample) * 3 + c), score);
        total += steps[step][c] = std::exp(score);
      }
      for (double& each : steps[step]) each /= total;
    }
    for (std::size_t k = 0; k < 3; ++k) {
      target.set_integer(static_cast<std::int64_t>(sample * 3 + k),
                         k < labels[sample].size() ? labels[sample][k] : -1);
    }
    const double loss = -std::log(likelihood(steps, labels[sample], 2));
    sum += loss;
    mean += loss / static_cast<double>(std::max<std::size_t>(1, labels[sample].size())) / 3;
  }
  passes::LossOptions loss;
  loss.kind = "ctc";
  loss.label_count = 3;
  loss.blank = 2;
  const Vector ones = {1, 1, 1};
  EXPECT_NEAR(loss_of(loss, sequence_model(ones, false).c_str(), {x, target}), mean, 1e-12);
  loss.time_axis = 0;
  EXPECT_NEAR(loss_of(loss, sequence_model(ones, true).c_str(), {time_first, target}), mean, 1e-12);
  loss.is_sum = true;
  EXPECT_NEAR(loss_of(loss, sequence_model(ones, true).c_str(), {time_first, target}), sum, 1e-12);
  loss.time_axis = 1;
  // The change of a weight by gradient descent is the slope of the loss.
  passes::TrainOptions options = with("sgd");
  options.loss = loss;
  Steps steps(passes::train(parse_graph(sequence_model(ones, false), all_ops()), options));
  steps.run({x, target});
  for (std::size_t k = 0; k < 3; ++k) {
    Vector less = ones, more = ones;
    less[k] -= 1e-4;
    more[k] += 1e-4;
    const double slope = (loss_of(loss, sequence_model(more, false).c_str(), {x, target}) -
                          loss_of(loss, sequence_model(less, false).c_str(), {x, target})) /
                         2e-4;
    EXPECT_NEAR((1 - steps.state("w").real_at(static_cast<std::int64_t>(k))) / 0.1, slope, 1e-6);
  }
  loss.blank = 3;
  EXPECT_EQ(error_summary([&] { loss_of(loss, sequence_model(ones, false).c_str(), {}); }),
            "ctc: the blank is no class of the model");
  loss.label_count = 0;
  EXPECT_EQ(error_summary([&] { loss_of(loss, sequence_model(ones, false).c_str(), {}); }),
            "ctc: how many labels a sample may have is to be said");
  EXPECT_EQ(error_summary([&] { loss_of(loss, kClasses, {}); }),
            "ctc: scores have the axes of samples, steps and classes");
}

// A concat before a convolution: the gradient is one convolution per operand of the concat, without
// a split.
TEST(Train, GradientOfConcatenatedImages) {
  constexpr const char* kJoined = R"(graph (x: f64[1, 2, 4, 4]) {
  v = constant f64[32, 2, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.3)
  u = constant f64[48, 2, 3, 3] normal(seed = 2, mean = 0.0, deviation = 0.3)
  w = constant f64[2, 80, 3, 3] normal(seed = 3, mean = 0.0, deviation = 0.3)
  a = conv(x, v) {pads = [1, 1, 1, 1]}
  b = conv(x, u) {pads = [1, 1, 1, 1]}
  c = concat(a, b) {axis = 1}
  y = conv(c, w) {pads = [1, 1, 1, 1]}
  return y
}
)";
  const passes::StatefulGraph step = passes::train(parse_graph(kJoined, all_ops()), with("sgd"));
  int splits = 0, products = 0, by_weights = 0;
  for (NodeId id : step.graph.nodes_in_order()) {
    splits += step.graph.op_name(id) == "split";
    products += step.graph.op_name(id) == "conv_transpose";
    by_weights += step.graph.op_name(id) == "conv_weight_gradient";
  }
  EXPECT_EQ(splits, 0);
  EXPECT_EQ(products, 2);
  EXPECT_EQ(by_weights, 4);
  // The gradients equal those of the separate halves: y = conv(a, w') + conv(b, w'').
  constexpr const char* kApart = R"(graph (x: f64[1, 2, 4, 4]) {
  v = constant f64[32, 2, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.3)
  u = constant f64[48, 2, 3, 3] normal(seed = 2, mean = 0.0, deviation = 0.3)
  w = constant f64[2, 80, 3, 3] normal(seed = 3, mean = 0.0, deviation = 0.3)
  first = slice(w) {starts = [0], ends = [32], axes = [1]}
  second = slice(w) {starts = [32], ends = [80], axes = [1]}
  a = conv(x, v) {pads = [1, 1, 1, 1]}
  b = conv(x, u) {pads = [1, 1, 1, 1]}
  d = conv(a, first) {pads = [1, 1, 1, 1]}
  e = conv(b, second) {pads = [1, 1, 1, 1]}
  y = add(d, e)
  return y
}
)";
  const Tensor x = Constant::normal(DType::F64, {1, 2, 4, 4}, 5, 0, 1).materialise();
  const Tensor target = Constant::normal(DType::F64, {1, 2, 4, 4}, 6, 0, 1).materialise();
  Steps joined(step), apart(passes::train(parse_graph(kApart, all_ops()), with("sgd")));
  joined.run({x, target});
  apart.run({x, target});
  for (const char* name : {"v", "u", "w"}) {
    const Tensor &left = joined.state(name), &right = apart.state(name);
    for (std::int64_t k = 0; k < left.size(); ++k)
      ASSERT_NEAR(left.real_at(k), right.real_at(k), 1e-12);
  }
}

TEST(Train, BatchNormStatistics) {
  constexpr const char* kNorm = R"(graph (x: f64[2, 1, 2]) {
  s = constant f64[1] [1]
  b = constant f64[1] [0]
  m = constant f64[1] [10]
  v = constant f64[1] [1]
  y = batch_norm(x, s, b, m, v)
  return y
}
)";
  Steps steps(passes::train(parse_graph(kNorm, all_ops()), with("sgd")));
  steps.run({Tensor::of(DType::F64, {2, 1, 2}, Vector{1, 2, 3, 4}), Tensor(DType::F64, {2, 1, 2})});
  EXPECT_NEAR(steps.state("m").real_at(0), 9 + 0.25, 1e-9);
  EXPECT_NEAR(steps.state("v").real_at(0), 0.9 + 0.1 * 1.25, 1e-9);
}

TEST(Train, DropoutMaskPerStep) {
  constexpr const char* kDropout = R"(graph (x: f64[64]) {
  w = constant f64[64] splat 1.0
  y = mul(x, w)
  r = constant f64[] 0.5
  no = constant bool[] false
  d, _ = dropout(y, r, no)
  return d
}
)";
  std::string text = kDropout;
  text.replace(text.find("d, _"), 4, "d, mask");
  passes::TrainOptions options = with("sgd");
  options.loss.is_sum = true;
  options.schedule.rate = 1e-12;  // the weights stay
  Steps steps(passes::train(parse_graph(text, all_ops()), options));
  const Tensor ones = Constant::splat(Tensor::scalar(DType::F64, 1), {64}).materialise();
  const double first = steps.run({ones, Tensor(DType::F64, {64})}).front().tensor().real_at(0);
  const double second = steps.run({ones, Tensor(DType::F64, {64})}).front().tensor().real_at(0);
  // Kept elements are 2, so the sum of squares is 4 for each of about 32.
  EXPECT_GT(first, 64);
  EXPECT_LT(first, 192);
  EXPECT_NE(first, second);
}

TEST(Train, ChoosesParametersByPattern) {
  constexpr const char* kTwo = R"(graph (x: f64[2]) {
  head.w = constant f64[2] [1, 2]
  tail.w = constant f64[2] [3, 4]
  scale = constant f64[] 2
  a = mul(x, head.w)
  b = mul(a, scale)
  y = mul(b, tail.w)
  return y
}
)";
  const auto names = [&](const passes::TrainOptions& options) {
    std::vector<std::string> found;
    for (const passes::State& state : passes::train(parse_graph(kTwo, all_ops()), options).states)
      found.push_back(state.name);
    return found;
  };
  passes::TrainOptions options = with("sgd");
  EXPECT_EQ(names(options), (std::vector<std::string>{"head.w", "tail.w", "train/step"}));
  options.frozen = {"head.*"};
  EXPECT_EQ(names(options), (std::vector<std::string>{"tail.w", "train/step"}));
  options = with("sgd");
  options.parameters = {"scale"};
  EXPECT_EQ(names(options), (std::vector<std::string>{"scale", "train/step"}));
  options.parameters = {"none"};
  EXPECT_EQ(error_summary([&] { names(options); }), "no parameters to train");
}

TEST(Train, RefusesUntrainableGraphs) {
  const auto summary = [](const char* model, const passes::TrainOptions& options) {
    return error_summary([&] { passes::train(parse_graph(model, all_ops()), options); });
  };
  EXPECT_EQ(summary(kProduct, with("adma")), "no optimizer is called 'adma'");
  passes::TrainOptions options;
  options.loss.kind = "mae";
  EXPECT_EQ(summary(kProduct, options), "no loss is called 'mae'");
  options = with("sgd");
  options.loss.output = "z";
  EXPECT_EQ(summary(kProduct, options), "the model has no output 'z'");
  const char* kRounds = R"(graph (x: f64[2]) {
  w = constant f64[2] [1, 2]
  a = mul(x, w)
  y = round(a) @ "quantise"
  return y
}
)";
  const std::string text =
      error_text([&] { passes::train(parse_graph(kRounds, all_ops()), with("sgd")); });
  EXPECT_NE(text.find("cannot differentiate through round"), std::string::npos) << text;
  EXPECT_NE(text.find("quantise"), std::string::npos) << text;
  const char* kIntegers = R"(graph (x: f64[2]) {
  w = constant f64[2] [1, 2]
  a = mul(x, w)
  i = cast(a) {to = i64}
  y = cast(i) {to = f64}
  return y
}
)";
  EXPECT_EQ(summary(kIntegers, with("sgd")),
            "the loss does not depend on any parameter in a way that has a gradient");
  const char* kTaken = R"(graph (target: f64[2]) {
  w = constant f64[2] [1, 2]
  y = mul(target, w)
  return y
}
)";
  EXPECT_EQ(summary(kTaken, with("sgd")), "the model has a value 'target' already");
}

}  // namespace
}  // namespace tenon::train_test
