#include "passes/choose_layouts/mover.h"

#include "base/error.h"
#include "base/text.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace tenon::passes::layouts {
namespace {

class Mover {
 public:
  Mover(Graph& graph, const LayoutProblem& problem, const LayoutAssignment& choice)
      : graph_(graph), problem_(problem), forms_(problem.forms), choice_(choice) {}

  void run() {
    for (NodeId id : graph_.nodes_in_order()) {
      switch (problem_.roles[id].kind) {
        case LayoutRoles::Kind::Gives:
          read_moved_form(id);
          break;
        case LayoutRoles::Kind::Takes:
          stay(id);
          unnamed_forms_[graph_.node(id).results[0]] = graph_.node(id).operands[0];
          break;
        default:
          choice_.moves[id] != 0 ? move(id) : stay(id);
      }
    }
    restore_outputs();
    for (const auto& [id, form] : same_) graph_.replace_uses(graph_.node(id).results[0], form);
    graph_.erase_dead();
  }

 private:
  const TensorType& type(ValueId value) const { return graph_.value(value).type.tensor(); }
  bool is_moved(ValueId value) const { return originals_.contains(value); }

  void stay(NodeId id) {
    const std::vector<ValueId> operands = graph_.node(id).operands;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (operands[k] && is_moved(operands[k])) {
        graph_.set_operand(id, k, original_form(operands[k], id));
      }
    }
  }

