#include "passes/shard/shard.h"

#include "base/error.h"
#include "base/text.h"
#include "ops/definition/registry.h"
#include "ops/families/collective.h"
#include "passes/shard/choose.h"

#include <algorithm>
#include <map>

namespace tenon::passes {
namespace {

constexpr const char* kPass = "shard";

class Sharder {
 public:
  Sharder(const StatefulGraph& step, const ShardOptions& options, const ShardPlan& plan)
      : step_(step), from_(step.graph), options_(options), plan_(plan) {}

  StatefulGraph run() {
    to_.name = from_.name;
    to_.metadata = from_.metadata;
    for (ValueId input : from_.inputs()) {
      const Value& value = from_.value(input);
      const Sharding& home = plan_.home[input];
      keep(input, home,
           to_.add_input(value.name, home.is_whole() ? value.type
                                                     : Type(part_of(value.type.tensor(), home,
                                                                    options_.tensor_ranks))));
    }
    for (NodeId id : from_.nodes_in_order()) copy_node(id);
    for (std::size_t k = 0; k < from_.outputs().size(); ++k)
      to_.add_output(held(from_.outputs()[k], plan_.outputs[k]));
    StatefulGraph made{std::move(to_), step_.states};
    for (State& state : made.states) {
      const Sharding& home = plan_.home[from_.inputs()[state.input]];
      if (home.is_split()) state.split = State::Split{state.name, state.initial.shape(), home.axis};
    }
    return made;
  }

 private:
  using Key = std::pair<ValueId, Sharding>;

  void keep(ValueId value, const Sharding& sharding, ValueId local) {
    made_[{value, sharding}] = local;
  }

  ValueId add(const char* op, ValueId x, Attributes attrs, const std::string& name) {
    return to_
        .node(to_.add_node({&find_op(op), {x}, std::move(attrs), {}, {to_.free_name(name)}, ""}))
        .results[0];
  }
  Attributes group(std::size_t axis) const {
    Attributes attrs;
    attrs.set("ranks", Dim(options_.tensor_ranks));
    if (axis != 0) attrs.set("axis", Dim(static_cast<std::int64_t>(axis)));
    return attrs;
  }

  // Returns the value in the wanted sharding, inserting a collective if necessary.
  ValueId held(ValueId value, const Sharding& wanted) {
    const auto found = made_.find({value, wanted});
    if (found != made_.end()) return found->second;
    const ValueId local = converted(value, wanted);
    keep(value, wanted, local);
    return local;
  }

  ValueId converted(ValueId value, const Sharding& wanted) {
    const Sharding& home = plan_.home[value];
    const std::string& name = from_.value(value).name;
    const Constant* constant = from_.constant_of(value);
    if (constant != nullptr && constant->kind() == Constant::Kind::Splat) {
      const TensorType part = part_of(constant->type(), wanted, options_.tensor_ranks);
      return to_.add_constant(find_op("constant"),
                              Constant::splat(constant->stored(), constants(part.dims)),
                              to_.free_name(concat(name, "/part")));
    }
    if (wanted.is_whole()) {
      const ValueId mine = made_.at({value, home});
      if (home.is_split()) return add("all_gather", mine, group(home.axis), concat(name, "/whole"));
      return add("all_reduce", mine, group(0), concat(name, "/sum"));
    }
    TENON_ASSERT(wanted.is_split(), "nothing is turned into partial sums");
    const bool is_whole_there = home.is_split() || made_.contains({value, Sharding::whole()});
    if (home.is_partial() && !is_whole_there)
      return add("reduce_scatter", made_.at({value, home}), group(wanted.axis),
                 concat(name, "/part"));
    return add("rank_slice", held(value, Sharding::whole()), group(wanted.axis),
               concat(name, "/part"));
  }

  void copy_node(NodeId id) {
    const Node& node = from_.node(id);
    if (node.results.size() == 1 && from_.constant_of(node.results[0]) != nullptr) {
      const ValueId value = node.results[0];
      const ValueId made =
          to_.add_constant(*node.op, *from_.constant_of(value), from_.value(value).name);
      if (from_.has_stated_type(value)) to_.set_type(made, from_.value(value).type);
      return keep(value, Sharding::whole(), made);
    }
    const Strategy& candidate = *plan_.candidate[id];
    Graph::NewNode copy{node.op, {}, candidate.attrs, node.bodies, {}, node.name};
    for (std::size_t k = 0; k < node.operands.size(); ++k)
      copy.operands.push_back(node.operands[k] ? held(node.operands[k], candidate.operands[k])
                                               : ValueId{});
    for (ValueId result : node.results)
      copy.results.push_back(result ? to_.free_name(from_.value(result).name) : "_");
    if (is_collective(*node.op)) {  // collectives over all ranks of data parallelism
      copy.attrs.set("ranks", Dim(options_.data_ranks));
      copy.attrs.set("stride", Dim(options_.tensor_ranks));
    }
    const NodeId made = to_.add_node(std::move(copy));
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      const ValueId result = node.results[k];
      if (!result) continue;
      const ValueId local = to_.node(made).results[k];
      if (from_.has_stated_type(result) && candidate.results[k].is_whole())
        to_.set_type(local, from_.value(result).type);
      keep(result, candidate.results[k], local);
    }
  }

  const StatefulGraph& step_;
  const Graph& from_;
  const ShardOptions& options_;
  const ShardPlan& plan_;
  Graph to_;
  std::map<Key, ValueId> made_;
};

}  // namespace

StatefulGraph shard(const StatefulGraph& step, const ShardOptions& options, Remarks* remarks) {
  const Graph& graph = step.graph;
  for (NodeId id : graph.nodes_in_order()) {
    // op-name: the sum over parts of a batch
    if (!is_collective(*graph.node(id).op) || graph.op_name(id) == "all_reduce") continue;
    throw Error("a graph that cuts tensors over ranks cannot be split over them again",
                ErrorKind::Unsupported)
        .at(graph.location(id))
        .hint("leave --split-states or tensor:N out");
  }
  const ShardPlan plan = choose_shardings(step, options);
  bool is_split = false;
  std::string why;  // of the first product with a parameter, or else of the first node
  bool is_of_weight = false;
  const auto is_weight = [&](ValueId value) {
    return value && !graph.value(value).producer && graph.value(value).type.tensor().rank() >= 2 &&
           std::ranges::any_of(step.states, [&](const State& state) {
             return graph.inputs()[state.input] == value;
           });
  };
  for (NodeId id : graph.nodes_in_order()) {
    const bool is_plain = plan.candidate[id]->is_plain();
    is_split = is_split || !is_plain;
    const auto& refusals = plan.all[id]->refusals;
    const bool reads_weight = std::ranges::any_of(graph.node(id).operands, is_weight);
    if (is_plain && !refusals.empty() && (why.empty() || (reads_weight && !is_of_weight))) {
      why = concat(graph.location(id), ": ", join(refusals, "; "));
      is_of_weight = reads_weight;
    }
    if (remarks != nullptr && !plan.why[id].empty()) {
      for (ValueId result : graph.node(id).results) {
        if (!result) continue;
        remarks->say(graph.value(result).name, kPass, plan.why[id]);
        break;
      }
    }
  }
  if (!is_split) {
    throw Error(concat("no tensor can be split over ", options.tensor_ranks, " ranks"),
                ErrorKind::Unsupported)
        .got(why.empty() ? std::string("no operator with parameters") : why)
        .hint("another number of ranks, or --parallel=data");
  }
  return Sharder(step, options, plan).run();
}

}  // namespace tenon::passes
