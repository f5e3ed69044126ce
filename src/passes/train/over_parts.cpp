#include "base/error.h"
#include "ops/elementwise.h"
#include "ops/var_ops.h"
#include "passes/train/parts.h"

namespace tenon::training {

Var OverParts::divided(Var value, bool is_mean) {
  if (!value.is_valid() || options_.parts <= 1) return value;
  Var& sum = sums_[value.id()];
  if (!sum.is_valid()) sum = build_.call("all_reduce", {value});
  return is_mean ? sum / static_cast<double>(options_.parts) : sum;
}

Var OverParts::piece(Var gradient) {
  const std::int64_t ranks = options_.state_ranks;
  Var& sum = sums_[gradient.id()];
  if (!sum.is_valid()) {
    const Shape shape = constants(build_.type(gradient).tensor().dims);
    const std::int64_t count = checked_element_count(shape);
    const std::int64_t missing = (count + ranks - 1) / ranks * ranks - count;
    Var flat = reshape_to(gradient, {Dim(count)});
    if (missing > 0) flat = build_.call("pad", {flat}, {{"pads", Attr::Integers{0, missing}}});
    sum = build_.call("reduce_scatter", {flat}, {{"ranks", ranks}});
  }
  return options_.loss.is_sum ? sum : sum / static_cast<double>(options_.parts);
}

void add_split_updates(Draft& draft, Builder& build, const TrainOptions& options,
                       const std::vector<Update>& gradients, OverParts& over_parts, Var step,
                       Var scale) {
  const OptimizerOptions& optimizer = options.optimizer;
  const char* whole = optimizer.kind == "lamb"   ? "lamb"
                      : optimizer.clip_norm > 0  ? "clip"
                      : optimizer.loss_scale < 0 ? "loss_scale=auto"
                                                 : nullptr;
  if (whole != nullptr) {
    throw Error("states cannot be split over ranks with these options", ErrorKind::Unsupported)
        .got(whole)
        .hint(
            "it reads whole gradients, of which each rank then has a piece; leave --split-states "
            "out");
  }
  std::vector<Update> pieces;
  for (const Update& update : gradients) {
    const Draft::Held held = draft.states[update.state];
    const std::size_t piece =
        draft.add_split_state(build.graph().free_name(concat(held.name, "/piece")), held.name,
                              held.initial, options.state_ranks);
    pieces.push_back({piece, over_parts.piece(update.gradient)});
  }
  add_updates(draft, build, options, pieces, step, scale);
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    const Draft::Held& held = draft.states[gradients[k].state];
    const std::int64_t count = held.initial.size();
    const Var next{&build, draft.states[pieces[k].state].next.index()};
    const Var all = build.call("all_gather", {next}, {{"ranks", options.state_ranks}});
    const Var used = build.call("slice", {all},
                                {{"starts", Attr::Integers{0}},
                                 {"ends", Attr::Integers{count}},
                                 {"axes", Attr::Integers{0}}});
    Dims dims;
    for (std::int64_t extent : held.initial.shape()) dims.emplace_back(extent);
    draft.set_next(gradients[k].state, reshape_to(used, dims));
  }
}

}  // namespace tenon::training
