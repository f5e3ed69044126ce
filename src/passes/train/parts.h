#pragma once

#include "passes/train/train.h"
#include "tenon/builder.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tenon::training {

/// A graph with states that is being made.
struct Draft {
  struct Held {
    std::string name;
    ValueId now, next;
    Constant initial;
    std::optional<State::Split> split = {};
  };
  Graph graph;
  std::vector<Held> states;

  /// A state that keeps its value until it is given a next one. Gives its position.
  std::size_t add_state(std::string name, Constant initial);
  /// A state of which every rank has a piece; `initial` is all of it.
  std::size_t add_split_state(std::string name, std::string whole, Constant initial,
                              std::int64_t rank_count);
  /// A constant that is a node of the graph, as a state of its name.
  std::size_t make_state(ValueId constant);
  Var now(Builder& build, std::size_t state) const { return {&build, states[state].now.index()}; }
  void set_next(std::size_t state, Var value) { states[state].next = ValueId(value.id()); }
  /// With these outputs, then the states'.
  StatefulGraph finish(std::vector<ValueId> outputs);
};

/// The floating constants that options choose, as states; the graph reads those in their place.
std::vector<std::size_t> make_parameters(Draft& draft, const TrainOptions& options);
/// The statistics of batch norms as states of their names.
void make_statistics(Draft& draft);

/// Batch norms with the batch's own statistics, whose running ones are updated; dropout that drops,
/// by the number of the step, or by `kKey` where the batch comes in parts.
void prepare_nodes(Draft& draft, std::size_t step, const TrainOptions& options);

struct Loss {
  Var loss;
  /// invalid where there are no classes
  Var accuracy;
};
/// Appends the loss on the model's output, with the input `target`. `is_each`: of each sample.
Loss add_loss(Builder& build, const LossOptions& options, bool is_each);

/// The rate of a step, f64[].
Var scheduled_rate(const ScheduleOptions& options, Var step);

struct Update {
  std::size_t state = 0;
  Var gradient;
};
/// The sums over all parts of a batch, of which a graph computes one: what the loss is divided by
/// for its mean, the sums are. Every gradient gets its own all_reduce, or reduce_scatter where
/// states are split; whoever runs the graph puts them in buckets as they become ready.
class OverParts {
 public:
  OverParts(Builder& build, const TrainOptions& options) : build_(build), options_(options) {}
  /// Of a gradient or the loss; an invalid value stays so.
  Var total(Var value) { return divided(value, !options_.loss.is_sum); }
  Var mean(Var value) { return divided(value, true); }
  /// This rank's piece of it.
  Var piece(Var gradient);

 private:
  Var divided(Var value, bool is_mean);

  Builder& build_;
  const TrainOptions& options_;
  std::map<std::uint32_t, Var> sums_;  // a value is summed once, however many read it
};

/// Every rank updates its piece of each parameter, and what the optimiser remembers of it; then all
/// get all pieces, or where parameters are split, when they compute with them. Throws Error
/// (Unsupported) for options that need whole gradients.
void add_split_updates(Draft& draft, Builder& build, const TrainOptions& options,
                       const std::vector<Update>& gradients, OverParts& over_parts, Var step,
                       Var scale);

/// Appends what the optimiser does to each parameter; its memory becomes states.
void add_updates(Draft& draft, Builder& build, const TrainOptions& options,
                 const std::vector<Update>& updates, Var step, Var scale);
/// The factor that the loss is multiplied by before gradients are taken; invalid where there is
/// none.
Var loss_scale(Draft& draft, Builder& build, const OptimizerOptions& options);

/// The gradient by an image that several were joined into, which is split behind the convolution
/// that computes it: a convolution for each of them, with its part of the weights. Nothing is
/// written whole and then taken apart. Likewise the gradient by the weights of such a convolution:
/// one of each image, which need not be joined again for it.
void part_gradients(Graph& graph);

/// Appends how unlikely the labels are behind a sequence of scores, whatever steps they fall on
/// (connectionist temporal classification); `target` has the labels of each sample, then negative
/// numbers.
Loss add_ctc_loss(Builder& build, Var scores, const LossOptions& options, bool is_each);

/// Convolutions read and write weights that no constant holds so that neighbours are what kernels
/// write along: outputs, or the image's channels backwards. A step then transposes each once, which
/// costs next to nothing.
void lay_out_weights(Graph& graph);

}  // namespace tenon::training
