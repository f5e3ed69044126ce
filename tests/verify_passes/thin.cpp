#include "thin.h"

namespace tenon::testing {
namespace {

// Ranks, kernels and strides are below this.
constexpr std::int64_t kLeastThinned = 17;

class Thinning {
 public:
  Thinning(std::int64_t factor, bool thins_inputs) : factor_(factor), thins_inputs_(thins_inputs) {}

  Graph run(const Graph& graph) const {
    Graph thin(graph.name);
    IdMap<ValueId, ValueId> copies(graph.value_id_bound());
    for (ValueId input : graph.inputs()) {
      Type type = graph.value(input).type;
      if (thins_inputs_ && type.is_tensor()) {
        for (Dim& dim : type.tensor().dims) dim = thinned(dim);
      }
      copies[input] = thin.add_input(graph.value(input).name, type);
    }
    for (NodeId id : graph.nodes_in_order()) {
      const Node& node = graph.node(id);
      Graph::NewNode copy{node.op, {}, thinned(node.attrs), {}, {}, node.name};
      for (const Graph& body : node.bodies) copy.bodies.push_back(run(body));
      for (ValueId operand : node.operands)
        copy.operands.push_back(operand ? copies[operand] : ValueId{});
      for (ValueId result : node.results)
        copy.results.push_back(result ? graph.value(result).name : "_");
      const NodeId made = thin.add_node(std::move(copy));
      for (std::size_t k = 0; k < node.results.size(); ++k) {
        if (!node.results[k]) continue;
        const ValueId result = thin.node(made).results[k];
        copies[node.results[k]] = result;
        const Type& was = graph.value(node.results[k]).type;
        if (graph.has_stated_type(node.results[k])) {  // of a constant, its layout
          Type stated = thin.value(result).type;
          stated.tensor().layout = was.tensor().layout;
          thin.set_type(result, stated);
        }
      }
    }
    for (ValueId output : graph.outputs()) thin.add_output(copies[output]);
    return thin;
  }

 private:
  std::int64_t thinned(std::int64_t extent) const {
    return extent >= kLeastThinned && extent % factor_ == 0 ? extent / factor_ : extent;
  }
  Dim thinned(const Dim& dim) const {
    return dim.is_constant() ? Dim(thinned(dim.constant())) : dim;
  }

  Constant thinned(const Constant& constant) const {
    Shape shape = constant.shape();
    for (std::int64_t& extent : shape) extent = thinned(extent);
    switch (constant.kind()) {
      case Constant::Kind::Splat:
        return Constant::splat(constant.stored(), shape);
      case Constant::Kind::Normal:
        return Constant::normal(constant.dtype(), shape, constant.seed(), constant.first(),
                                constant.second());
      case Constant::Kind::Uniform:
        return Constant::uniform(constant.dtype(), shape, constant.seed(), constant.first(),
                                 constant.second());
      case Constant::Kind::Dense:
      case Constant::Kind::Scaled:  // only passes create these
        break;
    }
    return constant;  // explicit elements: axes, epsilons
  }

  Attributes thinned(const Attributes& attrs) const {
    Attributes result;
    for (const auto& [name, value] : attrs) {
      if (const auto* constant = std::get_if<Constant>(&value)) {
        result.set(name, thinned(*constant));
      } else if (const auto* dim = std::get_if<Dim>(&value)) {
        result.set(name, thinned(*dim));
      } else if (const auto* dims = std::get_if<Dims>(&value)) {
        Dims changed = *dims;
        for (Dim& extent : changed) extent = thinned(extent);
        result.set(name, changed);
      } else {
        result.set(name, value);
      }
    }
    return result;
  }

  std::int64_t factor_;
  bool thins_inputs_;
};

}  // namespace

Graph thinned(const Graph& graph, std::int64_t factor, bool thins_inputs) {
  return Thinning(factor, thins_inputs).run(graph);
}

}  // namespace tenon::testing
