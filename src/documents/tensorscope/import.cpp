#include "documents/tensorscope/import.h"

#include "base/error.h"
#include "base/text.h"
#include "documents/seeded_weight.h"
#include "documents/tensorscope/import_node.h"
#include "documents/tensorscope/names.h"
#include "documents/tensorscope/tf_ops.h"
#include "ir/graph.h"

#include <algorithm>
#include <map>
#include <set>

namespace tenon::documents::tensorscope {
namespace {

class TableImporter {
 public:
  TableImporter(const TensorScopeTable& table, const DataFlow& step, std::string_view source)
      : table_(table),
        step_(step),
        source_(source),
        layouts_(find_layouts(table, step)),
        windows_(find_windows(table, step, layouts_)),
        values_(table.rows.size()),
        uses_(table.rows.size()) {
    for (std::size_t at = 0; at < table.rows.size(); ++at) {
      for (std::size_t input = 0; input < step.sources[at].size(); ++input) {
        const std::int64_t from = step.sources[at][input].row;
        if (from >= 0) uses_[static_cast<std::size_t>(from)].emplace_back(at, input);
      }
    }
  }

  Graph import() {
    require_known_ops();
    name_device();
    // Feeds first, by number, regardless of their uses.
    std::vector<std::size_t> order = step_.order;
    const auto feeds = std::stable_partition(order.begin(), order.end(), [&](std::size_t at) {
      return table_.rows[at].kind == RowKind::Feed;
    });
    std::stable_sort(order.begin(), feeds, [&](std::size_t a, std::size_t b) {
      return table_.rows[a].number < table_.rows[b].number;
    });
    for (const std::size_t at : order) {
      try {
        import_row(at);
      } catch (Error& error) {
        if (!error.has_place())
          error.at(source_, ", ", place_of(table_, at, 0), ", node '", table_.rows[at].node, "'");
        throw;
      }
    }
    build_.set_node_name("");
    add_outputs();
    return build_.take();
  }

 private:
  bool is_source(std::size_t at) const {
    const OpInfo* known = find_tf_op(step_.ops[at]);
    return known != nullptr && known->op_class == OpClass::Source;
  }

  void require_known_ops() const {
    std::map<std::string, std::size_t> unknown;
    for (const std::size_t at : step_.order) {
      const Row& row = table_.rows[at];
      if (row.outputs.empty() || is_source(at)) {
        for (const TensorShape& output : row.outputs) {
          const auto dtype = find_element(output.element)->dtype;
          const bool has_fill =
              dtype && (is_float(*dtype) || is_integer(*dtype) || dtype == DType::Bool);
          if (has_fill || (dtype && row.kind == RowKind::Feed)) continue;
          ++unknown["a constant of type " + output.element];
        }
        continue;
      }
      const std::string& op = step_.ops[at];
      if (op.empty()) {
        ++unknown[concat("a node whose operator nothing tells ('", row.node, "')")];
      } else if (find_import_rule(op) == nullptr) {
        ++unknown[op];
      }
      for (const TensorShape& shape : row.outputs) {
        if (!find_element(shape.element)->dtype) ++unknown["a tensor of type " + shape.element];
      }
    }
    if (unknown.empty()) return;
    std::string list;
    for (const auto& [what, count] : unknown)
      list += concat("\n  - ", what, count > 1 ? concat(" (", count, " times)") : "");
    throw Error(concat("cannot import the table: ", unknown.size(),
                       unknown.size() == 1 ? " thing is" : " things are", " not supported", list),
                ErrorKind::Unsupported)
        .at(source_);
  }

