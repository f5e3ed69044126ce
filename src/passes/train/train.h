#pragma once

#include "ir/graph.h"
#include "passes/train/stateful_graph.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// What is to become small. `kind`: softmax_cross_entropy, sigmoid_cross_entropy, mse, huber, ctc.
struct LossOptions {
  std::string kind = "softmax_cross_entropy";
  /// of the model; empty: its first
  std::string output = "";
  /// of the classes (softmax_cross_entropy)
  std::int64_t axis = 1;
  /// one for each class; none: all 1
  std::vector<double> class_weights = {};
  /// positions with this label count for nothing
  std::optional<std::int64_t> ignore_label;
  /// else the mean
  bool is_sum = false;
  /// where huber turns from squares to straight lines
  double delta = 1;
  /// Of ctc: the axis of time (classes are the last), most labels of a sample, the class of no
  /// label.
  std::int64_t time_axis = 1, label_count = 0, blank = 0;
};

/// The rate of each step: `rate`, warmed up over the first steps, times what `kind` makes of the
/// step: constant, step (times `factor` every `every` steps) or cosine (down to `floor` times at
/// step `total`).
struct ScheduleOptions {
  std::string kind = "constant";
  double rate = 1e-3;
  std::int64_t warm_up = 0, every = 1, total = 1;
  double factor = 0.1, floor = 0;
};

/// `kind` is sgd, momentum, nesterov, rmsprop, adagrad, adam, adamw or lamb.
struct OptimizerOptions {
  std::string kind = "adamw";
  /// momentum, nesterov
  double momentum = 0.9;
  /// adam, adamw, lamb; beta2 of rmsprop
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  /// adamw and lamb: of the parameter itself; else in the gradient
  double weight_decay = 0;
  /// of all gradients together; 0: not clipped
  double clip_norm = 0;
  /// 0: none; negative: found while training
  double loss_scale = 0;
};

struct TrainOptions {
  LossOptions loss;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  /// Patterns that a constant's whole name matches, for constants that are trained and that are
  /// not; empty: every floating constant of rank 1 or more that the loss depends on; none.
  std::vector<std::string> parameters = {}, frozen = {};
  /// of dropout
  std::int64_t seed = 0;
  /// The batch comes in so many parts, each by itself: gradients, loss and running statistics are
  /// summed over all of them (`all_reduce`) before they are used. The graph is that of one part.
  std::int64_t parts = 1;
  /// What the optimiser remembers is split over so many ranks; 1: every rank has all of it.
  std::int64_t state_ranks = 1;
  /// So are the parameters themselves, which ranks put together when they compute with them.
  bool splits_parameters = false;
  /// Parameters of fewer elements stay whole: they are not worth a message of their own.
  std::int64_t fewest_split = 1024;
};

/// The names that the graph of a step gives to its own inputs and outputs.
inline constexpr const char* kTarget = "target";
inline constexpr const char* kLoss = "loss";
inline constexpr const char* kAccuracy = "accuracy";
/// The state that counts steps.
inline constexpr const char* kStep = "train/step";
/// Of a step in parts with dropout, an input i64[]: another number for every part of every step.
inline constexpr const char* kKey = "train/key";

/// The words that LossOptions, OptimizerOptions and ScheduleOptions take.
const std::vector<std::string>& loss_kinds();
const std::vector<std::string>& optimizer_kinds();
const std::vector<std::string>& schedule_kinds();

/// One step of training as a graph: forwards, backwards, updates. Takes the model's inputs and
/// `target`; gives `loss` and, of classes, `accuracy`. Parameters, what the optimiser remembers,
/// running statistics and the number of the step are states. Batch norms take the batch's
/// statistics, dropout drops. Throws Error where an op on the way has no gradient, where nothing is
/// left to train, and for options that do not fit.
StatefulGraph train(Graph model, const TrainOptions& options);

/// A step that was made for one of `parts` parts of a batch (`TrainOptions::parts`) as one of all
/// of it, with inputs and states as the `whole` has: the work of a part once for each, one after
/// another on its slice of the inputs, and what parts give is added up in their order. Sums begin
/// with the first part, so that no more than one part is worked on at a time.
StatefulGraph accumulated(const StatefulGraph& part, const StatefulGraph& whole,
                          std::int64_t parts);

/// The step with states that stay as they are where the loss is not finite, so that whatever went
/// wrong can be looked at although the next values take the place of those before.
StatefulGraph held_unless_finite(StatefulGraph step);

/// Throws Error (Unsupported) where what is learnt from a batch in parts would be something else:
/// an operator mixes samples (as a batch norm in training does), or a mean depends on labels.
void require_samples_apart(Graph model, const TrainOptions& options);

/// The loss of each sample, and of classes whether it was found (`accuracy`), without training: the
/// same states, which keep their values.
StatefulGraph evaluation(Graph model, const TrainOptions& options);

/// The model with constants as the states of those names are: for writing what was trained.
Graph with_states(Graph model, const std::vector<std::pair<std::string, Tensor>>& states);

/// The graph with symbols replaced by numbers.
Graph with_symbols(Graph graph, const DimBindings& values);

}  // namespace tenon
