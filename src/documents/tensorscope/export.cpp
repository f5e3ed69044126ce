#include "documents/tensorscope/export.h"

#include "base/error.h"
#include "base/text.h"
#include "documents/tensorscope/export_queries.h"
#include "documents/tensorscope/names.h"
#include "documents/tensorscope/step_names.h"
#include "documents/tensorscope/tf_ops.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace tenon::documents::tensorscope {
namespace {

// Source of a graph's value in the table.
struct RowOrigin {
  std::string row;  // empty: not in the table
  std::size_t port = 0;
  TensorShape shape;
  DeviceName device;
};

// Nodes that were imported from one source node become one row again.
struct RowGroup {
  std::vector<NodeId> nodes;
  NodeId last() const { return nodes.back(); }
};

bool has_kernel(std::string_view op) {
  return op != "Identity" && op != "Reshape" && op != "ExpandDims" && op != "Squeeze" &&
         op != "Shape";
}

class TableExporter {
 public:
  TableExporter(const Graph& graph, const NativeNodes& own)
      : graph_(graph),
        native_(own),
        origins_(graph.value_id_bound()),
        step_names_(step_names(graph)) {
    if (const auto found = graph.metadata.find("tensorscope.device");
        found != graph.metadata.end()) {
      device_ = parse_device(found->second);
    }
  }

  TensorScopeTable run() {
    require_shapes(graph_);
    make_groups();
    add_row(plain_row("_SOURCE", {}));
    for (std::size_t k = 0; k < graph_.inputs().size(); ++k) add_feed(k);
    for (const NodeId constant : constants_) {
      if (!is_hidden(constant)) add_constant(constant);
    }
    for (const RowGroup& group : groups_) {
      if (!is_bias_shape(group)) add_compute(group);
    }
    add_control_edges();
    first_fetch_ = edges_before_fetches();
    for (std::size_t k = 0; k < graph_.outputs().size(); ++k) add_fetch(k);
    std::sort(table_.rows.begin(), table_.rows.end(),
              [](const Row& a, const Row& b) { return a.name() < b.name(); });
    table_.index();
    return std::move(table_);
  }

 private:
  const Type& type(ValueId id) const { return graph_.value(id).type; }

  // Returns an unused name with TensorFlow's characters only.
  std::string free_name(std::string_view wanted) {
    std::string name;
    for (const char c : wanted) {
      const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') ||
                        std::string_view("_./-").find(c) != std::string_view::npos;
      name += fits ? c : '_';
    }
    if (name.empty() || name.starts_with("_retval_") || name.starts_with("_arg_"))
      name = "node" + name;
    const std::string stem = name;
    while (names_.contains(name)) name = concat(stem, "_", ++suffixes_[stem]);
    names_.insert(name);
    return name;
  }

  DeviceName device_of(std::string_view name) const {
    const auto found = graph_.metadata.find(concat("tensorscope.device.", name));
    return found == graph_.metadata.end() ? device_ : parse_device(found->second);
  }

  Row plain_row(std::string name, std::vector<TensorShape> outputs) {
    names_.insert(name);
    Row row;
    row.device = device_of(name);
    row.node = std::move(name);
    row.outputs = std::move(outputs);
    return row;
  }
  void add_row(Row row) {
    if (row.kind == RowKind::Node) data_edges_ += static_cast<std::int64_t>(row.inputs.size());
    table_.rows.push_back(std::move(row));
  }

  // TensorFlow's numbering of edges: the edge from source to sink, twice; data edges; control
  // edges; edges from the source to nodes without inputs; edges from nodes without readers to the
  // sink. Fetches follow, each with its edge to the sink.
  std::int64_t edges_before_fetches() {
    for (const Row& row : table_.rows) read_.insert(row.controls.begin(), row.controls.end());
    std::int64_t count = kSourceToSink + data_edges_;
    for (const Row& row : table_.rows) {
      const bool is_node = row.kind == RowKind::Node && row.node != "_SOURCE";
      if (!is_node && row.kind != RowKind::Feed) continue;
      count += static_cast<std::int64_t>(row.controls.size());
      count += row.inputs.empty() && row.controls.empty();
      count += !read_.contains(row.name());
    }
    return count;
  }

