#include "mutate.h"

#include "base/error.h"
#include "frontends/onnx/schema/onnx.pb.h"
#include "mutate_tensor.h"

#include <algorithm>
#include <limits>
#include <set>

namespace tenon::testing {
namespace {

using onnx_schema::AttributeProto;
using onnx_schema::GraphProto;
using onnx_schema::ModelProto;
using onnx_schema::NodeProto;
using onnx_schema::TensorProto;
using onnx_schema::TypeProto;
using onnx_schema::ValueInfoProto;

std::int64_t odd_integer(std::int64_t was, testing::Random& random) {
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();
  const auto bits = static_cast<std::uint64_t>(was);  // wraps around at the ends
  const auto more = static_cast<std::int64_t>(bits + 1), less = static_cast<std::int64_t>(bits - 1),
             other = static_cast<std::int64_t>(1 - bits);
  const std::vector<std::int64_t> among{0,       1, -1,  2,       3,        -2,     -3,     4,
                                        5,       7, 100, 16,      -9,       more,   less,   other,
                                        was / 2, 8, -1,  1 << 20, 1L << 32, lowest, highest};
  return random.pick(among);
}

float odd_real(float was, testing::Random& random) {
  const std::vector<float> among{0,
                                 -1,
                                 1,
                                 0.5F,
                                 -0.5F,
                                 2,
                                 1e-30F,
                                 1e30F,
                                 -was,
                                 was * 2,
                                 100,
                                 std::numeric_limits<float>::infinity(),
                                 std::numeric_limits<float>::quiet_NaN()};
  return random.pick(among);
}

std::string op_name(const NodeProto& node) {
  return concat(node.op_type(), " '", node.output().empty() ? "" : node.output(0), "'");
}

template <class List>
void erase_at(List& list, int position) {
  list.erase(list.begin() + position);
}

// Collects every graph of a model: the main one and nested bodies.
void collect(GraphProto& graph, std::vector<GraphProto*>& all) {
  all.push_back(&graph);
  for (NodeProto& node : *graph.mutable_node()) {
    for (AttributeProto& attr : *node.mutable_attribute()) {
      if (attr.has_g()) collect(*attr.mutable_g(), all);
    }
  }
}

class Mutation {
 public:
  Mutation(ModelProto& model, const GenePool& pool, testing::Random& random)
      : model_(model), pool_(pool), random_(random) {
    collect(*model.mutable_graph(), graphs_);
    graph_ = random.chance(70) ? graphs_.front() : random.pick(graphs_);
  }

  // Returns the change; empty if the mutation did not apply.
  std::string run() {
    using Kind = std::string (Mutation::*)();
    static const std::vector<Kind> kinds{&Mutation::change_attribute,
                                         &Mutation::change_attribute,
                                         &Mutation::change_attribute,
                                         &Mutation::retype_attribute,
                                         &Mutation::drop_attribute,
                                         &Mutation::add_attribute,
                                         &Mutation::rewire,
                                         &Mutation::rewire,
                                         &Mutation::swap_inputs,
                                         &Mutation::drop_input,
                                         &Mutation::add_input,
                                         &Mutation::drop_node,
                                         &Mutation::copy_node,
                                         &Mutation::rename_op,
                                         &Mutation::move_node,
                                         &Mutation::change_outputs,
                                         &Mutation::resize_input,
                                         &Mutation::resize_input,
                                         &Mutation::resize_all,
                                         &Mutation::resize_all,
                                         &Mutation::rerank_input,
                                         &Mutation::retype_input,
                                         &Mutation::retype_all,
                                         &Mutation::change_initializer,
                                         &Mutation::change_initializer,
                                         &Mutation::fix_input,
                                         &Mutation::fix_input,
                                         &Mutation::free_initializer,
                                         &Mutation::declare_output,
                                         &Mutation::change_versions,
                                         &Mutation::expose_value};
    return (this->*random_.pick(kinds))();
  }

 private:
  NodeProto* any_node() {
    if (graph_->node_size() == 0) return nullptr;
    return graph_->mutable_node(position(graph_->node_size()));
  }
  int position(int count) {
    return static_cast<int>(random_.below(static_cast<std::size_t>(count)));
  }

