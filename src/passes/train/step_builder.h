#pragma once

#include "passes/train/train.h"
#include "tenon/builder.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tenon::passes::training {

/// A stateful graph under construction.
struct Draft {
  struct DraftState {
    std::string name;
    ValueId now, next;
    Constant initial;
    std::optional<State::Split> split = {};
  };
  Graph graph;
  std::vector<DraftState> states;

  /// Adds a state that keeps its value unless `set_next` is called. Returns its index.
  std::size_t add_state(std::string name, Constant initial);
  /// Adds a state of which every rank holds a piece; `initial` is the whole.
  std::size_t add_split_state(std::string name, std::string whole, Constant initial,
                              std::int64_t rank_count);
  /// Turns a constant node into a state of its name.
  std::size_t make_state(ValueId constant);
  Var now(Builder& build, std::size_t state) const { return {&build, states[state].now.index()}; }
  void set_next(std::size_t state, Var value) { states[state].next = ValueId(value.id()); }
  /// Returns the graph with these outputs, followed by the states'.
  StatefulGraph finish(std::vector<ValueId> outputs);
};

/// Turns the floating constants chosen by the options into states, which the graph reads instead.
std::vector<std::size_t> make_parameters(Draft& draft, const TrainOptions& options);
/// Turns the running statistics of batch norms into states of their names.
void make_statistics(Draft& draft);

/// Switches nodes to training mode: batch norms use the statistics of the batch and update the
/// running ones; dropout drops elements, seeded by the step number, or by `kKey` if the batch comes
/// in parts.
void prepare_nodes(Draft& draft, std::size_t step, const TrainOptions& options);

struct Loss {
  Var loss;
  /// invalid without classes
  Var accuracy;
};
/// Appends the loss of the model's output, with the new input `target`. `is_each`: per sample.
Loss add_loss(Builder& build, const LossOptions& options, bool is_each);

/// Returns the learning rate of a step, f64[].
Var scheduled_rate(const ScheduleOptions& options, Var step);

struct Update {
  std::size_t state = 0;
  Var gradient;
};
/// Gradient all-reduce of data parallelism: sums over all parts of a batch, of which a graph
/// computes one. Sums whatever the loss divides for its mean. Every gradient gets its own
/// all_reduce, or reduce_scatter with split states; the runtime groups them into buckets as they
/// become ready.
class GradientReduction {
 public:
  GradientReduction(Builder& build, const TrainOptions& options)
      : build_(build), options_(options) {}
  /// Reduces a gradient or the loss; an invalid value stays invalid.
  Var total(Var value) { return divided(value, !options_.loss.is_sum); }
  Var mean(Var value) { return divided(value, true); }
  /// Returns this rank's piece of the reduced gradient.
  Var piece(Var gradient);

 private:
  Var divided(Var value, bool is_mean);

  Builder& build_;
  const TrainOptions& options_;
  std::map<std::uint32_t, Var> sums_;  // each value is reduced once for all of its readers
};

/// ZeRO: every rank updates its piece of each parameter and of the optimizer state. All-gathers the
/// updated pieces, or, with split parameters, gathers them at their use. Throws Error (Unsupported)
/// for options that need whole gradients.
void add_split_updates(Draft& draft, Builder& build, const TrainOptions& options,
                       const std::vector<Update>& gradients, GradientReduction& reduction, Var step,
                       Var scale);

/// Appends the optimizer update of each parameter; optimizer state becomes states of the graph.
void add_updates(Draft& draft, Builder& build, const TrainOptions& options,
                 const std::vector<Update>& updates, Var step, Var scale);
/// Returns the loss scale, the factor of the loss before differentiation; invalid without loss
/// scaling.
Var loss_scale(Draft& draft, Builder& build, const OptimizerOptions& options);

/// Splits the gradient convolution of concatenated images: instead of one convolution followed by a
/// split, one per image with its slice of the weights, so that no joint gradient is stored. Splits
/// the weight gradient likewise, so that the images need not be concatenated again.
void split_concat_gradients(Graph& graph);

/// Appends the CTC loss (connectionist temporal classification): the negative log-likelihood of the
/// labels over all alignments with a sequence of scores. `target` has the labels of each sample,
/// padded with negative numbers.
Loss add_ctc_loss(Builder& build, Var scores, const LossOptions& options, bool is_each);

/// Chooses layouts for trained convolution weights such that the dimension that kernels vectorize
/// over is contiguous: output channels forwards, image channels backwards. A step then transposes
/// each weight once, at negligible cost.
void lay_out_weights(Graph& graph);

}  // namespace tenon::passes::training