  void add_feed(std::size_t number) {
    const ValueId id = graph_.inputs()[number];
    Row row;
    row.kind = RowKind::Feed;
    row.node = free_name(graph_.value(id).name);
    row.number = static_cast<std::int64_t>(number);
    row.outputs = {shape_of(graph_, id)};
    row.device = {"CPU", 0};
    origins_[id] = {row.name(), 0, row.outputs[0], row.device};
    const std::string name = row.name();
    add_row(std::move(row));
    add_type_note(name, id, {"CPU", 0}, false);
  }

  // Adds a row about another one: a note, or its kernel's stream.
  void add_remark(RowKind kind, const std::string& node, std::string text,
                  const DeviceName& device) {
    Row row;
    row.kind = kind;
    row.node = node;
    row.op = std::move(text);
    row.tells_inputs = false;
    row.device = device;
    add_row(std::move(row));
  }

  // Notes a type that the table's shape does not determine: a matrix of one column looks like a
  // vector, and layouts are missing.
  void add_type_note(const std::string& node, ValueId id, const DeviceName& device, bool is_asked) {
    const TensorType& tensor = type(id).tensor();
    const bool is_column = tensor.rank() == 2 && tensor.dims[1] == Dim(1);
    if (is_column || native_.are_types_stated || (is_asked && !tensor.layout.is_empty()))
      add_remark(RowKind::Note, node, to_string(tensor), device);
  }

  // Adds the copy of a tensor to a device that reads it, once per device.
  void cross(const RowOrigin& from, const DeviceName& to, std::optional<std::int64_t> edge = {}) {
    if (from.row.empty() || from.device == to || (from.device.type != "GPU" && to.type != "GPU"))
      return;
    if (!crossed_.emplace(from.row, from.port, to).second) return;
    Row row;
    row.kind = RowKind::Copy;
    row.node = from.row;
    row.edge = edge.value_or(kSourceToSink + data_edges_);
    while (!edges_.insert(*row.edge).second) ++*row.edge;
    const bool is_from_gpu = from.device.type == "GPU", is_to_gpu = to.type == "GPU";
    row.copy = !is_from_gpu ? CopyKind::HostToDevice
               : is_to_gpu  ? CopyKind::DeviceToDevice
                            : CopyKind::DeviceToHost;
    row.tells_inputs = false;
    row.bytes = from.shape.byte_count();
    row.device = is_from_gpu ? from.device : to;
    add_row(std::move(row));
  }

  // A folded shape has control edges from its node's operands: the forward node's filter and image.
  void add_control_edges() {
    for (Row& row : table_.rows) {
      std::string_view node;
      if (const auto folded = folded_shape(row.node)) node = folded->node;
      if (const auto constant = permuted_constant(row.node)) node = constant->node;
      const auto gradient = gradient_name(node);
      if (row.kind != RowKind::Node || !gradient) continue;
      const auto found = sources_.find(std::string(gradient->forward));
      if (found == sources_.end() || found->second.size() != 2) continue;
      for (std::size_t k = 2; k-- > 0;) {
        std::string source = found->second[k];
        const auto behind = sources_.find(source);
        if (layout_transpose(source) && behind != sources_.end()) source = behind->second.front();
        row.controls.push_back(source);
      }
    }
  }

  void add_fetch(std::size_t number) {
    const RowOrigin& from = origins_[graph_.outputs()[number]];
    Row row;
    row.kind = RowKind::Fetch;
    row.node = from.row;
    row.port = static_cast<std::int64_t>(from.port);
    row.number = static_cast<std::int64_t>(number);
    row.inputs = {from.shape};
    row.device = {"CPU", 0};
    cross(from, row.device, first_fetch_ + 2 * row.number);
    add_row(std::move(row));
  }

  // Restores a node's source name, which the text form omits if it equals that of its first result.
  const std::string& source_name(NodeId id) const {
    if (const auto known = step_names_.find(id); known != step_names_.end()) return known->second;
    const Node& node = graph_.node(id);
    if (!node.name.empty() || node.results.empty() || !node.results[0]) return node.name;
    return graph_.value(node.results[0]).name;
  }