  AttributeProto* any_attribute(NodeProto*& node) {
    for (int tries = 0; tries < 8; ++tries) {
      node = any_node();
      if (node && node->attribute_size() > 0) {
        return node->mutable_attribute(position(node->attribute_size()));
      }
    }
    return nullptr;
  }

  std::vector<std::string> value_names() const {
    std::vector<std::string> names;
    for (const auto& input : graph_->input()) names.push_back(input.name());
    for (const auto& tensor : graph_->initializer()) names.push_back(tensor.name());
    for (const auto& node : graph_->node()) {
      for (const std::string& output : node.output()) names.push_back(output);
    }
    return names;
  }

  std::string change_attribute() {
    NodeProto* node = nullptr;
    AttributeProto* attr = any_attribute(node);
    if (!attr) return "";
    const std::string where = concat(op_name(*node), ", attribute '", attr->name(), "'");
    switch (attr->type()) {
      case AttributeProto::INT:
        attr->set_i(odd_integer(attr->i(), random_));
        return concat(where, " = ", attr->i());
      case AttributeProto::FLOAT:
        attr->set_f(odd_real(attr->f(), random_));
        return concat(where, " = ", attr->f());
      case AttributeProto::STRING:
        attr->set_s(word_for(*attr));
        return concat(where, " = ", attr->s());
      case AttributeProto::INTS:
        return change_list(*attr->mutable_ints(), where,
                           [&](std::int64_t was) { return odd_integer(was, random_); });
      case AttributeProto::FLOATS:
        return change_list(*attr->mutable_floats(), where,
                           [&](float was) { return odd_real(was, random_); });
      case AttributeProto::TENSOR:
        return concat(where, ": ", mutate_tensor(*attr->mutable_t(), random_));
      default:
        return "";
    }
  }

  std::string word_for(const AttributeProto& attr) {
    const auto found = pool_.words.find(attr.name());
    if (found == pool_.words.end() || random_.chance(15)) return random_.chance(50) ? "" : "?";
    return random_.pick(found->second);
  }

  template <class List, class Odd>
  std::string change_list(List& list, const std::string& where, const Odd& odd) {
    const int count = list.size();
    const auto kind = random_.below(5);
    if (count == 0 || kind == 0) {
      list.Add(odd(1));
      return concat(where, " gets one entry more");
    }
    const int k = position(count);
    if (kind == 1) {
      erase_at(list, k);
      return concat(where, " loses entry ", k);
    }
    if (kind == 2 && count > 1) {
      list.SwapElements(k, (k + 1) % count);
      return concat(where, ": entries ", k, " and ", (k + 1) % count, " change places");
    }
    list.Set(k, odd(list.Get(k)));
    return concat(where, "[", k, "] = ", list.Get(k));
  }

  std::string retype_attribute() {
    NodeProto* node = nullptr;
    AttributeProto* attr = any_attribute(node);
    if (!attr) return "";
    const std::vector<AttributeProto::AttributeType> kinds{
        AttributeProto::INT,  AttributeProto::FLOAT,  AttributeProto::STRING,
        AttributeProto::INTS, AttributeProto::FLOATS, AttributeProto::TENSOR,
        AttributeProto::GRAPH};
    attr->set_type(random_.pick(kinds));
    if (attr->type() == AttributeProto::FLOAT && attr->has_i())
      attr->set_f(static_cast<float>(attr->i()));
    return concat(op_name(*node), ", attribute '", attr->name(), "' is said to be of kind ",
                  static_cast<int>(attr->type()));
  }

  std::string drop_attribute() {
    NodeProto* node = nullptr;
    AttributeProto* attr = any_attribute(node);
    if (!attr) return "";
    const std::string name = attr->name();
    erase_at(*node->mutable_attribute(), position_of(*node, name));
    return concat(op_name(*node), " loses its attribute '", name, "'");
  }

  static int position_of(const NodeProto& node, const std::string& name) {
    int k = 0;
    while (k + 1 < node.attribute_size() && node.attribute(k).name() != name) ++k;
    return k;
  }

  std::string add_attribute() {
    NodeProto* node = any_node();
    if (!node) return "";
    const auto found = pool_.attributes.find(node->op_type());
    if (found == pool_.attributes.end()) return "";
    AttributeProto attr;
    if (!attr.ParseFromString(random_.pick(found->second))) return "";
    const bool is_there = std::ranges::any_of(
        node->attribute(), [&](const AttributeProto& own) { return own.name() == attr.name(); });
    if (is_there) {
      *node->mutable_attribute(position_of(*node, attr.name())) = attr;
    } else {
      *node->add_attribute() = attr;
    }
    return concat(op_name(*node), " takes another's attribute '", attr.name(), "'");
  }

