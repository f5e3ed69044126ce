#include "codegen/specialised_body.h"

#include "ir/constraint.h"
#include "ops/families/captures.h"

#include <unordered_map>

namespace tenon::codegen {
namespace {

// Clones a graph and binds some of its symbols to numbers.
class BodyCloner {
 public:
  BodyCloner(const Graph& from, DimBindings numbers)
      : from_(from), to_(from.name), numbers_(std::move(numbers)) {}

  void add_input(ValueId value, const Type& type) {
    made_[value] = to_.add_input(from_.value(value).name, bound(type));
  }
  // Replaces a value by a constant of the enclosing graph.
  void add_constant(ValueId value, const Graph& holder, ValueId constant) {
    const Node& node = holder.node(holder.value(constant).producer);
    const NodeId id =
        to_.add_node({node.op, {}, node.attrs, {}, {from_.value(value).name}, node.name});
    made_[value] = to_.node(id).results.front();
  }
  void add_node(NodeId id) {
    const Node& node = from_.node(id);
    Graph::NewNode copy{node.op, {}, bound(node.attrs), node.bodies, {}, node.name};
    for (ValueId operand : node.operands)
      copy.operands.push_back(operand ? made_.at(operand) : ValueId{});
    for (ValueId result : node.results)
      copy.results.push_back(result ? from_.value(result).name : "_");
    const NodeId made = to_.add_node(std::move(copy));
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      if (!node.results[k]) continue;
      const ValueId result = to_.node(made).results[k];
      made_[node.results[k]] = result;
      if (from_.has_stated_type(node.results[k]))
        to_.set_type(result, bound(from_.value(node.results[k]).type));
    }
  }
  void add_output(ValueId value) { to_.add_output(made_.at(value)); }
  Graph take() {
    copy_constraints(from_, to_);
    return std::move(to_);
  }

 private:
  Type bound(const Type& type) const {
    if (!type.is_tensor() || numbers_.empty()) return type;
    TensorType tensor = type.tensor();
    tensor.dims = substitute(tensor.dims, numbers_);
    return tensor;
  }
  Attributes bound(const Attributes& attrs) const {
    if (numbers_.empty()) return attrs;
    Attributes made;
    for (const auto& [name, value] : attrs) {
      if (const auto* dim = std::get_if<Dim>(&value)) {
        made.set(name, dim->substitute(numbers_));
      } else if (const auto* dims = std::get_if<Dims>(&value)) {
        made.set(name, substitute(*dims, numbers_));
      } else {
        made.set(name, value);
      }
    }
    return made;
  }

  const Graph& from_;
  Graph to_;
  const DimBindings numbers_;
  std::unordered_map<ValueId, ValueId> made_;
};

bool has_numbers_alone(const Type& type) {
  return type.is_tensor() && all_constant(type.tensor().dims);
}

}  // namespace

SpecialisedBody specialised_body(const Graph& graph, const Node& node, const Graph& body,
                                 const std::vector<Type>& types) {
  const std::size_t captured = captured_count(node), first = body.inputs().size() - captured;
  const auto sunk = [&](std::size_t k) -> ValueId {
    if (k < first) return {};
    const ValueId operand = node.operands[node.operands.size() - captured + k - first];
    return operand && graph.constant_of(operand) ? operand : ValueId{};
  };
  DimBindings numbers;
  for (std::size_t k = 0; k < body.inputs().size(); ++k) {
    const Type& declared = body.value(body.inputs()[k]).type;
    if (!declared.is_tensor() || !types[k].is_tensor() ||
        declared.tensor().rank() != types[k].tensor().rank())
      continue;
    for (std::size_t axis = 0; axis < declared.tensor().rank(); ++axis) {
      const auto symbol = declared.tensor().dims[axis].symbol_name();
      const Dim& dim = types[k].tensor().dims[axis];
      if (symbol && dim.is_constant()) numbers.emplace(*symbol, dim);
    }
  }
  BodyCloner copy(body, numbers);
  SpecialisedBody made;
  for (std::size_t k = 0; k < body.inputs().size(); ++k) {
    const ValueId input = body.inputs()[k];
    if (const ValueId constant = sunk(k)) {
      copy.add_constant(input, graph, constant);
      continue;
    }
    const Type& declared = body.value(input).type;
    const bool says_more = !declared.is_known() && has_numbers_alone(types[k]);
    copy.add_input(input, says_more ? types[k] : declared);
    made.inputs.push_back(k);
  }
  for (NodeId inner : body.nodes_in_order()) copy.add_node(inner);
  for (ValueId output : body.outputs()) copy.add_output(output);
  made.graph = copy.take();
  return made;
}

}  // namespace tenon::codegen