  // Stores the device of most of the step in the metadata, and the exceptions by node.
  void name_device() {
    std::map<DeviceName, std::size_t> counts;
    for (const std::size_t at : step_.order) ++counts[table_.rows[at].device];
    if (counts.empty()) return;
    const auto most =
        std::max_element(counts.begin(), counts.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    Graph& graph = build_.graph();
    graph.metadata["tensorscope.device"] = to_string(most->first);
    for (const std::size_t at : step_.order) {
      const Row& row = table_.rows[at];
      if (row.device == most->first) continue;
      graph.metadata["tensorscope.device." + row.node] = to_string(row.device);
    }
  }

  TensorType type_of(const Row& row, const TensorShape& shape, ImageLayout layout) const {
    if (const std::string_view note = table_.note(row.name()); !note.empty() && !is_own(note)) {
      const Type noted = parse_type(note);
      if (noted.is_tensor() && all_constant(noted.tensor().dims)) return noted.tensor();
      throw Error("a note does not tell the type of a tensor").got(note);
    }
    TensorType type{
        *find_element(shape.element)->dtype, Dims(shape.extents.begin(), shape.extents.end()), {}};
    if (shape.extents.size() == 4 && layout != ImageLayout::Unknown)
      type.layout = Layout(std::string(layout_text(layout)));
    return type;
  }

  void import_row(std::size_t at) {
    const Row& row = table_.rows[at];
    if (row.outputs.empty()) return;
    const std::string name =
        build_.graph().free_name(row.kind == RowKind::Feed ? row.node : row.name());
    build_.set_node_name(row.name());
    if (row.kind == RowKind::Feed || step_.ops[at] == "Placeholder") {
      values_[at] = {build_.input(name, type_of(row, row.outputs[0], layouts_[at]))};
      return;
    }
    if (is_read_of_variable(at)) {
      values_[at] = values_[static_cast<std::size_t>(step_.sources[at][0].row)];
      return;
    }
    if (is_source(at)) {
      for (std::size_t port = 0; port < row.outputs.size(); ++port) {
        values_[at].push_back(constant(at, port, port == 0 ? name : ""));
      }
      return;
    }
    ImportNode node{build_, table_, step_, at, operands_of(at), layout_at(at), nullptr, name};
    if (const auto found = windows_.find(at); found != windows_.end())
      node.windows = &found->second;
    require_operands(node);
    values_[at] = find_import_rule(step_.ops[at])(node);
    require_shapes(at);
  }

  // TensorFlow reads a variable through an Identity; here the constant itself is the value.
  bool is_read_of_variable(std::size_t at) const {
    const Row& row = table_.rows[at];
    if (step_.ops[at] != "Identity" || row.inputs.size() != 1 || step_.sources[at][0].row < 0)
      return false;
    const auto from = static_cast<std::size_t>(step_.sources[at][0].row);
    const DType dtype = *find_element(row.outputs[0].element)->dtype;
    return is_source(from) && table_.rows[from].kind == RowKind::Node && is_float(dtype) &&
           row.node == table_.rows[from].node + "/read" && !row.outputs[0].extents.empty();
  }

  ImageLayout layout_at(std::size_t at) const {
    const ImageLayout own = layout_from_shapes(table_.rows[at], step_.ops[at]);
    if (own != ImageLayout::Unknown) return own;
    if (layouts_[at] != ImageLayout::Unknown && table_.rows[at].outputs[0].extents.size() == 4)
      return layouts_[at];
    for (const DataSource& source : step_.sources[at]) {
      if (source.row >= 0 &&
          layouts_[static_cast<std::size_t>(source.row)] != ImageLayout::Unknown) {
        return layouts_[static_cast<std::size_t>(source.row)];
      }
    }
    return ImageLayout::Unknown;
  }

  std::vector<Var> operands_of(std::size_t at) {
    const Row& row = table_.rows[at];
    std::vector<Var> operands;
    for (std::size_t input = 0; input < row.inputs.size(); ++input) {
      const DataSource& source = step_.sources[at][input];
      if (source.row >= 0) {
        const std::vector<Var>& made = values_[static_cast<std::size_t>(source.row)];
        if (source.port >= made.size())
          throw Error("it reads what is not imported").got(print_row(row));
        operands.push_back(made[source.port]);
      } else {
        if (!find_element(row.inputs[input].element)->dtype) {
          throw Error(concat("cannot import a tensor of type ", row.inputs[input].element),
                      ErrorKind::Unsupported);
        }
        const std::string name = build_.graph().free_name(concat(row.node, "/input_", input));
        operands.push_back(
            build_.input(name, type_of({}, row.inputs[input], ImageLayout::Unknown)));
      }
    }
    return operands;
  }

  void require_operands(const ImportNode& node) const {
    const OpInfo* known = find_tf_op(step_.ops[node.at]);
    const auto count = static_cast<int>(node.operands.size());
    if (step_.ops[node.at] == kOwnOp) return;
    if (count == 0 || (known != nullptr && known->inputs > 0 && known->inputs != count)) {
      refuse(node, concat("it reads ", count, " tensors"));
    }
    if (known != nullptr && known->outputs > 0 &&
        static_cast<std::size_t>(known->outputs) != node.row().outputs.size()) {
      refuse(node, concat("it gives ", node.row().outputs.size(), " tensors"));
    }
  }

  // Requires that inference from the operands gives the table's shapes.
  void require_shapes(std::size_t at) const {
    const Row& row = table_.rows[at];
    for (std::size_t port = 0; port < row.outputs.size() && port < values_[at].size(); ++port) {
      const TensorType& type = build_.type(values_[at][port]).tensor();
      TensorShape inferred{std::string(element_word(type.dtype)), constants(type.dims)};
      const bool is_same_dtype = type.dtype == find_element(row.outputs[port].element)->dtype;
      inferred.element = row.outputs[port].element;
      if (is_same_dtype && to_string(inferred) == to_string(row.outputs[port])) continue;
      throw Error("a node does not give the shape that the table says")
          .at(source_, ", ", place_of(table_, at, output_field(row, port)), ", node '", row.node,
              "'")
          .expected(type)
          .got(row.outputs[port]);
    }
  }

  // Seeds a variable or constant according to its use.
  Var constant(std::size_t at, std::size_t port, const std::string& name) {
    const Row& row = table_.rows[at];
    TensorShape shape = row.outputs[port];
    const DType dtype = *find_element(shape.element)->dtype;
    if (!table_.note(row.node).empty()) {
      const TensorType noted = type_of(row, shape, ImageLayout::Unknown);
      shape.extents = constants(noted.dims);
      const Constant value = dtype == DType::Bool
                                 ? Constant::splat(Tensor::scalar(dtype, 1), shape.extents)
                                 : seeded_weight(dtype, shape.extents, name, 0);
      const Var made = build_.constant(value, name);
      if (!noted.layout.is_empty()) build_.graph().set_type(ValueId(made.id()), noted);
      return made;
    }
    if (auto known = known_integers(at); !known.empty()) {
      return build_.constant(
          Tensor::of(dtype, Shape{static_cast<std::int64_t>(known.size())}, known), name);
    }
    if (dtype == DType::Bool)
      return build_.constant(Constant::splat(Tensor::scalar(dtype, 1), shape.extents), name);
    std::int64_t fan_in = 0;
    std::string layout(layout_text(layouts_[at]));
    for (std::size_t reader = at, steps = 0; steps < 2; ++steps) {
      std::size_t next = reader;
      for (const auto& [user, input] : uses_[reader]) {
        const std::string& op = step_.ops[user];
        if (op == "Identity") next = user;
        const OpInfo* known = find_tf_op(op);
        const bool contracts = known != nullptr && known->op_class == OpClass::Contraction;
        if (contracts && input == 1 && !shape.extents.empty() && shape.extents.back() > 0) {
          fan_in = std::max<std::int64_t>(shape.element_count() / shape.extents.back(), 1);
          if (op == "Conv2D" && shape.extents.size() == 4) layout = "HWIO";
          if (op == "DepthwiseConv2dNative" && shape.extents.size() == 4) {
            layout.clear();
            fan_in = std::max<std::int64_t>(shape.extents[0] * shape.extents[1], 1);
          }
        }
        if (contracts && input == 0) fan_in = 2;  // an image or features: of order one
        if (op == "Conv2DBackpropInput" && input == 1) layout = "HWIO";
        if (layout_transpose(table_.rows[user].node) && input == 0) fan_in = 2;
      }
      if (next == reader) break;
      reader = next;
    }
    const Var made = build_.constant(seeded_weight(dtype, shape.extents, name, fan_in), name);
    return shape.extents.size() == 4 ? with_layout(build_, made, layout) : made;
  }

  // Returns the elements of a constant that names or readers determine.
  std::vector<std::int64_t> known_integers(std::size_t at) const {
    const Row& row = table_.rows[at];
    if (row.outputs.size() != 1 || row.outputs[0].element != "int32" ||
        row.outputs[0].extents.size() != 1)
      return {};
    std::vector<std::int64_t> known;
    if (row.node == permutation_name(true)) known = {0, 3, 1, 2};
    if (row.node == permutation_name(false)) known = {0, 2, 3, 1};
    for (const auto& [user, input] : uses_[at]) {
      const std::string& op = step_.ops[user];
      const bool gives_shape = (op == "Conv2DBackpropFilter" && input == 1) ||
                               (op == "Conv2DBackpropInput" && input == 0) ||
                               (op == "AvgPoolGrad" && input == 0) ||
                               (op == "Reshape" && input == 1);
      if (gives_shape && table_.rows[user].outputs.size() == 1)
        known = table_.rows[user].outputs[0].extents;
    }
    if (static_cast<std::int64_t>(known.size()) != row.outputs[0].extents[0]) known.clear();
    return known;
  }

  void add_outputs() {
    std::map<std::int64_t, Var> fetched;
    for (std::size_t at = 0; at < table_.rows.size(); ++at) {
      const Row& row = table_.rows[at];
      if (row.kind != RowKind::Fetch) continue;
      const DataSource& source = step_.sources[at][0];
      if (source.row < 0 || source.port >= values_[static_cast<std::size_t>(source.row)].size()) {
        throw Error("a fetch is of an output that its node does not have")
            .at(source_, ", ", place_of(table_, at, 0));
      }
      fetched.emplace(row.number, values_[static_cast<std::size_t>(source.row)][source.port]);
    }
    for (const auto& [number, value] : fetched) build_.output(value);
    if (!fetched.empty()) return;
    // Without fetches, the outputs are the results of the last nodes.
    for (const std::size_t at : step_.order) {
      if (!uses_[at].empty() || is_source(at)) continue;
      for (const Var value : values_[at]) build_.output(value);
    }
    if (build_.graph().outputs().empty()) throw Error("the step computes nothing").at(source_);
  }

  const TensorScopeTable& table_;
  const DataFlow& step_;
  std::string_view source_;
  std::vector<ImageLayout> layouts_;
  std::map<std::size_t, Windows> windows_;
  std::vector<std::vector<Var>> values_;
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> uses_;
  Builder build_{"step"};
};

}  // namespace

Graph import_graph(const TensorScopeTable& table, const DataFlow& step, std::string_view source) {
  return TableImporter(table, step, source).import();
}

}  // namespace tenon::documents::tensorscope