  std::string rewire() {
    NodeProto* node = any_node();
    if (!node || node->input_size() == 0) return "";
    const int k = position(node->input_size());
    const std::vector<std::string> names = value_names();
    if (names.empty()) return "";
    const std::string& name = random_.pick(names);
    node->set_input(k, name);
    return concat(op_name(*node), " reads '", name, "' as input ", k);
  }

  std::string swap_inputs() {
    NodeProto* node = any_node();
    if (!node || node->input_size() < 2) return "";
    const int a = position(node->input_size()), b = position(node->input_size());
    node->mutable_input()->SwapElements(a, b);
    return concat(op_name(*node), ": inputs ", a, " and ", b, " change places");
  }

  std::string drop_input() {
    NodeProto* node = any_node();
    if (!node || node->input_size() == 0) return "";
    const int k = position(node->input_size());
    if (random_.chance(50)) {
      node->set_input(k, "");
    } else {
      erase_at(*node->mutable_input(), k);
    }
    return concat(op_name(*node), " loses its input ", k);
  }

  std::string add_input() {
    NodeProto* node = any_node();
    const std::vector<std::string> names = value_names();
    if (!node || names.empty()) return "";
    node->add_input(random_.pick(names));
    return concat(op_name(*node), " reads '", node->input(node->input_size() - 1), "' too");
  }

  // Removes a node; its readers read its operand instead.
  std::string drop_node() {
    if (graph_->node_size() == 0) return "";
    const int k = position(graph_->node_size());
    const NodeProto gone = graph_->node(k);
    erase_at(*graph_->mutable_node(), k);
    if (gone.input_size() == 0 || gone.output_size() == 0) return concat(op_name(gone), " is gone");
    for (NodeProto& node : *graph_->mutable_node()) {
      for (std::string& input : *node.mutable_input()) {
        if (input == gone.output(0)) input = gone.input(0);
      }
    }
    for (ValueInfoProto& output : *graph_->mutable_output()) {
      if (output.name() == gone.output(0)) output.set_name(gone.input(0));
    }
    return concat(op_name(gone), " is left out");
  }

  std::string copy_node() {
    NodeProto* node = any_node();
    if (!node || node->output_size() == 0) return "";
    NodeProto copy = *node;
    const std::string was = node->output(0);
    for (std::string& output : *copy.mutable_output()) {
      if (!output.empty()) output += "_again";
    }
    if (copy.input_size() > 0 && random_.chance(60)) copy.set_input(0, was);
    const std::string now = copy.output(0);
    const std::string what = concat(op_name(*node), " is done once more");
    int k = 0;
    while (&graph_->node(k) != node) ++k;
    *graph_->add_node() = std::move(copy);
    for (int at = graph_->node_size() - 1; at > k + 1; --at) {
      graph_->mutable_node()->SwapElements(at, at - 1);
    }
    for (ValueInfoProto& output : *graph_->mutable_output()) {
      if (output.name() == was) output.set_name(now);
    }
    return what;
  }

  std::string rename_op() {
    NodeProto* node = any_node();
    if (!node) return "";
    const std::string was = op_name(*node);
    node->set_op_type(random_.pick(pool_.op_types));
    return concat(was, " becomes ", node->op_type());
  }

  std::string move_node() {
    const int count = graph_->node_size();
    if (count < 2) return "";
    const int a = position(count), b = position(count);
    graph_->mutable_node()->SwapElements(a, b);
    return concat("nodes ", a, " and ", b, " change places");
  }

  std::string change_outputs() {
    NodeProto* node = any_node();
    if (!node) return "";
    if (node->output_size() > 1 && random_.chance(50)) {
      const int k = position(node->output_size());
      node->mutable_output(k)->clear();
      return concat(op_name(*node), " gives no output ", k);
    }
    node->add_output(concat("extra_", node->output_size()));
    return concat(op_name(*node), " gives one output more");
  }

