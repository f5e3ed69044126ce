#include "base/error.h"
#include "expr/analysis.h"
#include "expr/required_region.h"
#include "ops/definition/registry.h"
#include "ops/families/collective.h"
#include "passes/dynamic_attributes.h"
#include "passes/train/train.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace tenon::passes {
namespace {

// Returns the axis along which an input of the micro-batch is shorter than that of the whole batch.
std::optional<std::size_t> sample_axis(const TensorType& part, const TensorType& whole,
                                       std::int64_t parts) {
  TENON_ASSERT(part.rank() == whole.rank(), "a part has inputs of the same ranks");
  for (std::size_t axis = 0; axis < part.rank(); ++axis) {
    if (part.dims[axis] == whole.dims[axis]) continue;
    TENON_ASSERT(part.dims[axis] * Dim(parts) == whole.dims[axis], "parts of one size");
    return axis;
  }
  return std::nullopt;
}

class Accumulator {
 public:
  Accumulator(const StatefulGraph& part, const StatefulGraph& whole, std::int64_t parts)
      : part_(part),
        from_(part.graph),
        whole_(whole),
        parts_(parts),
        stage_(from_.node_id_bound(), Stage::Once) {
    for (std::size_t k : part.data_inputs()) is_data_.insert(from_.inputs()[k]);
    find_stages();
  }

  StatefulGraph run() {
    to_.name = from_.name;
    to_.metadata = from_.metadata;
    add_inputs();
    for (NodeId id : from_.nodes_in_order()) {
      if (stage_[id] == Stage::Once) copy_node(id, once_);
    }
    for (std::int64_t k = 0; k < parts_; ++k) add_part(k);
    for (NodeId id : from_.nodes_in_order()) {
      if (stage_[id] == Stage::Sum)
        once_[from_.node(id).results[0]] = sums_.at(from_.node(id).operands[0]);
      if (stage_[id] == Stage::Behind) copy_node(id, once_);
    }
    for (ValueId output : from_.outputs()) to_.add_output(once_.at(output));
    StatefulGraph made{std::move(to_), whole_.states};
    for (State& state : made.states) {
      const auto same = std::ranges::find(part_.states, state.name, &State::name);
      TENON_ASSERT(same != part_.states.end(), "a part has the states of the whole");
      state.output = same->output;
    }
    return made;
  }

 private:
  // Stage of a node: once before all micro-batches, once per micro-batch, the sum over them, or
  // once after.
  enum class Stage : std::uint8_t { Once, Each, Sum, Behind };
  using Copies = std::unordered_map<ValueId, ValueId>;

  bool is_of_part(ValueId value) const {
    const NodeId maker = from_.value(value).producer;
    return maker ? stage_[maker] == Stage::Each : is_data_.contains(value);
  }

  void find_stages() {
    for (NodeId id : from_.nodes_in_order()) {
      bool is_each = false, is_after = false;
      for (ValueId operand : from_.node(id).operands) {
        if (!operand) continue;
        const NodeId maker = from_.value(operand).producer;
        is_each = is_each || is_of_part(operand);
        is_after =
            is_after || (maker && (stage_[maker] == Stage::Sum || stage_[maker] == Stage::Behind));
      }
      TENON_ASSERT(!(is_each && is_after), "what a part leads to is summed before it is used");
      if (is_collective(*from_.node(id).op)) {
        TENON_ASSERT(from_.op_name(id) == "all_reduce",
                     "sums are the only meeting of parts");  // op-name: the sum over parts
        stage_[id] = Stage::Sum;
      } else if (is_each) {
        stage_[id] = Stage::Each;
      } else if (is_after) {
        stage_[id] = Stage::Behind;
      }
    }
  }

  // Adds inputs in the order of the whole step, so that both can be run alike.
  void add_inputs() {
    for (ValueId input : whole_.graph.inputs()) {
      const Value& value = whole_.graph.value(input);
      once_[from_.find(value.name)] = to_.add_input(value.name, value.type);
    }
  }

