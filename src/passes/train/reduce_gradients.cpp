#include "base/error.h"
#include "ops/definition/elementwise.h"
#include "ops/definition/registry.h"
#include "ops/definition/var_ops.h"
#include "passes/train/step_builder.h"

namespace tenon::passes::training {

Var GradientReduction::divided(Var value, bool is_mean) {
  if (!value.is_valid() || options_.micro_batches <= 1) return value;
  Var& sum = sums_[value.id()];
  if (!sum.is_valid()) sum = build_.call("all_reduce", {value});
  return is_mean ? sum / static_cast<double>(options_.micro_batches) : sum;
}

Var GradientReduction::piece(Var gradient) {
  const std::int64_t ranks = options_.state_ranks;
  Var& sum = sums_[gradient.id()];
  if (!sum.is_valid())
    sum = build_.call("reduce_scatter", {gradient}, {{"ranks", ranks}, {"flat", true}});
  return options_.loss.is_sum ? sum : sum / static_cast<double>(options_.micro_batches);
}

namespace {

// ZeRO stage 3: turns a parameter's state into this rank's piece; readers get the all-gathered
// pieces.
void split_parameter(Draft& draft, std::size_t state, std::int64_t ranks) {
  Draft::DraftState& held = draft.states[state];
  const Shape shape = held.initial.shape();
  const std::int64_t piece = (held.initial.size() + ranks - 1) / ranks;
  held.split = State::Split{held.name, shape, {}, true};
  draft.graph.set_type(held.now, TensorType{held.initial.dtype(), {Dim(piece)}, {}});
  Graph::NewNode gather{&find_op("all_gather"), {held.now}, {}, {}, {""}, ""};
  gather.attrs.set("ranks", Dim(ranks));
  gather.attrs.set("shape", Dims(shape.begin(), shape.end()));
  const NodeId made = draft.graph.add_node(std::move(gather), draft.graph.first());
  draft.graph.replace_uses(held.now, draft.graph.node(made).results.front());
}

}  // namespace

void add_split_updates(Draft& draft, Builder& build, const TrainOptions& options,
                       const std::vector<Update>& gradients, GradientReduction& reduction, Var step,
                       Var scale) {
  const OptimizerOptions& optimizer = options.optimizer;
  const char* whole = optimizer.kind == "lamb"   ? "lamb"
                      : optimizer.clip_norm > 0  ? "clip"
                      : optimizer.loss_scale < 0 ? "loss_scale=auto"
                                                 : nullptr;
  if (whole != nullptr) {
    throw Error("states cannot be split over ranks with these options", ErrorKind::Unsupported)
        .got(whole)
        .hint("it needs whole gradients, but each rank holds a shard; leave --split-states out");
  }
  std::vector<Update> pieces;
  std::vector<std::pair<std::size_t, std::size_t>> copies;  // a whole state and its piece
  for (const Update& update : gradients) {
    const Draft::DraftState held = draft.states[update.state];
    if (held.initial.size() < options.fewest_split || held.initial.shape().empty()) {
      pieces.push_back({update.state, reduction.total(update.gradient)});
    } else if (options.splits_parameters) {
      split_parameter(draft, update.state, options.state_ranks);
      pieces.push_back({update.state, reduction.piece(update.gradient)});
    } else {
      const std::size_t piece =
          draft.add_split_state(build.graph().free_name(concat(held.name, "/piece")), held.name,
                                held.initial, options.state_ranks);
      pieces.push_back({piece, reduction.piece(update.gradient)});
      copies.emplace_back(update.state, piece);
    }
  }
  add_updates(draft, build, options, pieces, step, scale);
  for (const auto& [state, piece] : copies) {
    const Var next{&build, draft.states[piece].next.index()};
    draft.set_next(state, build.call("all_gather", {next},
                                     {{"ranks", options.state_ranks},
                                      {"shape", draft.states[state].initial.shape()}}));
  }
}

}  // namespace tenon::passes::training
