#include "documents/tensorscope/check.h"

#include "base/error.h"
#include "documents/native_node.h"
#include "documents/tensorscope/import_node.h"
#include "documents/tensorscope/names.h"
#include "documents/tensorscope/tf_ops.h"
#include "documents/tensorscope/wiring.h"
#include "ir/graph.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace tenon::documents::tensorscope {
namespace {

// Operators without a GPU kernel.
bool runs_no_kernel(std::string_view op) {
  return op.empty() || op == "Identity" || op == "Reshape" || op == "ExpandDims" ||
         op == "Squeeze" || op == "Shape" || op == "StopGradient" || op == "PreventGradient" ||
         op == "ApplyGradientDescent";
}

std::optional<std::vector<TensorShape>> infer_row(const TensorScopeTable& table,
                                                  const DataFlow& step, std::size_t at,
                                                  const std::vector<ImageLayout>& layouts,
                                                  const std::map<std::size_t, Windows>& windows) {
  const Row& row = table.rows[at];
  if (step.ops[at] == kOwnOp) return std::nullopt;  // the note is checked instead
  const ImportRule rule = find_import_rule(step.ops[at]);
  if (rule == nullptr || row.inputs.empty() || row.outputs.empty()) return std::nullopt;
  const OpInfo* known = find_tf_op(step.ops[at]);
  if (known != nullptr && known->inputs > 0 &&
      static_cast<std::size_t>(known->inputs) != row.inputs.size()) {
    throw Error(concat(step.ops[at], " reads ", known->inputs, " tensors"));
  }
  ImageLayout layout = layout_from_shapes(row, step.ops[at]);
  if (layout == ImageLayout::Unknown) layout = layouts[at];
  Builder build;
  ImportNode node{build, table, step, at, {}, layout, nullptr, ""};
  if (const auto found = windows.find(at); found != windows.end()) node.windows = &found->second;
  for (const TensorShape& input : row.inputs) {
    const ElementType* element = find_element(input.element);
    if (element == nullptr || !element->dtype) return std::nullopt;
    const TensorType type{*element->dtype, Dims(input.extents.begin(), input.extents.end()), {}};
    node.operands.push_back(build.input(concat("x", node.operands.size()), type));
  }
  std::vector<TensorShape> shapes;
  for (const Var value : rule(node)) {
    const TensorType& type = build.type(value).tensor();
    shapes.push_back({std::string(element_word(type.dtype)), constants(type.dims)});
    if (shapes.size() > row.outputs.size()) break;
    // TensorFlow has two names for some types; accepts both.
    const TensorShape& said = row.outputs[std::min(shapes.size(), row.outputs.size()) - 1];
    if (find_element(said.element)->dtype == type.dtype) shapes.back().element = said.element;
  }
  return shapes;
}

class TableChecker {
 public:
  TableChecker(const TensorScopeTable& table, const DataFlow& step)
      : table_(table),
        step_(step),
        layouts_(find_layouts(table, step)),
        windows_(find_windows(table, step, layouts_)),
        readers_(table.rows.size()),
        has_control_(table.rows.size(), 0) {
    for (std::size_t at = 0; at < table.rows.size(); ++at) {
      for (std::size_t input = 0; input < step.sources[at].size(); ++input) {
        const std::int64_t from = step.sources[at][input].row;
        if (from >= 0) readers_[static_cast<std::size_t>(from)].push_back({at, input});
        const bool is_doubtful = step.sources[at][input].evidence == Evidence::Chosen;
        if (is_doubtful) doubtful_shapes_.insert(to_string(table.rows[at].inputs[input]));
      }
      for (const std::string& control : table.rows[at].controls) {
        has_control_[static_cast<std::size_t>(table.find_node(control))] = 1;
      }
      const Row& row = table.rows[at];
      if (row.kind == RowKind::Stream) streaming_devices_.insert(row.device);
      if (row.kind == RowKind::Copy && row.edge) copies_[row.node].emplace(row.copy, row.device);
      if (row.kind == RowKind::Fetch) ++fetch_count_;
      if (row.kind == RowKind::Feed) ++feed_count_;
      if (row.kind == RowKind::Stream || !row.inputs.empty()) used_devices_.insert(row.device);
    }
  }