  // Groups adjacent nodes with one source name; constants between them do not separate them.
  void make_groups() {
    for (const NodeId id : graph_.nodes_in_order()) {
      const Node& node = graph_.node(id);
      was_laid_out_ = was_laid_out_ || layout_transpose(source_name(id));
      if (!node.results.empty() && node.results[0] &&
          graph_.constant_of(node.results[0]) != nullptr) {
        constants_.push_back(id);
      } else if (!groups_.empty() && source_name(groups_.back().last()) == source_name(id) &&
                 !native_.contains(groups_.back().last()) && !native_.contains(id)) {
        groups_.back().nodes.push_back(id);
      } else if (!native_.contains(id) && take_up_group(id)) {
        groups_.back().nodes.push_back(id);
      } else {
        groups_.push_back({{id}});
      }
    }
    for (const RowGroup& group : groups_) {
      if (group.nodes.size() > 1) joined_.insert(group.nodes.begin(), group.nodes.end());
    }
  }

  // Passes may insert transposes between the nodes of one gradient: moves its group after those,
  // unless one of them reads from it.
  bool take_up_group(NodeId id) {
    if (!step_names_.contains(id) || graph_.op_name(id) == "transpose") return false;
    const auto group = std::ranges::find_if(groups_, [&](const RowGroup& each) {
      return source_name(each.last()) == source_name(id) && !native_.contains(each.last());
    });
    if (group == groups_.end()) return false;
    const auto is_read_by = [&](const RowGroup& other) {
      return std::ranges::any_of(other.nodes, [&](NodeId reader) {
        return std::ranges::any_of(graph_.node(reader).operands, [&](ValueId operand) {
          const NodeId producer = operand ? graph_.value(operand).producer : NodeId();
          return producer && std::ranges::find(group->nodes, producer) != group->nodes.end();
        });
      });
    };
    if (std::any_of(group + 1, groups_.end(), is_read_by)) return false;
    std::rotate(group, group + 1, groups_.end());
    return true;
  }

  // Returns whether a constant is internal to a group, such as the bound of a comparison.
  bool is_hidden(NodeId constant) const {
    const ValueId value = graph_.node(constant).results[0];
    const std::vector<NodeId>& readers = graph_.readers(value);
    if (readers.empty() || graph_.is_output(value)) return false;
    // Contained in the text of its readers.
    if (fits_text(graph_, value) &&
        std::ranges::all_of(readers, [&](NodeId reader) { return native_.contains(reader); }))
      return true;
    return type(value).tensor().rank() == 0 && std::ranges::all_of(readers, [&](NodeId reader) {
             return !native_.contains(reader) &&
                    (joined_.contains(reader) || is_relu6(graph_, reader));
           });
  }

  // Returns whether a reshape only broadcasts a vector along channels, which is implicit in
  // TensorFlow's BiasAdd.
  bool is_bias_shape(const RowGroup& group) {
    const Node& node = graph_.node(group.last());
    if (group.nodes.size() != 1 || graph_.op_name(group.last()) != "reshape") return false;
    const ValueId from = node.operands[0], to = node.results[0];
    const Dims& dims = type(to).tensor().dims;
    if (type(from).tensor().rank() != 1 || dims.size() != 3 || !(dims[1] == Dim(1)) ||
        !(dims[2] == Dim(1)))
      return false;
    if (native_.contains(group.last()) || graph_.is_output(to) || graph_.readers(to).empty())
      return false;
    for (const NodeId reader : graph_.readers(to)) {
      if (native_.contains(reader) || graph_.op_name(reader) != "add" ||
          graph_.node(reader).operands[1] != to)
        return false;
    }
    origins_[to] = origins_[from];
    return true;
  }

  // Weights are variables, read through an Identity; numbers are constants.
  void add_constant(NodeId id) {
    const ValueId value = graph_.node(id).results[0];
    const std::vector<NodeId>& readers = graph_.readers(value);
    const bool is_read_by_native =
        std::ranges::any_of(readers, [&](NodeId reader) { return native_.contains(reader); });
    const TensorShape shape = is_filter(graph_, value) && !is_read_by_native
                                  ? filter_shape(graph_, value)
                                  : shape_of(graph_, value);
    const std::string name = free_name(graph_.value(value).name);
    Row row = plain_row(name, {shape});
    const DeviceName device = row.device;
    add_row(std::move(row));
    origins_[value] = {name, 0, shape, device};
    add_type_note(name, value, device, is_read_by_native);
    const bool is_read_already =
        !readers.empty() && std::ranges::all_of(readers, [&](NodeId reader) {
          return graph_.op_name(reader) == "identity" && source_name(reader) == name + "/read";
        });
    if (shape.element == "int32" || shape.element == "int64" || shape.extents.empty() ||
        is_read_already)
      return;
    if (readers.empty() && !graph_.is_output(value)) return;
    Row read = plain_row(free_name(name + "/read"), {shape});
    read.inputs = {shape};
    read_.insert(name);
    read.device = device;
    origins_[value].row = read.node;
    add_row(std::move(read));
  }

