#include "ops/families/repeated_gradient.h"

#include "base/error.h"
#include "ops/families/body_gradient.h"

#include <algorithm>

namespace tenon::inline ops {
namespace {

using Integers = std::vector<std::int64_t>;

Type without_axis(TensorType type, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(type.rank());
  type.dims.erase(type.dims.begin() + (axis < 0 ? axis + rank : axis));
  type.layout = {};
  return type;
}

NodeId node_of(const Gradient& op) {
  return op.build().graph().value(ValueId(op.result("ys").id())).producer;
}

bool is_float_tensor(const Type& type) { return type.is_tensor() && is_float(type.tensor().dtype); }

// Gradient of one node: the body of the reverse scan, and the scan's operands and results.
class RepeatedGradient {
 public:
  RepeatedGradient(const Repetition& how, Gradient& op)
      : how_(how),
        op_(op),
        graph_(op.build().graph()),
        node_(node_of(op)),
        first_(how.leading.size()),
        body_(graph_.node(node_).bodies.at(0), body_types(), op.differentiate()) {}

  void add() {
    choose_inputs();
    take_upstream();
    const std::vector<ValueId> gradients = body_.differentiate(by_);
    std::vector<ValueId> carried, sums, steps;
    for (std::size_t k = 0; k < by_.size(); ++k) {
      const std::size_t at = by_[k] - first_;
      if (at < how_.carried) {
        carried.push_back(gradients[k]);
      } else if (at < captured_begin()) {
        steps.push_back(gradients[k]);
      } else {
        const auto [before, sum] = body_.add_sum(by_[k], gradients[k]);
        sum_inputs_.push_back(before);
        sums.push_back(sum);
      }
    }
    std::vector<ValueId> outputs = carried;
    outputs.insert(outputs.end(), sums.begin(), sums.end());
    outputs.insert(outputs.end(), steps.begin(), steps.end());
    sort_reads(outputs);
    extend_forward();
    run_backward(outputs, carried.size() + sums.size());
  }

 private:
  std::size_t captured_begin() const { return how_.carried + how_.inputs.size(); }
  std::size_t operand_of(std::size_t body_input) const {
    return how_.first_operand + body_input - first_;
  }
  Var operand(std::size_t body_input) const {
    return {&op_.build(), graph_.node(node_).operands[operand_of(body_input)].index()};
  }

  std::vector<Type> body_types() const {
    std::vector<Type> types = how_.leading;
    const Node& node = graph_.node(node_);
    for (std::size_t k = 0; how_.first_operand + k < node.operands.size(); ++k) {
      // Carried values may change their extents between iterations; the result type allows for
      // that.
      const bool is_carried = k < how_.carried && node.results[k];
      Type type =
          graph_.value(is_carried ? node.results[k] : node.operands[how_.first_operand + k]).type;
      const bool is_scanned = k >= how_.carried && k < captured_begin();
      if (is_scanned && type.is_tensor()) {
        type = without_axis(type.tensor(), how_.inputs[k - how_.carried].axis);
      }
      types.push_back(type);
    }
    return types;
  }

  void choose_inputs() {
    for (std::size_t k = first_; k < body_.input_count(); ++k) {
      if (body_.is_float_input(k)) by_.push_back(k);
    }
  }

  void take_upstream() {
    for (std::size_t k : by_) {
      if (k - first_ >= how_.carried) continue;
      carried_inputs_.push_back(body_.add_upstream(how_.leading_outputs + k - first_));
      carried_operands_.push_back(op_.upstream(k - first_));
    }
    for (std::size_t k = 0; k < how_.outputs.size(); ++k) {
      const ValueId result = graph_.node(node_).results[how_.carried + k];
      if (!result || !is_float_tensor(graph_.value(result).type)) continue;
      const Repetition::Stacked& stacked = how_.outputs[k];
      scanned_inputs_.push_back(body_.add_upstream(how_.leading_outputs + how_.carried + k));
      add_scanned(op_.upstream(how_.carried + k), stacked.axis, !stacked.is_reversed);
    }
  }

  void add_scanned(Var value, std::int64_t axis, bool is_reversed) {
    scanned_operands_.push_back(value);
    axes_.push_back(axis);
    reverse_.push_back(is_reversed);
  }