  TypeProto::Tensor* any_input_type(std::string& name) {
    if (graph_->input_size() == 0) return nullptr;
    ValueInfoProto& input = *graph_->mutable_input(position(graph_->input_size()));
    name = input.name();
    TypeProto* type = input.mutable_type();
    if (type->has_sequence_type()) type = type->mutable_sequence_type()->mutable_elem_type();
    if (type->has_optional_type()) type = type->mutable_optional_type()->mutable_elem_type();
    return type->has_tensor_type() ? type->mutable_tensor_type() : nullptr;
  }

  std::int64_t odd_extent(std::int64_t was) {
    const std::vector<std::int64_t> among{0, 1,  1,  2,       3,       4,      5,
                                          7, 16, 33, was + 1, was - 1, 2 * was};
    return std::clamp<std::int64_t>(random_.pick(among), 0, 256);
  }

  std::string resize_input() {
    std::string name;
    TypeProto::Tensor* type = any_input_type(name);
    if (!type || type->shape().dim_size() == 0) return "";
    const int k = position(type->shape().dim_size());
    auto& dim = *type->mutable_shape()->mutable_dim(k);
    dim.set_dim_value(odd_extent(dim.dim_value()));
    return concat("input '", name, "': extent ", k, " = ", dim.dim_value());
  }

  // Changes every occurrence of one extent, so that related extents stay consistent.
  std::string resize_all() {
    std::string name;
    TypeProto::Tensor* type = any_input_type(name);
    if (!type || type->shape().dim_size() == 0) return "";
    const std::int64_t was = type->shape().dim(position(type->shape().dim_size())).dim_value();
    const std::int64_t now = odd_extent(was);
    for (ValueInfoProto& input : *graph_->mutable_input()) {
      if (!input.type().has_tensor_type()) continue;
      for (auto& dim :
           *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) {
        if (dim.dim_value() == was) dim.set_dim_value(now);
      }
    }
    for (TensorProto& tensor : *graph_->mutable_initializer())
      resize_tensor(tensor, was, now, random_);
    return concat("extents ", was, " become ", now);
  }

  std::string rerank_input() {
    std::string name;
    TypeProto::Tensor* type = any_input_type(name);
    if (!type) return "";
    auto& dims = *type->mutable_shape()->mutable_dim();
    if (dims.empty() || random_.chance(50)) {
      type->mutable_shape()->add_dim()->set_dim_value(random_.between(0, 3));
      return concat("input '", name, "' gets one axis more");
    }
    erase_at(dims, position(dims.size()));
    return concat("input '", name, "' loses an axis");
  }

  std::string retype_input() {
    std::string name;
    TypeProto::Tensor* type = any_input_type(name);
    if (!type) return "";
    type->set_elem_type(any_element_type(random_));
    return concat("input '", name, "' is of element type ", type->elem_type());
  }

  std::string retype_all() {
    std::string name;
    const TypeProto::Tensor* type = any_input_type(name);
    if (!type) return "";
    const int was = type->elem_type(), now = any_element_type(random_);
    for (ValueInfoProto& input : *graph_->mutable_input()) {
      if (!input.type().has_tensor_type()) continue;
      TypeProto::Tensor& own = *input.mutable_type()->mutable_tensor_type();
      if (own.elem_type() == was) own.set_elem_type(now);
    }
    for (TensorProto& tensor : *graph_->mutable_initializer()) {
      if (tensor.data_type() == was) retype_tensor(tensor, now, random_);
    }
    return concat("element type ", was, " becomes ", now);
  }

  std::string change_initializer() {
    if (graph_->initializer_size() == 0) return "";
    TensorProto& tensor = *graph_->mutable_initializer(position(graph_->initializer_size()));
    return concat("initializer '", tensor.name(), "': ", mutate_tensor(tensor, random_));
  }

  // An input becomes an initializer: a run-time value becomes known at compile time.
  std::string fix_input() {
    std::string name;
    const TypeProto::Tensor* type = any_input_type(name);
    if (!type) return "";
    std::vector<std::int64_t> dims;
    for (const auto& dim : type->shape().dim())
      dims.push_back(dim.has_dim_value() ? dim.dim_value() : 2);
    TensorProto* tensor = graph_->add_initializer();
    fill_tensor(*tensor, type->elem_type(), dims, random_);
    tensor->set_name(name);
    drop_input_called(name);
    return concat("input '", name, "' becomes an initializer");
  }