  bool adds_bias(NodeId id, const std::vector<TensorShape>& inputs) const {
    if (graph_.op_name(id) != "add" || inputs.size() != 2) return false;
    return inputs[1].extents.size() == 1 && inputs[0].extents.size() >= 2;
  }

  // Adds a constant operand for an attribute of Tenon's operator.
  void add_row_constant(Row& row, std::size_t position, std::string_view word,
                        std::vector<std::int64_t> extents) {
    const TensorShape shape{"int32", std::move(extents)};
    row.inputs.insert(
        row.inputs.begin() + static_cast<std::ptrdiff_t>(std::min(position, row.inputs.size())),
        shape);
    std::string name = concat(row.node, "/", word);
    if (const auto transpose = layout_transpose(row.node))
      name = permutation_name(transpose->to_nchw);
    const std::vector<std::string> folded = folded_names(row.node, position);
    if (word.ends_with("_sizes") && folded.size() > 1)
      name = folded[position == 0 && was_laid_out_ ? 0 : 1];
    for (const std::string& known : folded) {
      if (names_.contains(known)) name = known;
    }
    read_.insert(name);
    if (names_.contains(name)) return;
    Row constant = plain_row(name, {shape});
    constant.device = row.device;
    add_row(std::move(constant));
  }
  void add_implied_inputs(NodeId id, Row& row) {
    const std::string_view op = graph_.op_name(id);
    const auto rank =
        static_cast<std::int64_t>(row.outputs.empty() ? 0 : row.outputs[0].extents.size());
    const auto has_attr = [&](std::string_view name) {
      return graph_.node(id).attrs.find(name) != nullptr;
    };
    if (op == "transpose") add_row_constant(row, 1, "perm", {rank});
    if (op == "reshape" && has_attr("shape")) add_row_constant(row, 1, "shape", {rank});
    if (op == "concat") add_row_constant(row, row.inputs.size(), "axis", {});
    if (op == "split") add_row_constant(row, 0, "split_dim", {});
    if (op == "unsqueeze") add_row_constant(row, 1, "dim", {});
    if (op.starts_with("reduce_")) {
      const AttrValue* axes = graph_.node(id).attrs.find("axes");
      const auto all = static_cast<std::int64_t>(row.inputs[0].extents.size());
      const bool is_list = axes != nullptr && std::holds_alternative<Dims>(*axes);
      const std::int64_t count =
          is_list ? static_cast<std::int64_t>(std::get<Dims>(*axes).size()) : all;
      add_row_constant(row, 1, "reduction_indices", {count});
    }
    if (op == "conv_transpose" && row.inputs.size() == 2) {
      std::swap(row.inputs[0], row.inputs[1]);
      add_row_constant(row, 0, "input_sizes", {rank});
    }
    if (op == "slice" && row.inputs.size() == 1) {
      add_row_constant(row, 1, "begin", {rank});
      add_row_constant(row, 2, "size", {rank});
    }
    if (op == "pad" && row.inputs.size() == 1) add_row_constant(row, 1, "paddings", {rank, 2});
    if (op == "gather") add_row_constant(row, 2, "axis", {});
    if (op == "expand" && row.inputs.size() == 1) add_row_constant(row, 1, "shape", {rank});
    if (op == "conv_weight_gradient") add_row_constant(row, 1, "filter_sizes", {rank});
    if (op == "average_pool_gradient") add_row_constant(row, 0, "input_shape", {rank});
    // TensorFlow's operator also returns the statistics, twice.
    if (op == "batch_norm") row.outputs.insert(row.outputs.end(), 4, row.inputs[1]);
    if (op == "clip" && is_relu6(graph_, id)) row.inputs.resize(1);
    if (op == "max_pool_gradient") row.inputs.insert(row.inputs.begin() + 1, row.inputs[1]);
    if (op == "lrn_gradient") row.inputs.push_back(row.inputs[0]);
  }

  // Returns whether a value is computed and used outside the group.
  bool is_visible(const RowGroup& group, ValueId id) const {
    if (!id) return false;
    if (group.nodes.size() == 1 || graph_.is_output(id)) return true;
    const std::vector<NodeId>& readers = graph_.readers(id);
    const NodeId producer = graph_.value(id).producer;
    return producer == group.last() || std::ranges::any_of(readers, [&](NodeId reader) {
             return std::find(group.nodes.begin(), group.nodes.end(), reader) == group.nodes.end();
           });
  }

