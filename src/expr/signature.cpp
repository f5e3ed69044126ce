#include "expr/signature.h"

#include "expr/fused_groups.h"
#include "ir/text.h"

#include <unordered_map>

namespace tenon::inline expr {
namespace {

// Printing larger constants costs more than the sharing saves.
constexpr std::int64_t kMaxElements = 16;

class SignatureWriter {
 public:
  // Returns false for a node that a text cannot identify.
  bool write(const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    const bool is_group = is_fused_group(graph, id);
    if (!node.bodies.empty() && !is_group) return false;
    text += node.op->name;
    for (const auto& [name, value] : node.attrs) {
      (text += ' ') += name;
      if (const auto* constant = std::get_if<Constant>(&value)) {
        if (!write_constant(constant)) return false;
      } else {
        (text += '=') += print(value);
      }
    }
    text += '(';
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      if (!write_operand(graph, node, k)) return false;
    }
    text += ')';
    for (ValueId result : node.results) {
      if (result) write_value(graph, result);
      text += ',';
    }
    return !is_group || write_body(node.bodies.front());
  }

  // Writes the nodes as members of one kernel.
  bool write_group(const Graph& graph, std::span<const NodeId> nodes) {
    writes_numbers_ = true;
    for (NodeId id : nodes) {
      if (!write(graph, id)) return false;
      text += ';';
    }
    return true;
  }

  std::string text;

 private:
  bool write_operand(const Graph& graph, const Node& node, std::size_t k) {
    const ValueId operand = node.operands[k];
    if (operand) {
      write_value(graph, operand);
      const bool is_dynamic =
          k < node.op->operands.size() && node.op->operands[k].is_dynamic_attribute;
      const Constant* constant = graph.constant_of(operand);
      const bool is_number = writes_numbers_ && constant && constant->size() == 1;
      if ((is_dynamic || is_number) && !write_constant(constant)) return false;
    }
    text += ',';
    return true;
  }

  bool write_constant(const Constant* constant) {
    if (!constant) return true;
    if (constant->kind() == Constant::Kind::Dense && constant->size() > kMaxElements) return false;
    (text += '=') += print(*constant);
    return true;
  }

  // Writes a body with a value numbering of its own.
  bool write_body(const Graph& body) {
    SignatureWriter inside;
    for (ValueId input : body.inputs()) (inside.text += inside.number_of(input)) += ',';
    for (NodeId id : body.nodes_in_order()) {
      inside.text += ';';
      const ValueId result = body.node(id).results.front();
      if (const Constant* constant = result ? body.constant_of(result) : nullptr) {
        inside.text += inside.number_of(result);
        if (!inside.write_constant(constant)) return false;
      } else if (!inside.write(body, id)) {
        return false;
      }
    }
    for (ValueId output : body.outputs()) (inside.text += ' ') += inside.number_of(output);
    ((text += '{') += inside.text) += '}';
    return true;
  }

  void write_value(const Graph& graph, ValueId value) {
    ((text += number_of(value)) += ':') += to_string(graph.value(value).type);
  }

  std::string number_of(ValueId value) {
    return std::to_string(numbers_.try_emplace(value, numbers_.size()).first->second);
  }

  std::unordered_map<ValueId, std::size_t> numbers_;
  bool writes_numbers_ = false;
};

}  // namespace

std::string signature_of(const Graph& graph, NodeId node) {
  SignatureWriter writer;
  return writer.write(graph, node) ? std::move(writer.text) : "";
}

std::string signature_of(const Graph& graph, std::span<const NodeId> nodes) {
  SignatureWriter writer;
  return writer.write_group(graph, nodes) ? std::move(writer.text) : "";
}

}  // namespace tenon::inline expr
