#include "passes/rewrite/match.h"

#include "base/error.h"
#include "base/text.h"
#include "ops/definition/registry.h"

#include <algorithm>

namespace tenon::passes::rewrite {

PatternBinding& Match::binding(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  TENON_ASSERT(found != names_.end(), concat("the rule has a variable '", name, "'"));
  return bindings_[static_cast<std::size_t>(found - names_.begin())];
}

bool Match::has(std::string_view name) const {
  const PatternBinding& found = binding(name);
  return found.is_bound && (found.value || found.attr);
}

double Match::decimal(std::string_view name) const {
  const PatternBinding& found = binding(name);
  const TensorType* held = type(found.value);
  if (!held || held->dtype != DType::F32) return found.number;
  return parse_real(format_real(static_cast<float>(found.number))).value_or(found.number);
}

const Node& Match::node(std::string_view name) const {
  return graph_.node(graph_.value(value(name)).producer);
}

const TensorType* Match::type(ValueId value) const {
  if (!value || !graph_.value(value).type.is_tensor()) return nullptr;
  return &types_.emplace_back(graph_.value(value).type.tensor());
}

const Type& Match::root_type() const {
  if (!root_type_) root_type_ = graph_.value(root_value()).type;
  return *root_type_;
}

const TensorType* Match::type(std::string_view name) const { return type(value(name)); }

void Match::set(std::string_view name, AttrValue attr) const {
  PatternBinding& changed = binding(name);
  changed.is_bound = true;
  changed.attr = std::move(attr);
}

void Match::set_value(std::string_view name, ValueId value) const {
  PatternBinding& changed = binding(name);
  changed.is_bound = true;
  changed.value = value;
}

bool Match::refuse(std::string reason) const {
  refusal_ = std::move(reason);
  return false;
}

bool Match::is_read_once(ValueId value) const {
  return use_count(value) == 1 && !graph_.is_output(value);
}

bool Match::is_alone() const {
  for (std::size_t k = 1; k < inside_.size(); ++k) {
    for (ValueId result : graph_.node(inside_[k]).results) {
      if (!result) continue;
      if (graph_.is_output(result)) return refuse("an intermediate value is a graph output");
      for (NodeId reader : graph_.readers(result)) {
        if (uses_.is_dead[reader]) continue;
        if (std::find(inside_.begin(), inside_.end(), reader) == inside_.end()) {
          return refuse("an intermediate value has other readers");
        }
      }
    }
  }
  return true;
}

ValueId Match::make(std::string_view op, std::vector<ValueId> operands, Attributes attrs) const {
  Graph::NewNode node;
  node.op = &find_op(op);
  node.operands = std::move(operands);
  node.attrs = std::move(attrs);
  made_.push_back(graph_.add_node(std::move(node), root_));
  return graph_.node(made_.back()).results.front();
}

ValueId Match::make_constant(Constant value) const {
  return make("constant", {}, {{"value", std::move(value)}});
}

ValueId Match::make_scalar(double value, DType dtype) const {
  return make_constant(Constant(Tensor::scalar(dtype, value)));
}

ValueId Match::make_reshape(ValueId value, Dims shape) const {
  const TensorType* given = type(value);
  if (given && given->dims == shape) return value;
  bool has_zero = false;
  for (const Dim& extent : shape) {
    if (!is_written_down(extent)) {
      refuse("an extent of the result only shows when the graph runs");
      return {};
    }
    // Without `allow_zero`, an extent of 0 would copy the operand's extent.
    has_zero |= extent.range().lo <= 0;
  }
  Attributes attrs{{"shape", std::move(shape)}};
  if (has_zero) attrs.set("allow_zero", true);
  return make("reshape", {value}, std::move(attrs));
}

bool is_written_down(const Dim& dim) {
  if (dim.is_constant()) return true;
  SymbolRanges symbols;
  dim.collect_symbols(symbols);
  return std::all_of(symbols.begin(), symbols.end(), [](const auto& symbol) {
    return symbol.first.find('#') == std::string::npos && !symbol.first.starts_with('?');
  });
}

}  // namespace tenon::passes::rewrite