  Findings check() {
    for (std::size_t at = 0; at < table_.rows.size(); ++at) {
      if (at > 0) check_order(at);
      switch (table_.rows[at].kind) {
        case RowKind::Node:
          check_node(at);
          break;
        case RowKind::Feed:
          check_number(at, "feed", fed_, feed_count_);
          break;
        case RowKind::Fetch:
          check_fetch(at);
          break;
        case RowKind::Stream:
          check_stream(at);
          break;
        case RowKind::Copy:
          check_copy(at);
          break;
        case RowKind::Note:
          check_note(at);
          break;
      }
    }
    return std::move(findings_);
  }

 private:
  struct Reader {
    std::size_t row = 0, input = 0;
  };

  auto place(std::size_t at, std::size_t field) const {
    return [this, at, field] { return place_of(table_, at, field); };
  }

  void check_node(std::size_t at) {
    const Row& row = table_.rows[at];
    check_inputs(at, "input shape");
    check_outputs(at);
    check_gradient(at);
    check_transpose(at);
    check_constant(at);
    check_device(at);
    check_named(at);
    if (row.outputs.empty()) return;
    if (!readers_[at].empty() || has_control_[at] != 0) {
      findings_.hold("every result is read");
    } else if (std::ranges::none_of(row.outputs, [&](const TensorShape& output) {
                 return doubtful_shapes_.contains(
                     to_string(output));  // an ambiguous edge may read it
               })) {
      findings_.miss("every result is read", place(at, 0), row.node,
                     "a node whose result is read: a step has no others");
    }
  }

  // A name that refers to another node requires that node's row, unless it was folded away.
  void check_named(std::size_t at) {
    const Row& row = table_.rows[at];
    const auto require = [&](std::string_view node) {
      findings_.require(table_.find_node(node) >= 0, "named node", place(at, 0), row.node,
                        concat("a row '", node, "' too"));
    };
    if (last_part(row.node) == "read" && table_.note(row.node).empty()) require(scope_of(row.node));
    if (const auto transpose = layout_transpose(row.node)) {
      require(transpose->node);
      if (!transpose->ordinal) return;
      // One transpose per reader of a node, in any order.
      const bool is_fresh =
          ordinals_.emplace(std::string(transpose->node), *transpose->ordinal, transpose->input)
              .second;
      findings_.compare("ordinal of a transpose", place(at, 0), is_fresh ? "its own" : "another's",
                        std::string("its own"));
      const auto node = table_.find_node(transpose->node);
      const auto most = node < 0 ? 0 : static_cast<std::int64_t>(table_.rows.size());
      if (*transpose->ordinal >= std::min<std::int64_t>(most, 64))
        findings_.miss("ordinal of a transpose", place(at, 0), std::to_string(*transpose->ordinal),
                       "the number of a reader of its node");
    }
  }

  void check_order(std::size_t at) {
    const std::string before = table_.rows[at - 1].name(), name = table_.rows[at].name();
    findings_.require(before < name, "order of names", place(at, 0), name,
                      concat("a name after '", before, "'"));
  }

  void check_inputs(std::size_t at, std::string_view kind) {
    const Row& row = table_.rows[at];
    for (std::size_t input = 0; input < row.inputs.size(); ++input) {
      const DataSource& source = step_.sources[at][input];
      const auto where = place(at, input_field(row, input));
      if (source.row < 0) {
        findings_.miss(kind, where, to_string(row.inputs[input]),
                       "the shape of a tensor of the table that it can read");
        continue;
      }
      const Row& from = table_.rows[static_cast<std::size_t>(source.row)];
      findings_.compare(kind, where, to_string(row.inputs[input]),
                        to_string(from.outputs[source.port]));
      check_crossing(at, input, from);
    }
  }

