#include "ops/definition/element_type.h"

#include "base/error.h"

#include <algorithm>
#include <unordered_map>

namespace tenon::inline ops {
namespace {

constexpr int kMostDepth = 200;
constexpr std::size_t kMostRank = 4;
// Divisible by two, three and four.
constexpr std::int64_t kExtent = 12;

class ElementTypes {
 public:
  explicit ElementTypes(const Graph& graph) : graph_(graph) {}

  std::optional<DType> of(ValueId value, int depth = 0) {
    const Type& type = graph_.value(value).type;
    if (type.is_tensor()) return type.tensor().dtype;
    const NodeId maker = graph_.value(value).producer;
    if (type.is_known() || !maker || depth > kMostDepth) return std::nullopt;
    if (const auto known = known_.find(value); known != known_.end()) return known->second;
    const Node& node = graph_.node(maker);
    std::size_t result = 0;
    while (node.results[result] != value) ++result;
    const std::optional<DType> found =
        node.bodies.empty() ? by_trial(node, result, depth) : of_bodies(node, result);
    known_[value] = found;
    return found;
  }

 private:
  // Common element type of branches whose tensors have different ranks.
  static std::optional<DType> of_bodies(const Node& node, std::size_t result) {
    std::optional<DType> common;
    for (const Graph& body : node.bodies) {
      if (body.outputs().size() != node.results.size()) return std::nullopt;
      const auto given = ElementTypes(body).of(body.outputs()[result]);
      if (!given || (common && *common != *given)) return std::nullopt;
      common = given;
    }
    return common;
  }

  // If inference accepts no trial rank, the op is assumed to return its first operand's element
  // type.
  std::optional<DType> by_trial(const Node& node, std::size_t result, int depth) {
    if (!node.op->infer || node.operands.empty() || !node.operands.front()) return std::nullopt;
    std::vector<std::optional<DType>> dtypes;
    for (const ValueId operand : node.operands)
      dtypes.push_back(operand ? of(operand, depth + 1) : std::nullopt);
    const std::vector<OperandDef>& defined = node.op->operands;
    const bool is_any_number = !defined.empty() && defined.back().is_variadic;
    const std::size_t count =
        std::max(node.operands.size(), defined.size() - (is_any_number ? 1 : 0));
    for (std::size_t rank = 0; rank <= kMostRank; ++rank) {
      std::vector<OperandFacts> facts(count);
      std::vector<bool> present(count);
      for (std::size_t k = 0; k < node.operands.size(); ++k) {
        const ValueId operand = node.operands[k];
        if (!operand) continue;
        present[k] = true;
        facts[k] = {trial_type(operand, dtypes[k], rank), graph_.known_elements(operand)};
      }
      try {
        const InferOutput inferred = node.op->infer(
            InferInput{node.attrs, facts, present, node.bodies, node.results.size()});
        if (result < inferred.types.size() && inferred.types[result].is_tensor())
          return inferred.types[result].tensor().dtype;
      } catch (const Error&) {
        continue;  // this rank does not fit
      }
    }
    return dtypes.front();
  }

  Type trial_type(ValueId operand, std::optional<DType> dtype, std::size_t rank) const {
    const Type& type = graph_.value(operand).type;
    if (!type.is_tensor()) return dtype ? Type(TensorType{*dtype, Dims(rank, kExtent), {}}) : type;
    TensorType trial = type.tensor();
    for (Dim& dim : trial.dims) {
      if (!dim.is_constant()) dim = kExtent;
    }
    return trial;
  }

  const Graph& graph_;
  std::unordered_map<ValueId, std::optional<DType>> known_;
};

}  // namespace

std::optional<DType> element_type(const Graph& graph, ValueId value) {
  return ElementTypes(graph).of(value);
}

}  // namespace tenon::inline ops