  // Slices and captured values are still available to the gradient; the forward node must store the
  // other values.
  void sort_reads(const std::vector<ValueId>& outputs) {
    const std::vector<ValueId> inputs = body_.body_inputs();
    for (ValueId value : body_.read_by(outputs)) {
      const auto found = std::ranges::find(inputs, value);
      const auto at = static_cast<std::size_t>(found - inputs.begin());
      if (found == inputs.end() || at < first_ + how_.carried) {
        saved_.push_back(value);
      } else if (at < first_ + captured_begin()) {
        const Repetition::Stacked& stacked = how_.inputs[at - first_ - how_.carried];
        scanned_inputs_.push_back(value);
        add_scanned(operand(at), stacked.axis, !stacked.is_reversed);
      } else {
        captured_inputs_.push_back(value);
        captured_operands_.push_back(operand(at));
      }
    }
    // The length of a scanned operand determines the iteration count, so at least one is needed.
    if (saved_.empty() && scanned_operands_.empty()) saved_.push_back(body_.input(0));
  }

  // Replaces the node by one with additional results and redirects its uses.
  void extend_forward() {
    if (saved_.empty()) return;
    std::vector<ValueId> outputs = body_.body_outputs();
    outputs.insert(outputs.end(), saved_.begin(), saved_.end());
    const Node old = graph_.node(node_);
    Graph::NewNode node{old.op, old.operands, old.attrs, {}, {}, old.name};
    node.bodies.push_back(body_.part(body_.body_inputs(), outputs));
    node.results.resize(old.results.size() + saved_.size());
    const std::vector<ValueId> results =
        graph_.node(graph_.add_node(std::move(node), node_)).results;
    for (std::size_t k = 0; k < old.results.size(); ++k) {
      if (graph_.has_stated_type(old.results[k]))
        graph_.set_type(results[k], graph_.value(old.results[k]).type);
      graph_.replace_uses(old.results[k], results[k]);
      graph_.swap_names(old.results[k], results[k]);
    }
    for (std::size_t k = 0; k < saved_.size(); ++k) {
      scanned_inputs_.push_back(saved_[k]);
      add_scanned(Var(&op_.build(), results[old.results.size() + k].index()), 0, true);
    }
  }

  void run_backward(const std::vector<ValueId>& outputs, std::size_t state_count) {
    Builder& build = op_.build();
    std::vector<ValueId> inputs;
    std::vector<Var> operands;
    const auto append = [&](const std::vector<ValueId>& more, const std::vector<Var>& values) {
      inputs.insert(inputs.end(), more.begin(), more.end());
      operands.insert(operands.end(), values.begin(), values.end());
    };
    append(carried_inputs_, carried_operands_);
    std::vector<Var> zeros;
    for (std::size_t k : by_) {
      if (k - first_ < captured_begin()) continue;
      const TensorType type = build.type(operand(k)).tensor();
      zeros.push_back(expand_to(build.constant(Tensor::scalar(type.dtype, 0)), type.dims));
    }
    append(sum_inputs_, zeros);
    append(scanned_inputs_, scanned_operands_);
    append(captured_inputs_, captured_operands_);
    Integers output_axes, output_reverse;
    for (std::size_t k : by_) {
      if (k - first_ < how_.carried || k - first_ >= captured_begin()) continue;
      const Repetition::Stacked& stacked = how_.inputs[k - first_ - how_.carried];
      output_axes.push_back(stacked.axis);
      output_reverse.push_back(!stacked.is_reversed);
    }
    const std::vector<Attr> attrs = {
        {"state_count", static_cast<std::int64_t>(state_count)},
        {"input_count", static_cast<std::int64_t>(scanned_operands_.size())},
        {"input_axes", axes_},
        {"input_reverse", reverse_},
        {"output_axes", output_axes},
        {"output_reverse", output_reverse}};
    const std::vector<Var> results =
        build.call_all("scan", operands, attrs, std::vector<std::string>(outputs.size()),
                       {body_.part(inputs, outputs)});
    // The scan's results: gradients of carried values, then of captured values, then of slices.
    std::size_t carried = 0, sum = carried_inputs_.size(), step = state_count;
    for (std::size_t k : by_) {
      const std::size_t at = k - first_;
      op_.add(operand_of(k), results[at < how_.carried       ? carried++
                                     : at < captured_begin() ? step++
                                                             : sum++]);
    }
  }

  const Repetition& how_;
  Gradient& op_;
  Graph& graph_;
  NodeId node_;
  std::size_t first_;  // first operand among the body's inputs
  BodyGradient body_;
  std::vector<std::size_t> by_;  // inputs of the body
  std::vector<ValueId> carried_inputs_, sum_inputs_, scanned_inputs_, captured_inputs_, saved_;
  std::vector<Var> carried_operands_, scanned_operands_, captured_operands_;
  Integers axes_, reverse_;
};

}  // namespace

void add_repeated_gradient(const Repetition& repetition, Gradient& op) {
  RepeatedGradient(repetition, op).add();
}

}  // namespace tenon::inline ops
