#include "frontends/onnx/import_node.h"

#include "base/error.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/schema/onnx.pb.h"
#include "frontends/onnx/tensor_proto.h"
#include "ops/definition/element_type.h"

#include <algorithm>

namespace tenon::frontends::onnx {
namespace {

using onnx_schema::AttributeProto;

constexpr std::int64_t kMaxMadeElements = std::int64_t{1} << 20;

// IR version 1 does not state an attribute's type: it is the type of the field that is present.
bool holds(const AttributeProto& attr, AttributeProto::AttributeType type) {
  if (attr.type() != AttributeProto::UNDEFINED) return attr.type() == type;
  switch (type) {
    case AttributeProto::FLOAT:
      return attr.has_f();
    case AttributeProto::INT:
      return attr.has_i();
    case AttributeProto::STRING:
      return attr.has_s();
    case AttributeProto::TENSOR:
      return attr.has_t();
    case AttributeProto::GRAPH:
      return attr.has_g();
    case AttributeProto::SPARSE_TENSOR:
      return attr.has_sparse_tensor();
    case AttributeProto::TYPE_PROTO:
      return attr.has_tp();
    default:
      return true;  // a list, which may be empty
  }
}

void require(const AttributeProto& attr, AttributeProto::AttributeType type,
             std::string_view type_name) {
  if (holds(attr, type)) return;
  throw Error(concat("attribute '", attr.name(), "' is not ", type_name))
      .got(AttributeProto::AttributeType_Name(attr.type()));
}

}  // namespace

NodeImport::NodeImport(OnnxImporter& importer, const onnx_schema::NodeProto& node, int opset,
                       Builder& builder)
    : build(builder),
      importer_(importer),
      node_(node),
      opset_(opset),
      first_new_value_(static_cast<std::uint32_t>(builder.graph().value_id_bound())) {}

std::string_view NodeImport::op_type() const { return node_.op_type(); }

std::size_t NodeImport::input_count() const {
  auto count = static_cast<std::size_t>(node_.input_size());
  const auto is_given = [&](std::size_t index) {
    const std::string& name = node_.input(static_cast<int>(index));
    return !name.empty() && importer_.scope().values.at(name).is_valid();
  };
  while (count > 0 && !is_given(count - 1)) --count;
  return count;
}

void NodeImport::refuse_further_inputs() const {
  if (input_count() <= asked_inputs_) return;
  throw Error("it has too many inputs").expected("at most ", asked_inputs_).got(input_count());
}

bool NodeImport::has_input(std::size_t index) const { return input_or_none(index).is_valid(); }

Var NodeImport::input(std::size_t index) const {
  const Var value = input_or_none(index);
  if (!value.is_valid()) throw Error(concat("input ", index, " is missing"));
  return value;
}

Var NodeImport::input_or_none(std::size_t index) const {
  asked_inputs_ = std::max(asked_inputs_, index + 1);
  if (index >= static_cast<std::size_t>(node_.input_size())) return {};
  const std::string& name = node_.input(static_cast<int>(index));
  return name.empty() ? Var() : importer_.scope().values.at(name);
}

std::vector<Var> NodeImport::inputs() const {
  std::vector<Var> values;
  for (std::size_t k = 0; k < input_count(); ++k) values.push_back(input_or_none(k));
  return values;
}

std::optional<Tensor> NodeImport::constant_input(std::size_t index) const {
  const Var value = input_or_none(index);
  if (!value.is_valid()) return std::nullopt;
  if (const Constant* constant = importer_.constant_of(importer_.scope(), value)) {
    // Splats are not stored in the file and may have any size; inputs that handlers read as
    // constants are small.
    const bool is_stored = constant->kind() == Constant::Kind::Dense;
    if (!is_stored && constant->size() > kMaxMadeElements) return std::nullopt;
    return constant->materialise();
  }
  // Elements known from shape arithmetic count as constants.
  const Dims* known = build.graph().known_elements(ValueId(value.id()));
  if (!known || !type(value).is_tensor() || !all_constant(*known)) return std::nullopt;
  const TensorType& tensor = type(value).tensor();
  if (!all_constant(tensor.dims)) return std::nullopt;
  return Tensor::of(tensor.dtype, constants(tensor.dims), constants(*known));
}

DType NodeImport::dtype(Var value) const {
  if (!type(value).is_tensor()) {
    if (const auto late = element_type(build.graph(), ValueId(value.id()))) return *late;
    throw Error(concat("the element type of '", name_of(value), "' is not known"),
                ErrorKind::Unsupported)
        .got(to_string(type(value)))
        .hint("give its type in the model's value_info");
  }
  return type(value).tensor().dtype;
}

Dims NodeImport::dims(Var value) const {
  if (!type(value).is_tensor())
    unsupported("it needs the rank of its inputs before the model runs");
  return type(value).tensor().dims;
}

Var NodeImport::with_extents(Var value, DType dtype, Dims dims) {
  if (type(value).is_known()) return value;
  const Var stated = call("identity", {value});
  build.graph().set_type(ValueId(stated.id()), TensorType{dtype, std::move(dims), {}});
  return stated;
}

std::optional<std::size_t> NodeImport::rank(Var value) const {
  if (!type(value).is_tensor()) return std::nullopt;
  return type(value).tensor().rank();
}

std::size_t NodeImport::output_count() const {
  auto count = static_cast<std::size_t>(node_.output_size());
  while (count > 0 && !wants_output(count - 1)) --count;
  return count;
}

bool NodeImport::wants_output(std::size_t index) const {
  return index < static_cast<std::size_t>(node_.output_size()) &&
         !node_.output(static_cast<int>(index)).empty();
}

const AttributeProto* NodeImport::find_attr(std::string_view name) const {
  for (const AttributeProto& attr : node_.attribute()) {
    if (attr.name() == name) return importer_.resolve(attr).attr;
  }
  return nullptr;
}

bool NodeImport::has_attr(std::string_view name) const { return find_attr(name) != nullptr; }

std::int64_t NodeImport::integer(std::string_view name, std::int64_t otherwise) const {
  const AttributeProto* attr = find_attr(name);
  if (!attr) return otherwise;
  require(*attr, AttributeProto::INT, "an integer");
  return attr->i();
}

double NodeImport::real(std::string_view name, double otherwise) const {
  const AttributeProto* attr = find_attr(name);
  if (!attr) return otherwise;
  require(*attr, AttributeProto::FLOAT, "a float");
  return static_cast<double>(attr->f());
}

std::string NodeImport::text(std::string_view name, std::string otherwise) const {
  const AttributeProto* attr = find_attr(name);
  if (!attr) return otherwise;
  require(*attr, AttributeProto::STRING, "a text");
  return attr->s();
}

std::vector<std::int64_t> NodeImport::integers(std::string_view name,
                                               std::vector<std::int64_t> otherwise) const {
  const AttributeProto* attr = find_attr(name);
  if (!attr) return otherwise;
  require(*attr, AttributeProto::INTS, "a list of integers");
  return {attr->ints().begin(), attr->ints().end()};
}

std::vector<double> NodeImport::reals(std::string_view name, std::vector<double> otherwise) const {
  const AttributeProto* attr = find_attr(name);
  if (!attr) return otherwise;
  require(*attr, AttributeProto::FLOATS, "a list of floats");
  return {attr->floats().begin(), attr->floats().end()};
}

std::vector<std::string> NodeImport::texts(std::string_view name) const {
  const AttributeProto* attr = find_attr(name);
  if (!attr) return {};
  require(*attr, AttributeProto::STRINGS, "a list of texts");
  return {attr->strings().begin(), attr->strings().end()};
}

Tensor NodeImport::tensor(std::string_view name) const {
  const AttributeProto* attr = find_attr(name);
  if (!attr) throw Error(concat("attribute '", name, "' is missing"));
  if (!holds(*attr, AttributeProto::SPARSE_TENSOR)) {
    require(*attr, AttributeProto::TENSOR, "a tensor");
  }
  return importer_.read(*attr);
}

DType NodeImport::element(std::string_view name, DType otherwise) const {
  const AttributeProto* attr = find_attr(name);
  if (!attr) return otherwise;
  // Opsets 1 to 5 give element types by name.
  if (attr->type() == AttributeProto::STRING) {
    onnx_schema::TensorProto::DataType number;
    if (onnx_schema::TensorProto::DataType_Parse(attr->s(), &number)) {
      if (const std::optional<DType> dtype = dtype_of(number)) return *dtype;
    }
    throw Error(concat("attribute '", name, "' names no element type")).got(attr->s());
  }
  require(*attr, AttributeProto::INT, "an element type");
  const std::optional<DType> dtype =
      attr->i() >= 0 && attr->i() < 1000 ? dtype_of(static_cast<int>(attr->i())) : std::nullopt;
  if (!dtype) throw Error(concat("attribute '", name, "' names no element type")).got(attr->i());
  return *dtype;
}

Type NodeImport::type_attr(std::string_view name) const {
  const AttributeProto* attr = find_attr(name);
  if (!attr) return {};
  require(*attr, AttributeProto::TYPE_PROTO, "a type");
  return importer_.read_type(attr->tp());
}

const std::string& NodeImport::output_name(std::size_t index) const {
  return node_.output(static_cast<int>(index));
}

BoundAttr NodeImport::body_attr(const std::string& name) const {
  BoundAttr bound;
  for (const AttributeProto& attr : node_.attribute()) {
    if (attr.name() == name) bound = importer_.resolve(attr);
  }
  if (!bound.attr) throw Error(concat("attribute '", name, "' is missing"));
  require(*bound.attr, AttributeProto::GRAPH, "a graph");
  return bound;
}

std::vector<Var> NodeImport::inlined_body(const std::string& attr_name,
                                          const std::vector<Var>& inputs) const {
  return importer_.inline_body(body_attr(attr_name), inputs);
}

NodeImport::Bodies NodeImport::bodies(const std::vector<std::string>& attr_names,
                                      const std::vector<std::vector<Type>>& input_types) const {
  std::vector<BoundAttr> graphs;
  for (const std::string& name : attr_names) graphs.push_back(body_attr(name));
  return importer_.import_bodies(graphs, input_types);
}

void NodeImport::output(std::size_t index, Var value) {
  if (!wants_output(index)) return;
  if (!value.is_valid()) throw Error(concat("output ", index, " is not made"));
  importer_.define(node_.output(static_cast<int>(index)), value, value.id() >= first_new_value_);
}

void NodeImport::outputs(const std::vector<Var>& values) {
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (wants_output(k)) output(k, values[k]);
  }
}

std::vector<std::string> NodeImport::output_names(std::size_t count) const {
  std::vector<std::string> names;
  for (std::size_t k = 0; k < count; ++k) {
    names.push_back(wants_output(k) ? importer_.result_name(node_.output(static_cast<int>(k)))
                                    : "_");
  }
  return names;
}

void NodeImport::unsupported(std::string reason) const { throw NotSupported{std::move(reason)}; }

}  // namespace tenon::frontends::onnx