  void drop_input_called(const std::string& name) {
    for (int k = graph_->input_size() - 1; k >= 0; --k) {
      if (graph_->input(k).name() == name) erase_at(*graph_->mutable_input(), k);
    }
  }

  std::string free_initializer() {
    if (graph_->initializer_size() == 0) return "";
    const int k = position(graph_->initializer_size());
    const TensorProto tensor = graph_->initializer(k);
    erase_at(*graph_->mutable_initializer(), k);
    drop_input_called(tensor.name());
    ValueInfoProto& input = *graph_->add_input();
    input.set_name(tensor.name());
    TypeProto::Tensor& type = *input.mutable_type()->mutable_tensor_type();
    type.set_elem_type(tensor.data_type());
    type.mutable_shape();
    for (const std::int64_t extent : tensor.dims())
      type.mutable_shape()->add_dim()->set_dim_value(extent);
    return concat("initializer '", tensor.name(), "' becomes an input");
  }

  std::string declare_output() {
    if (graph_->output_size() == 0) return "";
    ValueInfoProto& output = *graph_->mutable_output(position(graph_->output_size()));
    TypeProto::Tensor& type = *output.mutable_type()->mutable_tensor_type();
    switch (random_.below(3)) {
      case 0:
        type.set_elem_type(any_element_type(random_));
        return concat("output '", output.name(), "' is said to be of element type ",
                      type.elem_type());
      case 1:
        type.mutable_shape()->add_dim()->set_dim_value(random_.between(0, 3));
        return concat("output '", output.name(), "' is said to have one axis more");
      default:
        if (type.shape().dim_size() == 0) return "";
        type.mutable_shape()->mutable_dim(position(type.shape().dim_size()))->set_dim_value(7);
        return concat("output '", output.name(), "' is said to have another extent");
    }
  }

  std::string change_versions() {
    const std::vector<std::int64_t> opsets{1,  5,  6,  7,  9,  10, 11, 12, 13,
                                           14, 16, 18, 19, 21, 22, 23, 24, 9999};
    const std::vector<std::int64_t> versions{-1, 0, 1, 3, 4, 8, 10, 1000};
    if (model_.opset_import_size() > 0 && random_.chance(80)) {
      model_.mutable_opset_import(0)->set_version(random_.pick(opsets));
      return concat("opset ", model_.opset_import(0).version());
    }
    model_.set_ir_version(random_.pick(versions));
    return concat("IR version ", model_.ir_version());
  }

  std::string expose_value() {
    const std::vector<std::string> names = value_names();
    if (names.empty()) return "";
    const std::string& name = random_.pick(names);
    graph_->add_output()->set_name(name);
    return concat("'", name, "' becomes an output");
  }

  ModelProto& model_;
  const GenePool& pool_;
  testing::Random& random_;
  std::vector<GraphProto*> graphs_;
  GraphProto* graph_ = nullptr;
};

}  // namespace

void GenePool::add(const GraphProto& graph) {
  for (const NodeProto& node : graph.node()) {
    if (std::ranges::find(op_types, node.op_type()) == op_types.end())
      op_types.push_back(node.op_type());
    for (const AttributeProto& attr : node.attribute()) {
      if (attr.has_g()) {
        add(attr.g());
        continue;
      }
      attributes[node.op_type()].push_back(attr.SerializeAsString());
      std::vector<std::string>& known = words[attr.name()];
      if (attr.has_s() && std::ranges::find(known, attr.s()) == known.end())
        known.push_back(attr.s());
      if (known.empty()) words.erase(attr.name());
    }
  }
}

std::vector<std::string> mutate(ModelProto& model, const GenePool& pool, testing::Random& random) {
  std::vector<std::string> done;
  // Declared shapes would refuse most mutants before the later stages see them.
  if (random.chance(85)) {
    for (ValueInfoProto& output : *model.mutable_graph()->mutable_output()) output.clear_type();
    model.mutable_graph()->clear_value_info();
  }
  const std::size_t count = 1 + (random.chance(45) ? random.below(3) + 1 : 0);
  for (int tries = 0; done.size() < count && tries < 50; ++tries) {
    std::string what = Mutation(model, pool, random).run();
    if (!what.empty()) done.push_back(std::move(what));
  }
  return done;
}

}  // namespace tenon::testing