  ValueId add(const char* op, std::vector<ValueId> operands, Attributes attrs = {}) {
    return to_
        .node(to_.add_node({&find_op(op), std::move(operands), std::move(attrs), {}, {""}, ""}))
        .results[0];
  }

  ValueId integer(std::int64_t number) {
    return to_.add_constant(find_op("constant"),
                            Constant(Tensor::of<std::int64_t>(DType::I64, {}, {number})));
  }

  // A distinct number for every micro-batch of every step.
  ValueId key_of(std::int64_t number) {
    const auto step = std::ranges::find(part_.states, kStep, &State::name);
    TENON_ASSERT(step != part_.states.end(), "steps are counted");
    const ValueId now = once_.at(from_.inputs()[step->input]);
    return add("add", {add("mul", {now, integer(parts_)}),
                       integer(number)});  // op-name: arithmetic on numbers
  }

  void add_part(std::int64_t number) {
    Copies copies = once_;
    for (std::size_t k : part_.data_inputs()) {
      const ValueId input = from_.inputs()[k];
      const Value& value = from_.value(input);
      if (value.name == kKey) {
        copies[input] = key_of(number);
        continue;
      }
      const ValueId all = once_.at(input);
      const auto axis = sample_axis(value.type.tensor(), to_.value(all).type.tensor(), parts_);
      if (!axis) continue;
      const std::int64_t extent = value.type.tensor().dims[*axis].constant();
      Attributes attrs;
      attrs.set("starts", Dims{Dim(number * extent)});
      attrs.set("ends", Dims{Dim((number + 1) * extent)});
      attrs.set("axes", Dims{Dim(static_cast<std::int64_t>(*axis))});
      copies[input] = add("slice", {all}, std::move(attrs));
    }
    for (NodeId id : from_.nodes_in_order()) {
      if (stage_[id] != Stage::Each) continue;
      copy_node(id, copies);
      for (ValueId result : from_.node(id).results) {
        if (result && is_summed(result)) add_up(result, copies.at(result));
      }
    }
    for (NodeId id : from_.nodes_in_order()) {  // values that no node of a micro-batch produces
      if (stage_[id] != Stage::Sum || is_made_by_part(from_.node(id).operands[0])) continue;
      add_up(from_.node(id).operands[0], copies.at(from_.node(id).operands[0]));
    }
  }

  bool is_made_by_part(ValueId value) const {
    const NodeId maker = from_.value(value).producer;
    return maker && stage_[maker] == Stage::Each;
  }
  bool is_summed(ValueId value) const {
    return std::ranges::any_of(from_.readers(value),
                               [&](NodeId reader) { return stage_[reader] == Stage::Sum; });
  }
  // Accumulates a value as soon as it is computed, so that each micro-batch's contribution dies at
  // once.
  void add_up(ValueId value, ValueId one) {
    const auto found = sums_.find(value);
    if (found == sums_.end()) {
      sums_[value] = one;
    } else {
      // Kernels of one micro-batch may take the sum as epilogue, but no kernel may span two
      // micro-batches: the first would have to wait for the second, with all its values alive.
      const ValueId before = add("stop_fusion", {found->second});  // op-name: a mark
      found->second = add("add", {before, one});                   // op-name: the sum over parts
    }
  }

  void copy_node(NodeId id, Copies& copies) {
    const Node& node = from_.node(id);
    Graph::NewNode copy{node.op, {}, node.attrs, node.bodies, {}, node.name};
    for (ValueId operand : node.operands)
      copy.operands.push_back(operand ? copies.at(operand) : ValueId{});
    for (ValueId result : node.results)
      copy.results.push_back(result ? to_.free_name(from_.value(result).name) : "_");
    const NodeId made = to_.add_node(std::move(copy));
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      if (!node.results[k]) continue;
      copies[node.results[k]] = to_.node(made).results[k];
      if (from_.has_stated_type(node.results[k]))
        to_.set_type(to_.node(made).results[k], from_.value(node.results[k]).type);
    }
  }