  void move(NodeId id) {
    const LayoutRoles& roles = problem_.roles[id];
    const std::vector<ValueId> operands = graph_.node(id).operands;
    const std::vector<ValueId> results = graph_.node(id).results;
    const std::size_t rank = rank_of(id);
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (!operands[k]) continue;
      ValueId read = operands[k];
      if (roles.operands[k] == ImageRole::Image) {
        read = moved_form(read, id);
      } else if (is_moved(read)) {
        read = original_form(read, id);
      }
      if (roles.operands[k] == ImageRole::Broadcast) read = widened_form(read, rank, id);
      if (read != operands[k]) graph_.set_operand(id, k, read);
    }
    std::vector<Type> before;
    for (ValueId result : results) before.push_back(result ? graph_.value(result).type : Type{});
    Node& node = graph_.mutable_node(id);
    node.attrs =
        node.op->canonical_attributes ? node.op->canonical_attributes(roles.attrs) : roles.attrs;
    graph_.infer(id);
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (!results[k] || roles.results[k] != ImageRole::Image) continue;
      originals_.emplace(results[k], before[k].tensor());
      const TensorType wanted = forms_.moved(before[k].tensor());
      TENON_ASSERT(type(results[k]).dims == wanted.dims, "a moved node gives what it gave, moved");
      if (!(type(results[k]).layout == wanted.layout)) graph_.set_type(results[k], wanted);
    }
  }

  // Rank that the node's broadcast operands are extended to.
  std::size_t rank_of(NodeId id) const {
    for (ValueId result : graph_.node(id).results) {
      if (result && graph_.value(result).type.is_tensor()) return type(result).rank();
    }
    return 0;
  }

  // A transpose to the moved layout whose operand has or will have a value in that layout.
  void read_moved_form(NodeId id) {
    const ValueId x = graph_.node(id).operands[0], y = graph_.node(id).results[0];
    const bool names_form = !type(y).layout.is_empty();
    const auto known = moved_forms_.find(x);
    if (!is_moved(x) && known == moved_forms_.end() && !unnamed_forms_.contains(x)) {
      (names_form ? moved_forms_ : unnamed_forms_)[x] = y;
      return;
    }
    ValueId form = moved_form(x, id);
    const bool is_alike = type(form).layout == type(y).layout;
    if (!is_alike || graph_.is_output(y)) {
      form = is_alike ? add("identity", {form}, {}, "", id) : view(form, type(y), "", id);
      graph_.mutable_node(graph_.value(form).producer).name = graph_.node(id).name;
      graph_.replace_uses(y, form);
      graph_.swap_names(y, form);
      graph_.erase(id);
    } else {
      // Replaced later: readers of y accept its type as it is, but would request another one of
      // `form`.
      same_.emplace_back(id, form);
    }
  }

  ValueId moved_form(ValueId value, NodeId before) {
    if (is_moved(value)) return value;
    if (const auto known = moved_forms_.find(value); known != moved_forms_.end()) {
      return known->second;
    }
    const TensorType wanted = forms_.moved(type(value));
    const Axes& perm = forms_.perm(wanted.rank());
    ValueId made;
    if (const auto unnamed = unnamed_forms_.find(value); unnamed != unnamed_forms_.end()) {
      const ValueId found = unnamed->second;
      made = type(found).layout == wanted.layout
                 ? found
                 : view(found, wanted, name_for(value, wanted.layout), before);
    } else if (const Constant* constant = free_constant(graph_, value)) {
      made = add_constant(*constant, perm, value, before);
      graph_.set_type(made, wanted);
    } else {
      made = converted(value, wanted, perm, name_for(value, wanted.layout), before);
    }
    moved_forms_.emplace(value, made);
    return made;
  }

  ValueId original_form(ValueId value, NodeId before) {
    const auto known = original_forms_.find(value);
    if (known != original_forms_.end()) return known->second;
    const TensorType& wanted = originals_.at(value);
    const std::size_t rank = wanted.rank();
    const ValueId made =
        converted(value, wanted, forms_.back(rank), name_for(value, forms_.from(rank)), before);
    original_forms_.emplace(value, made);
    return made;
  }

  // Broadcast operands align at their last axis, so that their axes must follow the permuted axes
  // of the result.
  ValueId widened_form(ValueId value, std::size_t rank, NodeId before) {
    const auto known = widened_forms_.find({value, rank});
    if (known != widened_forms_.end()) return known->second;
    const Axes& perm = forms_.perm(rank);
    const TensorType wide{type(value).dtype, widened(type(value).dims, rank), {}};
    const TensorType wanted{wide.dtype, permuted(wide.dims, perm), {}};
    ValueId made;
    if (const Constant* constant = free_constant(graph_, value)) {
      made = add_constant(*constant, perm, value, before);
    } else if (keeps_elements_in_place(wide.dims, perm)) {
      made = view(value, wanted, name_for(value, forms_.to(rank)), before);
    } else {
      made = add("transpose", {view(value, wide, "", before)}, {{"perm", to_dims(perm)}},
                 name_for(value, forms_.to(rank)), before);
    }
    widened_forms_.emplace(std::pair(value, rank), made);
    return made;
  }

  ValueId converted(ValueId value, const TensorType& wanted, const Axes& perm, std::string name,
                    NodeId before) {
    if (keeps_elements_in_place(type(value).dims, perm)) {
      return view(value, wanted, std::move(name), before);
    }
    const bool says_too_much = wanted.layout.is_empty() && !type(value).layout.is_empty();
    const ValueId made = add("transpose", {value}, {{"perm", to_dims(perm)}}, name, before);
    if (says_too_much) return view(made, wanted, "", before);
    if (!(type(made).layout == wanted.layout)) graph_.set_type(made, wanted);
    return made;
  }

  // Reinterprets the elements in memory order under another type.
  ValueId view(ValueId value, const TensorType& wanted, std::string name, NodeId before) {
    Attributes attrs{{"shape", wanted.dims}};
    const bool may_be_empty =
        std::ranges::any_of(wanted.dims, [](const Dim& dim) { return !provably_at_most(1, dim); });
    if (wanted.dims == type(value).dims && !all_constant(wanted.dims)) {
      // Keeps all extents without naming symbols, which a fused group could not resolve.
      attrs.set("shape", Dims(wanted.rank(), 0));
    } else if (may_be_empty) {
      attrs.set("allow_zero", true);
    }
    const ValueId made = add("reshape", {value}, std::move(attrs), std::move(name), before);
    if (!wanted.layout.is_empty()) graph_.set_type(made, wanted);
    return made;
  }

  ValueId add_constant(const Constant& constant, const Axes& perm, ValueId like, NodeId before) {
    Shape shape(perm.size() - constant.shape().size(), 1);
    shape.insert(shape.end(), constant.shape().begin(), constant.shape().end());
    Shape moved;
    for (const std::int64_t axis : perm) moved.push_back(shape[static_cast<std::size_t>(axis)]);
    Constant made;
    if (constant.kind() == Constant::Kind::Splat) {
      made = Constant::splat(constant.stored(), moved);
    } else if (keeps_elements_in_place(Dims(shape.begin(), shape.end()), perm)) {
      made = Constant(constant.materialise().reshaped(moved));
    } else {
      made =
          Constant(reference::evaluate_op(find_op("transpose"), {{"perm", to_dims(perm)}},
                                          {Datum(constant.materialise().reshaped(shape))}, {true})
                       .front()
                       .tensor());
    }
    return add("constant", {}, {{"value", std::move(made)}}, name_for(like, forms_.to(perm.size())),
               before);
  }

  ValueId add(std::string_view op, std::vector<ValueId> operands, Attributes attrs,
              std::string name, NodeId before) {
    Graph::NewNode node;
    node.op = &find_op(op);
    node.operands = std::move(operands);
    node.attrs = std::move(attrs);
    node.results = {std::move(name)};
    return graph_.node(graph_.add_node(std::move(node), before)).results.front();
  }

  std::string name_for(ValueId value, const Layout& layout) const {
    std::string letters = layout.text();
    for (char& letter : letters) {
      letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
    return graph_.free_name(concat(graph_.value(value).name, "_", letters));
  }

  // Keeps the value and the name of every output.
  void restore_outputs() {
    std::vector<ValueId> outputs = graph_.outputs();
    for (ValueId& output : outputs) {
      if (!is_moved(output)) continue;
      const bool is_first = !renamed_.contains(output);
      const ValueId value = output;
      output = original_form(value, NodeId{});
      if (is_first) renamed_.emplace(value, output);
    }
    graph_.set_outputs(std::move(outputs));
    for (const auto& [value, output] : renamed_) {
      graph_.swap_names(value, output);
      graph_.rename(value, name_for(output, forms_.to(type(value).rank())));
    }
  }

  Graph& graph_;
  const LayoutProblem& problem_;
  const Forms& forms_;
  const LayoutAssignment& choice_;
  std::map<ValueId, TensorType> originals_;  // original types of moved values
  std::map<ValueId, ValueId> moved_forms_, original_forms_, renamed_;
  // Moved values whose type must not name the layout.
  std::map<ValueId, ValueId> unnamed_forms_;
  std::vector<std::pair<NodeId, ValueId>> same_;  // transposes whose result already exists
  std::map<std::pair<ValueId, std::size_t>, ValueId> widened_forms_;
};

}  // namespace

void move(Graph& graph, const LayoutProblem& problem, const LayoutAssignment& choice) {
  Mover(graph, problem, choice).run();
}

}  // namespace tenon::passes::layouts
