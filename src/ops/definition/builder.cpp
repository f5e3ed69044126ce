#include "tenon/builder.h"

#include "base/error.h"
#include "base/text.h"
#include "ir/graph.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/definition/registry.h"

namespace tenon {
namespace {

AttrValue to_attr_value(const OpDef& op, const Attr& attr) {
  const AttrDef* def = op.find_attr(attr.name);
  const AttrKind kind = def ? def->kind : AttrKind::Text;
  return std::visit(
      [&](const auto& value) -> AttrValue {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::int64_t>) {
          return Dim(value);
        } else if constexpr (std::is_same_v<T, Attr::Integers>) {
          return Dims(value.begin(), value.end());
        } else if constexpr (std::is_same_v<T, std::string>) {
          if (kind == AttrKind::Element) {
            const std::optional<DType> dtype = parse_dtype(value);
            if (!dtype) throw Error(concat(op.name, ": no element type is called '", value, "'"));
            return *dtype;
          }
          if (kind == AttrKind::Integer) return parse_dim(value);
          if (kind == AttrKind::Constant) return parse_constant(value);
          if (kind == AttrKind::Type) return parse_type(value);
          return value;
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          if (kind != AttrKind::Integers) return value;
          Dims dims;
          for (const std::string& text : value) dims.push_back(parse_dim(text));
          return dims;
        } else {
          return value;
        }
      },
      attr.value);
}

Var binary(std::string_view op, Var a, Var b) { return a.builder().call(op, {a, b}); }

}  // namespace

Attr::Attr(std::string attr, bool flag) : name(std::move(attr)), value(flag) {}
Attr::Attr(std::string attr, int number) : name(std::move(attr)), value(std::int64_t{number}) {}
Attr::Attr(std::string attr, std::int64_t number) : name(std::move(attr)), value(number) {}
Attr::Attr(std::string attr, double number) : name(std::move(attr)), value(number) {}
Attr::Attr(std::string attr, const char* text) : name(std::move(attr)), value(std::string(text)) {}
Attr::Attr(std::string attr, std::string text) : name(std::move(attr)), value(std::move(text)) {}
Attr::Attr(std::string attr, Integers list) : name(std::move(attr)), value(std::move(list)) {}
Attr::Attr(std::string attr, std::vector<double> list)
    : name(std::move(attr)), value(std::move(list)) {}
Attr::Attr(std::string attr, std::vector<std::string> list)
    : name(std::move(attr)), value(std::move(list)) {}
Attr::Attr(const Attr&) = default;
Attr::Attr(Attr&&) noexcept = default;
Attr& Attr::operator=(const Attr&) = default;
Attr& Attr::operator=(Attr&&) noexcept = default;
Attr::~Attr() = default;

struct Builder::Impl {
  Graph own;
  Graph* graph = nullptr;
  std::string node_name;
};

Builder::Builder(std::string graph_name) : impl_(std::make_unique<Impl>()) {
  impl_->own.name = std::move(graph_name);
  impl_->graph = &impl_->own;
}
Builder::Builder(Graph& graph) : impl_(std::make_unique<Impl>()) { impl_->graph = &graph; }
Builder::~Builder() = default;

Graph& Builder::graph() { return *impl_->graph; }
void Builder::set_node_name(std::string name) { impl_->node_name = std::move(name); }

Var Builder::input(std::string name, std::string_view type) {
  return input(std::move(name), parse_type(type));
}
Var Builder::input(std::string name, const Type& type) {
  return {this, graph().add_input(std::move(name), type).index()};
}

Var Builder::constant(std::string_view text, std::string name) {
  return constant(parse_constant(text), std::move(name));
}
Var Builder::constant(const Constant& value, std::string name) {
  return {this, graph().add_constant(find_op("constant"), value, std::move(name)).index()};
}
Var Builder::normal(std::string name, std::string_view type, std::uint64_t seed, double deviation,
                    double mean) {
  const Type parsed = parse_type(type);
  const TensorType& tensor = parsed.tensor();
  const Var result =
      constant(Constant::normal(tensor.dtype, constants(tensor.dims), seed, mean, deviation),
               std::move(name));
  // A constant has no layout of its own: the result type is declared.
  if (!tensor.layout.is_empty()) graph().set_type(ValueId(result.id()), parsed);
  return result;
}
Var Builder::integers(const std::vector<std::int64_t>& values, std::string name) {
  return constant(Tensor::of_integers(values), std::move(name));
}
Var Builder::scalar(double value, Var like) {
  return constant(Tensor::scalar(type(like).tensor().dtype, value));
}