  // Adds a row with the node's operands and results, and a note with its record.
  void add_native_node(NodeId id) {
    const NativeNode own = native_node(graph_, id, [&](ValueId value) {
      const RowOrigin& from = origins_[value];
      return from.port == 0 ? from.row : concat(from.row, ":", from.port);
    });
    Row row =
        plain_row(free_name(source_name(id).empty() ? graph_.op_name(id) : source_name(id)), {});
    for (const ValueId input : own.inputs) {
      row.inputs.push_back(shape_of(graph_, input));
      cross(origins_[input], row.device);
      read_.insert(origins_[input].row);
    }
    for (std::size_t port = 0; port < own.outputs.size(); ++port) {
      row.outputs.push_back(shape_of(graph_, own.outputs[port]));
      origins_[own.outputs[port]] = {row.node, port, row.outputs.back(), row.device};
    }
    add_remark(RowKind::Note, row.node, own.text, row.device);
    if (row.device.type == "GPU")
      add_remark(RowKind::Stream, row.node, tf_op_name(graph_, id), row.device);
    add_row(std::move(row));
  }

  void add_compute(const RowGroup& group) {
    const NodeId id = group.last();
    if (native_.contains(id)) return add_native_node(id);
    Row row =
        plain_row(free_name(source_name(id).empty() ? graph_.op_name(id) : source_name(id)), {});
    const bool is_single = group.nodes.size() == 1;
    if (is_single) rename_if_misleading(id, row);
    std::vector<const RowOrigin*> sources;
    for (const ValueId operand : external_operands(graph_, group.nodes)) {
      sources.push_back(&origins_[operand]);
      row.inputs.push_back(origins_[operand].shape);
    }
    std::vector<ValueId> visible;
    for (const NodeId member : group.nodes) {
      for (const ValueId result : graph_.node(member).results) {
        if (is_visible(group, result)) visible.push_back(result);
      }
    }
    // Results of the last node come first: the row is named after them.
    std::stable_partition(visible.begin(), visible.end(),
                          [&](ValueId value) { return graph_.value(value).producer == id; });
    for (std::size_t port = 0; port < visible.size(); ++port) {
      row.outputs.push_back(shape_of(graph_, visible[port]));
      origins_[visible[port]] = {row.node, port, row.outputs.back(), row.device};
    }
    for (const RowOrigin* source : sources) {
      cross(*source, row.device);
      sources_[row.node].push_back(source->row);
      read_.insert(source->row);
    }
    std::string op = op_of(group, row);
    // The table lists an operand once even if a source node reads it twice.
    const OpInfo* known = is_single || row.inputs.empty() ? nullptr : find_tf_op(op);
    while (known != nullptr && static_cast<int>(row.inputs.size()) < known->inputs)
      row.inputs.push_back(row.inputs.back());
    const bool has_bias = row.inputs.size() == 3 && is_single &&
                          (graph_.op_name(id) == "conv" || graph_.op_name(id) == "conv_transpose");
    if (has_bias) {
      add_convolution_before(id, row, op);
    } else if (is_single && tf_op_name(graph_, id) != op && op != "BiasAdd" && op != "Relu6" &&
               !op.starts_with("Depthwise")) {
      // A gradient that Tenon expresses by a more general operator with the same operands.
    } else if (is_single) {
      add_padding_before(id, row);
      add_implied_inputs(id, row);
    }
    if (row.device.type == "GPU" && has_kernel(op))
      add_remark(RowKind::Stream, row.node, op, row.device);
    add_row(std::move(row));
  }

  // Renames a row whose name ends in another operator's name.
  void rename_if_misleading(NodeId id, Row& row) {
    const std::string_view op = graph_.op_name(id);
    const bool has_bias =
        (op == "conv" || op == "conv_transpose") && graph_.node(id).operands.size() == 3;
    const OpInfo* derived = find_tf_op(numbered(last_part(row.node)).stem);
    const std::string own = has_bias || op == "add" ? "BiasAdd" : tf_op_name(graph_, id);
    if (derived == nullptr || derived->name == own || (op == "add" && derived->name == "Add") ||
        derived->name == "Relu6")
      return;
    if (derived->op_class == OpClass::Gradient) return;  // Tenon lacks some of them
    const std::string_view scope = scope_of(row.node);
    names_.erase(row.node);
    row.node = free_name(has_bias && !scope.empty() ? concat(scope, "/BiasAdd")
                                                    : concat(row.node, "/", own));
  }