  // A tensor that is read on another device must have a copy there.
  void check_crossing(std::size_t at, std::size_t input, const Row& from) {
    const Row& row = table_.rows[at];
    const bool is_from_gpu = from.device.type == "GPU", is_to_gpu = row.device.type == "GPU";
    if (from.device == row.device) {
      findings_.hold("device of what is read");
      return;
    }
    const CopyKind wanted = is_from_gpu
                                ? (is_to_gpu ? CopyKind::DeviceToDevice : CopyKind::DeviceToHost)
                            : is_to_gpu ? CopyKind::HostToDevice
                                        : CopyKind::HostToHost;
    const auto found = copies_.find(from.name());
    const auto has = [&](CopyKind kind) {
      return found->second.contains({kind, row.device}) ||
             found->second.contains({kind, from.device});
    };
    const bool is_copied =
        found != copies_.end() &&
        (has(wanted) || (wanted == CopyKind::DeviceToDevice && has(CopyKind::PeerToPeer)));
    const auto where = place(at, device_field(row));
    const bool is_read = last_part(row.node) == "read";  // placed with its variable
    findings_.require(is_copied || (wanted == CopyKind::HostToHost && !is_read),
                      "device of what is read", where, to_string(row.device),
                      concat(to_string(from.device), ", as '", from.node, "' (input ", input,
                             "), or a row edge_…_", from.node, ":MEMCPY", copy_word(wanted)));
  }

  void check_outputs(std::size_t at) {
    const Row& row = table_.rows[at];
    const OpInfo* known = find_tf_op(step_.ops[at]);
    if (known != nullptr && known->op_class == OpClass::Source) return;
    try {
      const auto inferred = infer_row(table_, step_, at, layouts_, windows_);
      if (!inferred) return;
      for (std::size_t port = 0; port < row.outputs.size(); ++port) {
        const std::string should =
            port < inferred->size() ? to_string((*inferred)[port]) : "nothing";
        findings_.compare("output shape", place(at, output_field(row, port)),
                          to_string(row.outputs[port]), should);
      }
    } catch (const Error& error) {
      findings_.miss("output shape", place(at, output_field(row, 0)), print_row(row),
                     concat("shapes that fit: ", error.summary()));
    }
  }

  // A gradient has the shape of its forward tensor.
  void check_gradient(std::size_t at) {
    const Row& row = table_.rows[at];
    const auto gradient = gradient_name(row.node);
    const std::int64_t forward = gradient ? table_.find_node(gradient->forward) : -1;
    if (forward < 0 || row.outputs.size() != 1) return;
    const Row& node = table_.rows[static_cast<std::size_t>(forward)];
    const auto meanings = gradient_signature(
        step_.ops[at], step_.ops[static_cast<std::size_t>(forward)], gradient->part);
    if (meanings.empty()) return;
    const bool is_second = step_.ops[at] == "Conv2DBackpropFilter" ||
                           step_.ops[at] == "BiasAddGrad" ||
                           (step_.ops[at] == "MatMul" && numbered(gradient->part).number == 1);
    const std::size_t input = is_second ? 1 : 0;
    if (input >= node.inputs.size() || layout_transpose(row.node) || permuted_constant(row.node))
      return;
    const TensorShape& said = row.outputs[0];
    const TensorShape& of = node.inputs[input];
    // The two layouts may differ: then the shapes are permutations of each other.
    const bool is_permuted =
        !(said == of) && step_.ops[at] != "Conv2DBackpropFilter" && is_image_of(said, of);
    findings_.compare("gradient's shape", place(at, output_field(row, 0)), to_string(said),
                      is_permuted ? to_string(said) : to_string(of));
    for (std::size_t k = 0; k < meanings.size() && k < row.inputs.size(); ++k) {
      if (meanings[k] != GradientOperand::Shape) continue;
      const TensorShape should{"int32", {static_cast<std::int64_t>(said.extents.size())}};
      findings_.compare("constant of a shape", place(at, input_field(row, k)),
                        to_string(row.inputs[k]), to_string(should));
    }
  }