Var Builder::call(std::string_view op, const std::vector<Var>& operands,
                  const std::vector<Attr>& attrs, std::string name) {
  return call_all(op, operands, attrs, {std::move(name)}).front();
}

std::vector<Var> Builder::call_all(std::string_view op, const std::vector<Var>& operands,
                                   const std::vector<Attr>& attrs, std::vector<std::string> names) {
  return call_all(op, operands, attrs, std::move(names), std::vector<Graph>{});
}

std::vector<Var> Builder::call_all(std::string_view op, const std::vector<Var>& operands,
                                   Attributes attrs, std::vector<std::string> names) {
  return call_all(op, operands, std::move(attrs), std::move(names), std::vector<Graph>{});
}

std::vector<Var> Builder::call_all(std::string_view op, const std::vector<Var>& operands,
                                   const std::vector<Attr>& attrs, std::vector<std::string> names,
                                   std::vector<Graph> bodies) {
  const OpDef& def = find_op(op);
  Attributes values;
  for (const Attr& attr : attrs) values.set(attr.name, to_attr_value(def, attr));
  return call_all(op, operands, std::move(values), std::move(names), std::move(bodies));
}

std::vector<Var> Builder::call_all(std::string_view op, const std::vector<Var>& operands,
                                   Attributes attrs, std::vector<std::string> names,
                                   std::vector<Graph> bodies) {
  Graph::NewNode node;
  node.op = &find_op(op);
  for (Var operand : operands) {
    node.operands.push_back(operand.is_valid() ? ValueId(operand.id()) : ValueId());
  }
  node.attrs = std::move(attrs);
  node.bodies = std::move(bodies);
  node.results = std::move(names);
  node.name = impl_->node_name;
  const NodeId id = graph().add_node(std::move(node));
  std::vector<Var> results;
  for (ValueId value : graph().node(id).results) {
    results.push_back(value ? Var(this, value.index()) : Var());
  }
  return results;
}

void Builder::output(Var value, std::string name) {
  const ValueId id(value.id());
  if (!name.empty() && graph().value(id).name != name) graph().rename(id, std::move(name));
  graph().add_output(id);
}

const Type& Builder::type(Var value) const { return impl_->graph->value(ValueId(value.id())).type; }

std::vector<std::int64_t> Builder::shape(Var value) const {
  std::vector<std::int64_t> extents;
  for (const Dim& dim : type(value).tensor().dims) extents.push_back(dim.value().value_or(-1));
  return extents;
}

std::size_t Builder::rank(Var value) const { return type(value).tensor().rank(); }

Graph Builder::take() {
  verify(graph());
  return std::move(graph());
}

Var operator+(Var a, Var b) { return binary("add", a, b); }
Var operator-(Var a, Var b) { return binary("sub", a, b); }
Var operator*(Var a, Var b) { return binary("mul", a, b); }
Var operator/(Var a, Var b) { return binary("div", a, b); }
Var operator+(Var a, double b) { return a + a.builder().scalar(b, a); }
Var operator-(Var a, double b) { return a - a.builder().scalar(b, a); }
Var operator*(Var a, double b) { return a * a.builder().scalar(b, a); }
Var operator/(Var a, double b) { return a / a.builder().scalar(b, a); }
Var operator+(double a, Var b) { return b.builder().scalar(a, b) + b; }
Var operator-(double a, Var b) { return b.builder().scalar(a, b) - b; }
Var operator*(double a, Var b) { return b.builder().scalar(a, b) * b; }
Var operator/(double a, Var b) { return b.builder().scalar(a, b) / b; }
Var operator-(Var a) { return a.builder().call("neg", {a}); }

}  // namespace tenon
