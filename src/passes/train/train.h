#pragma once

#include "ir/graph.h"
#include "passes/train/stateful_graph.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon::passes {

/// The loss. `kind`: softmax_cross_entropy, sigmoid_cross_entropy, mse, huber, ctc.
struct LossOptions {
  std::string kind = "softmax_cross_entropy";
  /// of the model; empty: its first
  std::string output = "";
  /// of the classes (softmax_cross_entropy)
  std::int64_t axis = 1;
  /// one per class; empty: all 1
  std::vector<double> class_weights = {};
  /// ignores positions with this label
  std::optional<std::int64_t> ignore_label;
  /// sum instead of mean
  bool is_sum = false;
  /// threshold at which huber changes from quadratic to linear
  double delta = 1;
  /// For ctc: the time axis (classes are the last axis), the largest number of labels per sample,
  /// and the blank class.
  std::int64_t time_axis = 1, label_count = 0, blank = 0;
};

/// Learning-rate schedule: `rate`, warmed up linearly over the first steps, times the factor of
/// `kind`: constant, step (times `factor` every `every` steps) or cosine (down to `floor` times
/// `rate` at step `total`).
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
  /// decoupled from the gradient for adamw and lamb; else added to the gradient
  double weight_decay = 0;
  /// limit of the global gradient norm; 0: no clipping
  double clip_norm = 0;
  /// 0: disabled; negative: dynamic loss scaling
  double loss_scale = 0;
};

struct TrainOptions {
  LossOptions loss;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  /// Patterns that match the whole names of constants to train and to freeze. Default: trains every
  /// floating constant of rank 1 or more that the loss depends on.
  std::vector<std::string> parameters = {}, frozen = {};
  /// of dropout
  std::int64_t seed = 0;
  /// Data parallelism or gradient accumulation: number of parts that the batch comes in, each
  /// processed separately. Gradients, loss and running statistics are summed over all parts
  /// (`all_reduce`) before use. The graph is that of one part.
  std::int64_t micro_batches = 1;
  /// ZeRO stages 1 and 2: number of ranks that the optimizer state is split over; 1: replicated.
  std::int64_t state_ranks = 1;
  /// ZeRO stage 3: splits the parameters too, which ranks gather at their use.
  bool splits_parameters = false;
  /// Smaller parameters stay whole: they do not justify a message of their own.
  std::int64_t fewest_split = 1024;
};

/// Names of the inputs and outputs that a training step adds.
inline constexpr const char* kTarget = "target";
inline constexpr const char* kLoss = "loss";
inline constexpr const char* kAccuracy = "accuracy";
/// The state that counts steps.
inline constexpr const char* kStep = "train/step";
/// Input i64[] of a step in parts with dropout: a distinct number for every part of every step.
inline constexpr const char* kKey = "train/key";

/// Values of `kind` in LossOptions, OptimizerOptions and ScheduleOptions.
const std::vector<std::string>& loss_kinds();
const std::vector<std::string>& optimizer_kinds();
const std::vector<std::string>& schedule_kinds();

/// Builds one training step as a graph: forward pass, backward pass, updates. Takes the model's
/// inputs and `target`; returns `loss` and, with classes, `accuracy`. Parameters, optimizer state,
/// running statistics and the step number are states. Batch norms and dropout are in training mode.
/// Throws Error if an op on the path has no gradient, if no parameter is left to train, and for
/// inconsistent options.
StatefulGraph train(Graph model, const TrainOptions& options);

/// Gradient accumulation: turns a step for one of `micro_batches` micro-batches
/// (`TrainOptions::micro_batches`) into a step for the whole batch, with inputs and states like
/// `whole`. Processes the micro-batches one after another on slices of the inputs and accumulates
/// their gradients in order. The sum starts with the first micro-batch, so that only one is alive
/// at a time.
StatefulGraph accumulated(const StatefulGraph& part, const StatefulGraph& whole,
                          std::int64_t micro_batches);

/// Returns the step with states that keep their values if the loss is not finite, so that the cause
/// can be inspected although states are updated in place.
StatefulGraph skip_nonfinite_updates(StatefulGraph step);
/// Prepares a step for a program that passes its states on: in place on the CPU, with
/// `skip_nonfinite_updates`; double-buffered on a device, where the values before the last run
/// stay.
StatefulGraph with_recurrent_states(StatefulGraph step, bool is_for_device);

/// Throws Error (Unsupported) if gradient accumulation would change the result: an operator mixes
/// samples (a batch norm in training does), or a mean depends on labels.
void require_samples_apart(Graph model, const TrainOptions& options);

/// Builds the evaluation graph: the loss of each sample and, with classes, whether the prediction
/// was right (`accuracy`). Has the same states, which keep their values.
StatefulGraph evaluation(Graph model, const TrainOptions& options);

/// Returns the model with constants replaced by the states of those names, to save a trained model.
Graph with_states(Graph model, const std::vector<std::pair<std::string, Tensor>>& states);

/// Returns the graph with symbols replaced by numbers.
Graph with_symbols(Graph graph, const DimBindings& values);

}  // namespace tenon::passes