  std::string op_of(const RowGroup& group, const Row& row) const {
    if (group.nodes.size() > 1) {
      const std::string_view derived = op_in_name(row.node);
      if (!derived.empty()) return std::string(derived);
    }
    const NodeId id = group.last();
    const OpInfo* derived = find_tf_op(numbered(last_part(row.node)).stem);
    if (derived != nullptr && derived->op_class == OpClass::Gradient)
      return std::string(derived->name);
    if (adds_bias(id, row.inputs)) return "BiasAdd";
    if (is_relu6(graph_, id)) return "Relu6";
    if (graph_.op_name(id) == "conv" && groups_of(graph_, id) > 1 && row.inputs.size() > 1 &&
        row.inputs[1].extents.size() == 4 && row.inputs[1].extents[2] == groups_of(graph_, id)) {
      return "DepthwiseConv2dNative";
    }
    return tf_op_name(graph_, id);
  }

  // TensorFlow's convolution lacks a bias: adds a row for it, and `row` becomes the addition of the
  // bias.
  void add_convolution_before(NodeId id, Row& row, std::string& op) {
    const bool is_last_part = last_part(row.node) == "BiasAdd";
    Row conv = plain_row(free_name(concat(is_last_part ? scope_of(row.node) : row.node, "/", op)),
                         row.outputs);
    conv.device = row.device;
    conv.inputs = {row.inputs[0], row.inputs[1]};
    row.inputs = {row.outputs[0], row.inputs[2]};
    add_padding_before(id, conv);
    add_implied_inputs(id, conv);
    if (conv.device.type == "GPU") add_remark(RowKind::Stream, conv.node, op, conv.device);
    op = "BiasAdd";
    add_row(std::move(conv));
  }

  // TensorFlow pads implicitly only as SAME: adds a Pad row for other pads.
  void add_padding_before(NodeId id, Row& row) {
    const auto padding = padding_of_its_own(graph_, id);
    if (!padding) return;
    const bool is_greatest = graph_.op_name(id) == "max_pool";
    const std::string pad_op = is_greatest ? "PadV2" : "Pad";
    Row pad = plain_row(free_name(concat(row.node, "/", pad_op)), {row.inputs[0]});
    pad.device = row.device;
    pad.inputs = {row.inputs[0]};
    for (std::size_t k = 0; k < 2; ++k) {
      pad.outputs[0].extents[padding->first_axis + k] += padding->pads[k] + padding->pads[2 + k];
    }
    row.inputs[0] = pad.outputs[0];
    add_row_constant(pad, 1, "paddings", {4, 2});
    if (is_greatest) {
      const TensorShape number{pad.outputs[0].element, {}};
      Row value = plain_row(free_name(pad.node + "/constant_values"), {number});
      value.device = row.device;
      pad.inputs.push_back(number);
      add_row(std::move(value));
    }
    if (row.device.type == "GPU") add_remark(RowKind::Stream, pad.node, pad_op, pad.device);
    add_row(std::move(pad));
  }

  const Graph& graph_;
  const NativeNodes& native_;
  DeviceName device_{"GPU", 0};
  IdMap<ValueId, RowOrigin> origins_;
  std::vector<NodeId> constants_;
  std::vector<RowGroup> groups_;
  std::unordered_set<NodeId> joined_;  // nodes in groups of several
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, std::size_t> suffixes_;
  std::set<std::tuple<std::string, std::size_t, DeviceName>> crossed_;
  std::map<std::string, std::vector<std::string>> sources_;  // of compute rows, by name
  std::unordered_map<NodeId, std::string> step_names_;
  bool was_laid_out_ = false;     // by TensorFlow's layout optimiser
  std::set<std::string> read_;    // names of rows with readers
  std::set<std::int64_t> edges_;  // numbers of copied edges
  static constexpr std::int64_t kSourceToSink = 2;
  std::int64_t data_edges_ = 0, first_fetch_ = 0;
  TensorScopeTable table_;
};

}  // namespace

TensorScopeTable export_table(const Graph& graph, const NativeNodes& own) {
  return TableExporter(graph, own).run();
}

}  // namespace tenon::documents::tensorscope