  const StatefulGraph& part_;
  const Graph& from_;
  const StatefulGraph& whole_;
  std::int64_t parts_;
  IdMap<NodeId, Stage> stage_;
  std::unordered_set<ValueId> is_data_;
  Graph to_;
  Copies once_, sums_;  // by value of the micro-batch graph; sums by the value that is summed
};

// Returns the result axis that has the samples of an operand's axis, one by one.
std::optional<std::size_t> axis_behind(const Graph& graph, NodeId id, std::size_t operand,
                                       std::size_t axis) {
  if (graph.op_name(id) == "dropout") return axis;  // op-name: its form in training is elementwise
  const std::vector<RequiredRegion> regions = required_regions(graph, id, operand);
  if (axis < regions.size()) {
    const RequiredRegion& region = regions[axis];
    if (region.axis && region.step == 1 && region.first == 0 && region.count == Dim(1))
      return region.axis;
  }
  // A reshape that keeps the samples as its first axis.
  const std::vector<Expr> exprs = lowered(graph, id);
  if (exprs.size() != 1 || axis != 0 || exprs[0].node().kind != ExprKind::Reshape)
    return std::nullopt;
  const Expr& inner = exprs[0].node().args[0];
  const bool is_plain =
      inner.node().kind == ExprKind::Operand && inner.rank() > 0 && exprs[0].rank() > 0;
  if (is_plain && inner.dims()[0] == exprs[0].dims()[0]) return 0;
  return std::nullopt;
}

Error mixed(const Graph& graph, NodeId id) {
  return Error("gradient accumulation is impossible: an operator mixes samples",
               ErrorKind::Unsupported)
      .at(graph.location(id))
      .hint("leave --split out");
}

}  // namespace

StatefulGraph accumulated(const StatefulGraph& part, const StatefulGraph& whole,
                          std::int64_t parts) {
  return Accumulator(part, whole, parts).run();
}

void require_samples_apart(Graph model, const TrainOptions& options) {
  const LossOptions& loss = options.loss;
  if (!loss.is_sum && (!loss.class_weights.empty() || loss.ignore_label)) {
    throw Error(
        "gradient accumulation is impossible: the mean loss depends on the labels of all samples",
        ErrorKind::Unsupported)
        .got(loss.ignore_label ? "a label that is ignored" : "weights of classes")
        .hint("reduction=sum gives the same result with micro-batches");
  }
  resolve_dynamic_attributes(model);
  std::optional<Dim> batch;
  std::unordered_map<ValueId, std::size_t> axes;
  for (ValueId input : model.inputs()) {
    const Type& type = model.value(input).type;
    if (!type.is_tensor() || type.tensor().rank() == 0) continue;
    if (!batch) batch = type.tensor().dims.front();
    if (type.tensor().dims.front() == *batch) axes[input] = 0;
  }
  for (NodeId id : model.nodes_in_order()) {
    const Node& node = model.node(id);
    std::optional<std::size_t> axis;
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      const auto found = node.operands[k] ? axes.find(node.operands[k]) : axes.end();
      if (found == axes.end()) continue;
      const auto behind = axis_behind(model, id, k, found->second);
      if (!behind || (axis && *axis != *behind)) throw mixed(model, id);
      axis = behind;
    }
    if (!axis) continue;
    // op-name: trained, it takes the statistics of the batch
    if (node.op->name == "batch_norm") {
      throw mixed(model, id).got(
          "a batch norm, which is trained on the statistics of the whole batch");
    }
    for (ValueId result : node.results) {
      if (result) axes[result] = *axis;
    }
  }
  for (ValueId output : model.outputs()) {
    if (axes.contains(output)) continue;
    throw Error("gradient accumulation is impossible: an output has no batch axis",
                ErrorKind::Unsupported)
        .got("'", model.value(output).name, "'");
  }
}

}  // namespace tenon::passes