  static bool is_image_of(const TensorShape& a, const TensorShape& b) {
    if (a.extents.size() != 4 || b.extents.size() != 4 || a.element != b.element) return false;
    const auto &x = a.extents, &y = b.extents;
    const bool to_first = x == std::vector<std::int64_t>{y[0], y[3], y[1], y[2]};
    const bool to_last = x == std::vector<std::int64_t>{y[0], y[2], y[3], y[1]};
    return to_first || to_last;
  }

  void check_transpose(std::size_t at) {
    const Row& row = table_.rows[at];
    const auto transpose = layout_transpose(row.node);
    if (!transpose) return;
    bool is_read_there = false;
    std::string readers;
    for (const Reader& reader : readers_[at]) {
      const std::string& name = table_.rows[reader.row].node;
      is_read_there =
          is_read_there || (static_cast<std::int64_t>(reader.input) == transpose->input &&
                            (!transpose->to_nchw || name == transpose->node));
      readers += concat(readers.empty() ? "" : ", ", "input ", reader.input, " of '", name, "'");
    }
    findings_.require(is_read_there, "transpose: input in its name", place(at, 0),
                      std::to_string(transpose->input),
                      readers.empty() ? "that of a reader" : readers);
  }

  // The control edges of a folded shape are its node's operands: the forward node's inputs.
  void check_constant(std::size_t at) {
    const Row& row = table_.rows[at];
    if (row.node == permutation_name(true) || row.node == permutation_name(false)) {
      const std::string said = row.outputs.empty() ? "nothing" : to_string(row.outputs[0]);
      findings_.compare("constant of a shape", place(at, output_field(row, 0)), said,
                        std::string("int32 4x1"));
    }
    std::string_view node;
    if (const auto folded = folded_shape(row.node)) node = folded->node;
    if (const auto constant = permuted_constant(row.node)) node = constant->node;
    const auto gradient = gradient_name(node);
    if (!gradient) return;
    check_scope(at, *gradient);
    const std::int64_t forward = table_.find_node(gradient->forward);
    if (forward < 0 || row.controls.empty()) return;
    if (const auto folded = folded_shape(row.node))
      check_port(at, *folded, table_.rows[static_cast<std::size_t>(forward)]);
    std::set<std::string> read;
    for (DataSource source : step_.sources[static_cast<std::size_t>(forward)]) {
      if (source.row >= 0 &&
          layout_transpose(table_.rows[static_cast<std::size_t>(source.row)].node)) {
        source = step_.sources[static_cast<std::size_t>(source.row)][0];
      }
      if (source.row >= 0) read.insert(table_.rows[static_cast<std::size_t>(source.row)].node);
    }
    std::string list;
    for (const std::string& name : read) list += (list.empty() ? "one of " : ", ") + name;
    for (std::size_t k = 0; k < row.controls.size(); ++k) {
      const auto where = place(at, 1 + row.inputs.size() + k);
      findings_.require(read.contains(row.controls[k]), "control edge", where, row.controls[k],
                        list);
    }
  }

  // A shape node has an output per input of the forward node; a gradient by one input reads the
  // shape of that one.
  void check_port(std::size_t at, const FoldedShape& folded, const Row& forward) {
    std::int64_t should =
        folded.port < static_cast<std::int64_t>(forward.inputs.size()) ? folded.port : 0;
    for (const Reader& reader : readers_[at]) {
      if (step_.ops[reader.row] == "Conv2DBackpropFilter") should = 1;
      if (step_.ops[reader.row] == "Conv2DBackpropInput") should = 0;
    }
    findings_.compare("port of a folded shape", place(at, 0), folded.port, should);
  }

