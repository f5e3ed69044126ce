#include "documents/relay/export_node.h"

#include "base/error.h"
#include "documents/relay/types.h"
#include "frontends/node_attrs.h"

namespace tenon::documents::relay {

ExprId ExprBuilder::call(std::string_view op, const std::vector<ExprId>& arguments,
                         const std::vector<Named>& attributes) const {
  const ExprId callee = module_->add(RelayExpr::of(RelayExpr::Kind::Operator, block_, op));
  const ExprId made = call(callee, arguments);
  for (const Named& attribute : attributes) {
    module_->at(made).attributes.push_back({attribute.name, attribute.value, 0});
  }
  return made;
}

ExprId ExprBuilder::call(ExprId function, const std::vector<ExprId>& arguments) const {
  RelayExpr expr = RelayExpr::of(RelayExpr::Kind::Call, block_);
  expr.parts = {function};
  expr.parts.insert(expr.parts.end(), arguments.begin(), arguments.end());
  return module_->add(std::move(expr));
}

ExprId ExprBuilder::tuple(const std::vector<ExprId>& fields) const {
  RelayExpr expr = RelayExpr::of(RelayExpr::Kind::Tuple, block_);
  expr.parts = fields;
  return module_->add(std::move(expr));
}

ExprId ExprBuilder::field(ExprId tuple, std::size_t index) const {
  RelayExpr expr = RelayExpr::of(RelayExpr::Kind::Projection, block_);
  expr.parts = {tuple};
  expr.index = static_cast<std::int64_t>(index);
  return module_->add(std::move(expr));
}

ExprId ExprBuilder::variable(const std::string& name, const RelayType& type) const {
  RelayExpr expr = RelayExpr::of(RelayExpr::Kind::Variable, block_, name);
  expr.annotation = type;
  return module_->add(std::move(expr));
}

ExprId ExprBuilder::real(double value, DType dtype) const {
  RelayExpr expr = RelayExpr::of(RelayExpr::Kind::Scalar, block_);
  const bool is_plain = dtype == DType::F32 || dtype == DType::F64;
  expr.literal.value.emplace<RealLiteral>(
      RealLiteral{value, is_plain ? dtype_name(dtype) : "float32"});
  expr.type = tensor_type({}, is_plain ? dtype_name(dtype) : "float32");
  const ExprId scalar = module_->add(std::move(expr));
  return is_plain ? scalar : call("cast", {scalar}, {{"dtype", to_attribute(dtype_name(dtype))}});
}

ExprId ExprBuilder::integer(std::int64_t value, DType dtype) const {
  RelayExpr expr = RelayExpr::of(RelayExpr::Kind::Scalar, block_);
  expr.literal.value.emplace<IntegerLiteral>(
      IntegerLiteral{value, dtype == DType::I64 ? "int64" : "int32"});
  expr.type = tensor_type({}, dtype == DType::I64 ? "int64" : "int32");
  return module_->add(std::move(expr));
}

ExportNode::ExportNode(const Graph& graph, NodeId id, ExprBuilder builder,
                       std::vector<ExprId> operands, bool is_grouped)
    : graph_(graph),
      node_(graph.node(id)),
      build_(builder),
      operands_(std::move(operands)),
      is_grouped_(is_grouped) {}

void ExportNode::need_group() const {
  if (!is_grouped_) throw NeedsComposite();
}

bool ExportNode::has(std::string_view operand) const {
  const auto position = node_.op->operand_index(operand);
  return position && *position < node_.operands.size() && node_.operands[*position];
}
ExprId ExportNode::operand(std::string_view name) const {
  TENON_ASSERT(has(name), "the rule asks for an operand that is there");
  return operands_[*node_.op->operand_index(name)];
}
ValueId ExportNode::value(std::string_view operand) const {
  return has(operand) ? node_.operands[*node_.op->operand_index(operand)] : ValueId();
}
const TensorType& ExportNode::type(std::string_view operand) const {
  return graph_.value(value(operand)).type.tensor();
}
const TensorType& ExportNode::type(std::size_t position) const {
  return graph_.value(node_.operands[position]).type.tensor();
}
const TensorType& ExportNode::result_type(std::size_t position) const {
  return graph_.value(node_.results[position]).type.tensor();
}
bool ExportNode::wants(std::size_t result) const {
  return result < node_.results.size() && node_.results[result];
}

std::int64_t ExportNode::integer(std::string_view attr) const {
  if (const std::optional<std::int64_t> number = frontends::integer_of(node_, attr)) return *number;
  throw unsupported(concat("'", attr, "' is no number"));
}
Integers ExportNode::integers(std::string_view attr) const {
  const auto* dims = frontends::attr_of<Dims>(node_, attr);
  return dims ? numbers(*dims) : Integers{};
}
double ExportNode::real(std::string_view attr) const {
  if (const auto* number = frontends::attr_of<double>(node_, attr)) return *number;
  throw unsupported(concat("'", attr, "' is no number"));
}
bool ExportNode::flag(std::string_view attr) const { return frontends::flag_of(node_, attr); }
std::string ExportNode::text(std::string_view attr) const {
  return frontends::text_of(node_, attr);
}
std::optional<DType> ExportNode::dtype(std::string_view attr) const {
  const auto* dtype = frontends::attr_of<DType>(node_, attr);
  return dtype ? std::optional<DType>(*dtype) : std::nullopt;
}

void ExportNode::refuse_dynamic() const {
  for (const OperandDef& operand : node_.op->operands) {
    if (operand.is_dynamic_attribute && has(operand.name) &&
        !graph_.constant_of(value(operand.name))) {
      throw unsupported(concat("'", operand.name, "' is known at run time only"));
    }
  }
}

Integers ExportNode::numbers(const Dims& dims) const {
  if (!all_constant(dims)) throw unsupported("an extent is known at run time only");
  return constants(dims);
}

Error ExportNode::unsupported(std::string why) const {
  return Error(concat(node_.op->name, ": ", why), ErrorKind::Unsupported);
}

}  // namespace tenon::documents::relay
