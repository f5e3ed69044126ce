#include "ir/text.h"
#include "ir/verify.h"
#include "ops/registry.h"
#include "passes/train/train.h"
#include "reference/evaluate.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon {
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
  explicit Steps(StatefulGraph step) : step_(std::move(step)) {
    verify(step_.graph);
    for (const State& state : step_.states) values_.push_back(state.initial.materialise());
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
  StatefulGraph step_;
  std::vector<Tensor> values_;
};

TrainOptions with(const std::string& optimizer) {
  TrainOptions options;
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

// Three steps of an optimiser written out for numbers: `move` changes w by its gradient, at step 1,
// 2, 3.
template <class Move>
void expect_steps(const TrainOptions& options, Move move) {
  Steps steps(train(parse_graph(kProduct, all_ops()), options));
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

TEST(Train, DescendsAlongTheGradient) {
  expect_steps(with("sgd"), [](Vector& w, const Vector& g, int) {
    for (std::size_t k = 0; k < w.size(); ++k) w[k] -= 0.1 * g[k];
  });
}

TEST(Train, DecaysWeightsThroughTheGradient) {
  TrainOptions options = with("sgd");
  options.optimizer.weight_decay = 0.5;
  expect_steps(options, [](Vector& w, const Vector& g, int) {
    for (std::size_t k = 0; k < w.size(); ++k) w[k] -= 0.1 * (g[k] + 0.5 * w[k]);
  });
}

TEST(Train, KeepsAVelocity) {
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

TEST(Train, DividesBySquares) {
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

TEST(Train, FollowsAdamAndItsKin) {
  for (const std::string kind : {"adam", "adamw", "lamb"}) {
    TrainOptions options = with(kind);
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

TEST(Train, ClipsAllGradientsTogether) {
  TrainOptions options = with("sgd");
  options.optimizer.clip_norm = 0.5;
  expect_steps(options, [](Vector& w, const Vector& g, int) {
    const double factor = 0.5 / std::max(0.5, length(g));
    for (std::size_t k = 0; k < w.size(); ++k) w[k] -= 0.1 * factor * g[k];
  });
}

TEST(Train, SchedulesTheRate) {
  TrainOptions options = with("sgd");
  options.schedule = {
      .kind = "step", .rate = 0.2, .warm_up = 2, .every = 2, .total = 1, .factor = 0.5, .floor = 0};
  const Vector steps = {0.1, 0.2, 0.1};  // half warm, warm, fallen by half
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

TEST(Train, ScalesTheLossAndNothingElse) {
  for (const double scale : {1024.0, -1.0}) {
    TrainOptions options = with("sgd");
    options.optimizer.loss_scale = scale;
    expect_steps(options, [](Vector& w, const Vector& g, int) {
      for (std::size_t k = 0; k < w.size(); ++k) w[k] -= 0.1 * g[k];
    });
  }
}

TEST(Train, LeavesOutAStepThatOverflows) {
  TrainOptions options = with("momentum");
  options.optimizer.loss_scale = -1;
  Steps steps(train(parse_graph(kProduct, all_ops()), options));
  steps.run({reals({1e200, 1, 1}), reals({1, 1, 1})});  // its gradient times the scale is infinite
  EXPECT_EQ(steps.state("w").reals(), (Vector{0.5, -1, 2}));
  EXPECT_EQ(steps.state("w/velocity").reals(), (Vector{0, 0, 0}));
  EXPECT_EQ(steps.state("train/loss_scale").real_at(0), 32768);
}

double loss_of(const LossOptions& loss, const char* model, const std::vector<Tensor>& batch) {
  TrainOptions options;
  options.loss = loss;
  Steps steps(train(parse_graph(model, all_ops()), options));
  return steps.run(batch).front().tensor().real_at(0);
}

constexpr const char* kClasses = R"(graph (x: f64[2, 3]) {
  w = constant f64[3] [1, 1, 1]
  y = mul(x, w)
  p = softmax(y) {axis = 1}
  return p
}
)";

TEST(Train, TakesCrossEntropyOfClasses) {
  const Tensor x = Tensor::of(DType::F64, {2, 3}, Vector{1, 2, 3, 0.5, -1, 0});
  const Tensor target = Tensor::of_integers(std::vector<std::int64_t>{2, 1});
  const double a = std::log(std::exp(1) + std::exp(2) + std::exp(3)) - 3;
  const double b = std::log(std::exp(0.5) + std::exp(-1) + std::exp(0)) + 1;
  EXPECT_NEAR(loss_of({}, kClasses, {x, target}), (a + b) / 2, 1e-9);
  LossOptions sum;
  sum.is_sum = true;
  EXPECT_NEAR(loss_of(sum, kClasses, {x, target}), a + b, 1e-9);
  LossOptions weighted;
  weighted.class_weights = {1, 3, 2};
  EXPECT_NEAR(loss_of(weighted, kClasses, {x, target}), (2 * a + 3 * b) / 5, 1e-9);
  LossOptions ignoring;
  ignoring.ignore_label = 1;
  EXPECT_NEAR(loss_of(ignoring, kClasses, {x, target}), a, 1e-9);
}

TEST(Train, TakesOtherLosses) {
  const std::vector<Tensor> batch = {reals({1, 2, -1}), reals({0, 1, 1})};  // y = 0.5, -2, -2
  const auto each = [](double x, double t) {
    return std::max(x, 0.0) - x * t + std::log(1 + std::exp(-std::abs(x)));
  };
  LossOptions loss;
  loss.kind = "sigmoid_cross_entropy";
  EXPECT_NEAR(loss_of(loss, kProduct, batch), (each(0.5, 0) + each(-2, 1) + each(-2, 1)) / 3, 1e-9);
  loss.kind = "huber";
  EXPECT_NEAR(loss_of(loss, kProduct, batch), (0.125 + 2.5 + 2.5) / 3, 1e-9);
}

TEST(Train, CountsStatisticsOfABatch) {
  constexpr const char* kNorm = R"(graph (x: f64[2, 1, 2]) {
  s = constant f64[1] [1]
  b = constant f64[1] [0]
  m = constant f64[1] [10]
  v = constant f64[1] [1]
  y = batch_norm(x, s, b, m, v)
  return y
}
)";
  Steps steps(train(parse_graph(kNorm, all_ops()), with("sgd")));
  steps.run({Tensor::of(DType::F64, {2, 1, 2}, Vector{1, 2, 3, 4}), Tensor(DType::F64, {2, 1, 2})});
  EXPECT_NEAR(steps.state("m").real_at(0), 9 + 0.25, 1e-9);
  EXPECT_NEAR(steps.state("v").real_at(0), 0.9 + 0.1 * 1.25, 1e-9);
}

TEST(Train, DropsOtherElementsAtEachStep) {
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
  TrainOptions options = with("sgd");
  options.loss.is_sum = true;
  options.schedule.rate = 1e-12;  // the weights stay
  Steps steps(train(parse_graph(text, all_ops()), options));
  const Tensor ones = Constant::splat(Tensor::scalar(DType::F64, 1), {64}).materialise();
  const double first = steps.run({ones, Tensor(DType::F64, {64})}).front().tensor().real_at(0);
  const double second = steps.run({ones, Tensor(DType::F64, {64})}).front().tensor().real_at(0);
  // Elements that stay are 2, so the sum of squares is 4 for each of about 32.
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
  const auto names = [&](const TrainOptions& options) {
    std::vector<std::string> found;
    for (const State& state : train(parse_graph(kTwo, all_ops()), options).states)
      found.push_back(state.name);
    return found;
  };
  TrainOptions options = with("sgd");
  EXPECT_EQ(names(options), (std::vector<std::string>{"head.w", "tail.w", "train/step"}));
  options.frozen = {"head.*"};
  EXPECT_EQ(names(options), (std::vector<std::string>{"tail.w", "train/step"}));
  options = with("sgd");
  options.parameters = {"scale"};
  EXPECT_EQ(names(options), (std::vector<std::string>{"scale", "train/step"}));
  options.parameters = {"none"};
  EXPECT_EQ(error_summary([&] { names(options); }), "nothing is left to train");
}

TEST(Train, SaysWhatCannotBeTrained) {
  const auto summary = [](const char* model, const TrainOptions& options) {
    return error_summary([&] { train(parse_graph(model, all_ops()), options); });
  };
  EXPECT_EQ(summary(kProduct, with("adma")), "no optimizer is called 'adma'");
  TrainOptions options;
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
  const std::string text = error_text([&] { train(parse_graph(kRounds, all_ops()), with("sgd")); });
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
}  // namespace tenon