  // A gradient reads the shapes that were folded in its own scope.
  void check_scope(std::size_t at, const GradientName& gradient) {
    for (const Reader& reader : readers_[at]) {
      const auto other = gradient_name(table_.rows[reader.row].node);
      if (!other) continue;
      findings_.compare("scope of a folded shape", place(at, 0), std::string(gradient.scope),
                        std::string(other->scope));
    }
  }

  void check_device(std::size_t at) {
    const Row& row = table_.rows[at];
    if (row.inputs.empty() && !copies_.contains(row.node)) {
      std::string list;
      for (const DeviceName& device : used_devices_)
        list += (list.empty() ? "" : " or ") + to_string(device);
      findings_.require(used_devices_.contains(row.device), "device in use",
                        place(at, device_field(row)), to_string(row.device), list);
    }
    if (!is_compute(table_, step_, at) || runs_no_kernel(step_.ops[at])) return;
    if (row.device.type != "GPU" || !streaming_devices_.contains(row.device)) return;
    findings_.require(!table_.stream_op(row.node).empty(), "kernels on a stream", place(at, 0),
                      "no row", concat(row.node, ":", step_.ops[at]));
  }

  void check_number(std::size_t at, std::string_view kind, std::set<std::int64_t>& seen,
                    std::int64_t count) {
    const Row& row = table_.rows[at];
    const bool is_fresh = seen.insert(row.number).second;
    findings_.require(is_fresh && row.number < count, concat("number of a ", kind), place(at, 0),
                      std::to_string(row.number),
                      concat("a number below ", count, " that no other ", kind, " has"));
    findings_.compare(concat("device of a ", kind), place(at, device_field(row)),
                      to_string(row.device), std::string("CPU:0"));
  }

  void check_fetch(std::size_t at) {
    check_inputs(at, "fetch's shape");
    check_number(at, "fetch", fetched_, fetch_count_);
  }

  void check_stream(std::size_t at) {
    const Row& row = table_.rows[at];
    const auto node = static_cast<std::size_t>(table_.find_node(row.node));
    findings_.compare("device of a stream", place(at, device_field(row)), to_string(row.device),
                      to_string(table_.rows[node].device));
    const OpInfo* named = find_tf_op(numbered(last_part(row.node)).stem);
    std::string derived(named != nullptr             ? named->name
                        : layout_transpose(row.node) ? "Transpose"
                                                     : "");
    if (derived.empty()) derived = forward_op_by_gradient(row.node);
    if (!derived.empty() && table_.note(row.node).empty())
      findings_.compare("operator of a stream", place(at, 0), row.op, derived);
  }

  // The record in a note must have the shapes of its row.
  void check_note(std::size_t at) {
    const Row& row = table_.rows[at];
    const auto node = static_cast<std::size_t>(table_.find_node(row.node));
    const Row& noted = table_.rows[node];
    findings_.compare("device of a note", place(at, device_field(row)), to_string(row.device),
                      to_string(noted.device));
    const auto compare = [&](std::size_t field, const TensorShape& says, const Type& type) {
      if (!type.is_tensor() || !all_constant(type.tensor().dims)) return;
      const TensorShape should{std::string(element_word(type.tensor().dtype)),
                               constants(type.tensor().dims)};
      findings_.compare("note", place(node, field), to_string(says), to_string(should));
    };
    try {
      if (!is_own(row.op)) {
        compare(output_field(noted, 0), noted.outputs.at(0), parse_type(row.op));
        return;
      }
      const Graph record = parse_native(row.op);
      for (std::size_t k = 0; k < record.inputs().size() && k < noted.inputs.size(); ++k)
        compare(input_field(noted, k), noted.inputs[k], record.value(record.inputs()[k]).type);
      for (std::size_t k = 0; k < record.outputs().size() && k < noted.outputs.size(); ++k)
        compare(output_field(noted, k), noted.outputs[k], record.value(record.outputs()[k]).type);
    } catch (const Error& error) {
      findings_.miss("note", place(at, 0), row.op, error.summary());
    }
  }

