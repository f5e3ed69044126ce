#pragma once

#include "frontends/chainer/training_graph.h"
#include "frontends/megengine/tables.h"
#include "ir/graph.h"
#include "memory/device.h"

#include <functional>

namespace tenon {

/// A training step that Chainer wrote down: every function and its backward as items, every
/// intermediate and its gradient as values. Gradients of one tensor add up in place; those of
/// inputs are not computed. Parameters, their gradients and inputs are fixed. Costs come from the
/// shapes. With `parts`, it is one of so many equal parts of the batch, whose gradients add up.
/// `is_fused`: its functions joined as a compiler does (`chainer_fused.h`), as retained.
memory::Problem problem_of(const chainer::Tables& tables, std::string_view source,
                           chainer::Reading reading, const memory::Device& device, int parts = 1,
                           bool is_fused = false);
/// Into how many parts the batch can be split; none where an operator mixes it.
std::vector<int> batch_parts(const chainer::Tables& tables, std::string_view source);

/// A run that MegEngine profiled, with its measured device times where it has them; Elemwise may
/// overwrite an operand.
memory::Problem problem_of(const megengine::Profile& profile, std::string_view source);

/// The forward pass of a graph: node results as values, nodes as items, costs from their
/// footprints; symbols at their size hints. Pointwise nodes may overwrite an operand of the same
/// size.
memory::Problem problem_of(const Graph& graph, const memory::Device& device);

/// The problem of what a command line names; `reading` is of Chainer's documents.
struct PlanSource {
  memory::Problem problem;
  /// how it was read
  std::string note;
  /// The same for parts of the batch, fewest parts first, made when they are asked for. They are
  /// of one part; or, where the parts follow one another in the problem, of all.
  std::vector<std::pair<int, std::function<memory::Problem()>>> split;
  bool is_split_whole = false;
};
PlanSource plan_source(const std::string& model, chainer::Reading reading,
                       const memory::Device& device, bool is_fused = false);

}  // namespace tenon