  // "Relu" if the table has a node gradients/NAME_grad/ReluGrad.
  std::string forward_op_by_gradient(const std::string& name) const {
    for (const std::string_view op :
         {"Relu", "MaxPool", "AvgPool", "LRN", "Tanh", "Sigmoid", "Elu", "Relu6"}) {
      if (table_.find_node(concat("gradients/", name, "_grad/", op, "Grad")) >= 0)
        return std::string(op);
    }
    return "";
  }

  void check_copy(std::size_t at) {
    const Row& row = table_.rows[at];
    const Row& node = table_.rows[static_cast<std::size_t>(table_.find_node(row.node))];
    bool is_one = false;
    for (const TensorShape& output : node.outputs)
      is_one = is_one || output.byte_count() == *row.bytes;
    const std::int64_t should = node.outputs.empty() ? 0 : node.outputs[0].byte_count();
    findings_.compare("bytes of a copy", place(at, 2), *row.bytes, is_one ? *row.bytes : should);
    if (row.edge) {
      const bool is_fresh = edges_.insert(*row.edge).second;
      findings_.compare("number of an edge", place(at, 0), is_fresh ? "its own" : "another's",
                        std::string("its own"));
    }
    const auto where = place(at, device_field(row));
    if (!row.edge || row.copy == CopyKind::DeviceToHost) {
      findings_.compare("device of a copy", where, to_string(row.device), to_string(node.device));
    } else {
      check_target(at, node);
    }
    if (!row.edge) return;  // copies within a device are unrestricted
    const bool is_from_host =
        row.copy == CopyKind::HostToDevice || row.copy == CopyKind::HostToHost;
    findings_.compare("kind of a copy", place(at, 0), is_from_host ? "from the host" : "from a GPU",
                      std::string(node.device.type == "GPU" ? "from a GPU" : "from the host"));
  }

  // A copy to a GPU is recorded there, or on the source GPU.
  void check_target(std::size_t at, const Row& node) {
    const Row& row = table_.rows[at];
    const auto [found, is_new] = targets_.try_emplace(row.node);
    std::set<DeviceName>& targets = found->second;
    if (is_new) {
      for (const Reader& reader : readers_[static_cast<std::size_t>(table_.find_node(row.node))]) {
        const DeviceName& device = table_.rows[reader.row].device;
        if (device != node.device && device.type == "GPU") targets.insert(device);
      }
      if (node.device.type == "GPU") targets.insert(node.device);
    }
    std::string list;
    for (const DeviceName& device : targets)
      list += (list.empty() ? "" : " or ") + to_string(device);
    findings_.require(targets.contains(row.device), "device of a copy",
                      place(at, device_field(row)), to_string(row.device),
                      list.empty() ? "a GPU that reads it" : list);
  }

  const TensorScopeTable& table_;
  const DataFlow& step_;
  std::vector<ImageLayout> layouts_;
  std::map<std::size_t, Windows> windows_;
  std::vector<std::vector<Reader>> readers_;
  std::vector<char> has_control_;
  std::set<std::string> doubtful_shapes_;
  std::set<DeviceName> streaming_devices_, used_devices_;
  std::map<std::string, std::set<std::pair<CopyKind, DeviceName>>> copies_;  // by node
  std::map<std::string, std::set<DeviceName>> targets_;  // of a node's copies to GPUs
  std::int64_t fetch_count_ = 0, feed_count_ = 0;
  std::set<std::int64_t> fetched_, fed_, edges_;
  std::set<std::tuple<std::string, std::int64_t, std::int64_t>> ordinals_;
  Findings findings_;
};

}  // namespace

Findings check_table(const TensorScopeTable& table, const DataFlow& step) {
  return TableChecker(table, step).check();
}

}  // namespace tenon::documents::tensorscope
