#include "passes/choose_layouts/roles.h"

#include "base/error.h"
#include "ir/node_rules.h"
#include "ops/definition/registry.h"
#include "passes/choose_layouts/shuffle.h"
#include "passes/rewrite/facts.h"

#include <algorithm>

namespace tenon::passes::layouts {
namespace {

const AttrValue* attribute(const Node& node, std::string_view name) {
  if (const AttrValue* given = node.attrs.find(name)) return given;
  const AttrDef* def = node.op->find_attr(name);
  return def && def->default_value ? &*def->default_value : nullptr;
}

std::optional<std::int64_t> place_of(const Dim& axis, const Axes& perm) {
  const auto counted = rewrite::counted_axes({axis}, perm.size());
  if (!counted) return {};
  return std::find(perm.begin(), perm.end(), counted->front()) - perm.begin();
}

// Ops that depend on the order of axes but name the axes they mean, with the list attribute that
// has an entry per axis by default. The attribute `axes` is added to the moved node.
struct ListedAxes {
  std::string_view op, list;
  std::size_t entries_per_axis = 1;
};
constexpr ListedAxes kListedAxes[] = {{"center_crop_pad", "shape"}, {"mean_variance_norm", "axes"},
                                      {"pad", "pads", 2},           {"resize", "scales"},
                                      {"resize", "sizes"},          {"slice", "starts"}};
// Ops whose list must have an entry for every axis: the list itself is permuted.
constexpr ListedAxes kFullLists[] = {{"expand", "shape"}, {"tile", "repeats"}};

std::size_t length(const AttrValue& list) {
  if (const auto* dims = std::get_if<Dims>(&list)) return dims->size();
  const auto* numbers = std::get_if<std::vector<double>>(&list);
  return numbers ? numbers->size() : 0;
}

class Classifier {
 public:
  Classifier(const Graph& graph, NodeId id, const Forms& forms)
      : graph_(graph),
        id_(id),
        node_(graph.node(id)),
        forms_(forms),
        needs_layout_(!forms.has_bare_images()) {}

  LayoutRoles classify() {
    roles_.attrs = node_.attrs;
    roles_.operands.assign(node_.operands.size(), ImageRole::Plain);
    roles_.results.assign(node_.results.size(), ImageRole::Plain);
    if (const std::optional<Shuffle> found = find_shuffle(graph_, id_)) {
      if (may_shuffle(*found)) return shuffle(*found);
    }
    if (node_.op == &find_op("transpose")) return transpose();
    if (node_.op == &find_op("constant")) return roles_;
    if (!touches_images()) return roles_;
    if (!node_.bodies.empty()) return fixed("its body depends on the layout");
    if (node_.op->is_random) return fixed("it draws random numbers in the order of elements");
    if (has_dynamic_attribute()) return fixed("an attribute is known at run time only");
    switch (node_.op->layout.kind) {
      case LayoutRule::Kind::Prefers:
      case LayoutRule::Kind::Any:
        return by_letters();
      case LayoutRule::Kind::FollowsAxis:
        return along_axis();
      case LayoutRule::Kind::Derived:
        if (node_.op->find_attr("axes") && node_.op->find_attr("keep_axes")) return reduction();
        return elementwise();
      case LayoutRule::Kind::LogicalOrder:
        return by_listed_axes();
    }
    return unfit();
  }

 private:
  LayoutRoles fixed(std::string reason) {
    LayoutRoles stays;
    stays.operands.assign(node_.operands.size(), ImageRole::Plain);
    stays.results.assign(node_.results.size(), ImageRole::Plain);
    stays.reason = std::move(reason);
    return stays;
  }

  LayoutRoles movable() {
    roles_.kind = LayoutRoles::Kind::Movable;
    return roles_;
  }

  const TensorType* type(ValueId value) const {
    if (!value || !graph_.value(value).type.is_tensor()) return nullptr;
    return &graph_.value(value).type.tensor();
  }

  // Returns whether an operand or result is an image in a layout that may change.
  bool touches_images() const {
    const auto is_image = [&](ValueId value) {
      const TensorType* found = type(value);
      return found && forms_.may_be_from(*found) && !(needs_layout_ && found->layout.is_empty());
    };
    return std::ranges::any_of(node_.operands, is_image) ||
           std::ranges::any_of(node_.results, is_image);
  }

  bool has_dynamic_attribute() const {
    for (std::size_t k = 0; k < node_.operands.size() && k < node_.op->operands.size(); ++k) {
      if (node_.operands[k] && node_.op->operands[k].is_dynamic_attribute) return true;
    }
    return false;
  }

  // Returns whether the type is an image in a layout that may change, with extents that do not
  // depend on data.
  bool may_move(const TensorType* found) const {
    return found && forms_.may_be_from(*found) && !depends_on_data(*found);
  }

  const std::string& operand_name(std::size_t k) const {
    return node_.op->operands[std::min(k, node_.op->operands.size() - 1)].name;
  }
  const std::string& result_name(std::size_t k) const {
    return node_.op->results[std::min(k, node_.op->results.size() - 1)].name;
  }

  // Ops that find their axes by letter only need the layout.
  LayoutRoles by_letters() {
    bool has_image = false;
    const auto take = [&](ValueId value, const std::string& name, ImageRole& role) {
      const TensorType* found = type(value);
      if (!value || name == "w" || name == "dw") return true;
      if (!found) return false;
      if (found->rank() < 2) return true;
      // Without a letter the op reads axes in logical order, which is channels first.
      if (!may_move(found) || (found->layout.is_empty() && !forms_.has_bare_images())) return false;
      role = ImageRole::Image;
      return has_image = true;
    };
    for (std::size_t k = 0; k < node_.operands.size(); ++k) {
      if (!take(node_.operands[k], operand_name(k), roles_.operands[k])) return unfit();
    }
    if (!has_image) return unfit();
    for (std::size_t k = 0; k < node_.results.size(); ++k) {
      if (!take(node_.results[k], result_name(k), roles_.results[k])) return unfit();
    }
    const bool gives_image =
        std::ranges::find(roles_.results, ImageRole::Image) != roles_.results.end();
    // The result has the layout of the operand unless an attribute overrides it.
    if (gives_image) roles_.attrs.erase("out_layout");
    return movable();
  }

  LayoutRoles by_listed_axes() {
    if (node_.op == &find_op("reshape")) return reshape();
    const TensorType* x = node_.operands.empty() ? nullptr : type(node_.operands[0]);
    const TensorType* y = node_.results.empty() ? nullptr : type(node_.results[0]);
    const bool may = may_move(x) && may_move(y) && x->rank() == y->rank() &&
                     node_.results.size() == 1 && (permute_list(x->rank()) || list_axes(x->rank()));
    if (!may) return fixed("it counts on the order of axes");
    for (std::size_t k = 1; k < node_.operands.size(); ++k) {
      const TensorType* other = type(node_.operands[k]);
      if (node_.operands[k] && (!other || other->rank() > 1)) return unfit();
    }
    roles_.operands[0] = roles_.results[0] = ImageRole::Image;
    return movable();
  }

  bool may_shuffle(const Shuffle& found) const {
    return forms_.has_bare_images() && may_move(type(graph_.node(found.split).operands[0])) &&
           may_move(type(graph_.node(found.join).results[0]));
  }

  LayoutRoles shuffle(const Shuffle& found) {
    roles_.operands[0] = id_ == found.split ? ImageRole::Image : ImageRole::Inner;
    roles_.results[0] = id_ == found.join ? ImageRole::Image : ImageRole::Inner;
    roles_.attrs = id_ == found.split       ? found.split_attrs
                   : id_ == found.transpose ? found.transpose_attrs
                                            : found.join_attrs;
    return movable();
  }

  // A reshape among the spatial axes, such as between an image and its patches.
  LayoutRoles reshape() {
    const TensorType *x = type(node_.operands[0]), *y = type(node_.results[0]);
    const bool may = may_move(x) && may_move(y) && forms_.has_bare_images() &&
                     x->dims[0] == y->dims[0] && x->dims[1] == y->dims[1] &&
                     product({x->dims.begin() + 2, x->dims.end()}) ==
                         product({y->dims.begin() + 2, y->dims.end()});
    if (!may) return fixed("it counts on the order of axes");
    const Dims wanted = permuted(y->dims, forms_.perm(y->rank()));
    const bool may_be_empty =
        std::ranges::any_of(wanted, [](const Dim& extent) { return !provably_at_most(1, extent); });
    roles_.attrs = {{"shape", wanted}};
    if (may_be_empty) roles_.attrs.set("allow_zero", true);
    roles_.operands[0] = roles_.results[0] = ImageRole::Image;
    return movable();
  }

  bool permute_list(std::size_t rank) {
    for (const ListedAxes& full : kFullLists) {
      const AttrValue* list = node_.attrs.find(full.list);
      if (node_.op->name != full.op || !list || length(*list) != rank) continue;
      roles_.attrs.set(full.list, permuted(std::get<Dims>(*list), forms_.perm(rank)));
      return true;
    }
    return false;
  }

  bool list_axes(std::size_t rank) {
    for (const ListedAxes& listed : kListedAxes) {
      if (node_.op->name != listed.op) continue;
      const AttrValue *axes = attribute(node_, "axes"), *list = attribute(node_, listed.list);
      if (!list || length(*list) == 0) continue;
      Axes meant;
      if (axes && length(*axes) > 0) {
        const auto counted = rewrite::counted_axes(std::get<Dims>(*axes), rank);
        if (!counted) return false;
        meant = *counted;
      } else {
        const std::size_t count = length(*list) / listed.entries_per_axis;
        if (count > rank) return false;
        for (std::size_t k = 0; k < count; ++k) meant.push_back(static_cast<std::int64_t>(k));
      }
      for (std::int64_t& axis : meant) axis = *place_of(axis, forms_.perm(rank));
      roles_.attrs.set("axes", to_dims(meant));
      return true;
    }
    return false;
  }

  LayoutRoles unfit() { return fixed("its values are not all images in one layout"); }

  LayoutRoles along_axis() {
    const TensorType* x = node_.operands.empty() ? nullptr : type(node_.operands[0]);
    const std::string& name = node_.op->layout.axis_attr;
    const AttrValue* axis = attribute(node_, name);
    if (!may_move(x) || !axis || !std::holds_alternative<Dim>(*axis)) return unfit();
    const std::size_t rank = x->rank();
    const std::optional<std::int64_t> place = place_of(std::get<Dim>(*axis), forms_.perm(rank));
    if (!place) return unfit();
    for (std::size_t k = 0; k < node_.operands.size(); ++k) {
      if (node_.operands[k] && !assign(node_.operands[k], rank, roles_.operands[k])) return unfit();
    }
    for (std::size_t k = 0; k < node_.results.size(); ++k) {
      const ValueId value = node_.results[k];
      if (!value || assign(value, rank, roles_.results[k])) continue;
      const auto counted = rewrite::counted_axes({std::get<Dim>(*axis)}, rank);
      if (!assign_reduced(value, rank, *counted, roles_.results[k])) {
        return fixed("the order of axes that are left would change");
      }
    }
    roles_.attrs.set(name, Dim(*place));
    return movable();
  }

  // Assigns a role to a value of the moved rank, or of rank 0 or 1: scales, statistics.
  bool assign(ValueId value, std::size_t rank, ImageRole& role) const {
    const TensorType* found = type(value);
    if (!found) return false;
    if (found->rank() < 2) return true;
    if (found->rank() != rank || !may_move(found)) return false;
    role = ImageRole::Image;
    return true;
  }

  // Assigns a role to a reduced result: its remaining axes keep their order, or are permuted like
  // any other value of its rank.
  bool assign_reduced(ValueId value, std::size_t rank, const Axes& gone, ImageRole& role) const {
    Axes left;
    for (const std::int64_t axis : forms_.perm(rank)) {
      if (std::ranges::find(gone, axis) == gone.end()) left.push_back(axis);
    }
    const TensorType* found = type(value);
    if (!found || found->rank() != left.size()) return false;
    if (std::ranges::is_sorted(left)) return true;
    if (!may_move(found)) return false;
    Axes sorted = left;
    std::ranges::sort(sorted);
    for (std::int64_t& axis : left) axis = std::ranges::find(sorted, axis) - sorted.begin();
    if (left != forms_.perm(left.size())) return false;
    role = ImageRole::Image;
    return true;
  }

  LayoutRoles reduction() {
    const TensorType* x = node_.operands.empty() ? nullptr : type(node_.operands[0]);
    const ValueId result = node_.results[0];
    const TensorType* y = type(result);
    if (!may_move(x) || !y || node_.operands.size() != 1) return unfit();
    const std::size_t rank = x->rank();
    roles_.operands[0] = ImageRole::Image;
    Axes gone;
    if (const AttrValue* axes = attribute(node_, "axes"); axes && !std::get<Dims>(*axes).empty()) {
      const auto counted = rewrite::counted_axes(std::get<Dims>(*axes), rank);
      if (!counted) return unfit();
      gone = *counted;
      Axes places;
      for (const std::int64_t axis : gone) places.push_back(*place_of(axis, forms_.perm(rank)));
      std::ranges::sort(places);
      roles_.attrs.set("axes", to_dims(places));
    }
    if (y->rank() == rank) {
      if (!may_move(y)) return unfit();
      roles_.results[0] = ImageRole::Image;
    } else if (y->rank() > 0 && !assign_reduced(result, rank, gone, roles_.results[0])) {
      return fixed("the order of axes that are left would change");
    }
    return movable();
  }

  LayoutRoles elementwise() {
    const TensorType* y = node_.results.empty() ? nullptr : type(node_.results[0]);
    if (!may_move(y)) return unfit();
    if (!rewrite::is_pointwise(graph_, id_)) {
      return fixed("not elementwise");
    }
    const std::size_t rank = y->rank();
    for (std::size_t k = 0; k < node_.operands.size(); ++k) {
      if (!node_.operands[k]) continue;
      const TensorType* x = type(node_.operands[k]);
      if (!x || depends_on_data(*x) || x->rank() > rank) return unfit();
      if (x->rank() == rank) {
        if (!forms_.may_be_from(*x)) return unfit();
        roles_.operands[k] = ImageRole::Image;
      } else if (std::ranges::any_of(x->dims, [](const Dim& dim) { return !(dim == Dim(1)); })) {
        roles_.operands[k] = ImageRole::Broadcast;
      }
    }
    roles_.results[0] = ImageRole::Image;
    return movable();
  }

  // A transpose between the two layouts is not moved: it tells which layout is read.
  LayoutRoles transpose() {
    const TensorType *x = type(node_.operands[0]), *y = type(node_.results[0]);
    if (!x || !y || !Forms::has_rank(x->rank()) || depends_on_data(*x)) return roles_;
    const std::size_t rank = x->rank();
    Axes perm(rank);
    for (std::size_t k = 0; k < rank; ++k) perm[k] = static_cast<std::int64_t>(rank - 1 - k);
    if (const AttrValue* given = node_.attrs.find("perm")) {
      perm = rewrite::counted_axes(std::get<Dims>(*given), rank).value_or(Axes{});
    }
    const auto is_in = [&](const TensorType& found, const Layout& layout) {
      return found.layout == layout || (found.layout.is_empty() && !needs_layout_);
    };
    if (perm == forms_.perm(rank) && is_in(*x, forms_.from(rank)) && is_in(*y, forms_.to(rank))) {
      roles_.kind = LayoutRoles::Kind::Gives;
      roles_.operands[0] = ImageRole::Image;
    } else if (perm == forms_.back(rank) && is_in(*x, forms_.to(rank)) &&
               is_in(*y, forms_.from(rank))) {
      roles_.kind = LayoutRoles::Kind::Takes;
      roles_.results[0] = ImageRole::Image;
    } else if (touches_images()) {
      return fixed("it counts on the order of axes");
    }
    return roles_;
  }

  const Graph& graph_;
  NodeId id_;
  const Node& node_;
  const Forms& forms_;
  bool needs_layout_;  // only values that name their layout are images
  LayoutRoles roles_;
};

}  // namespace

LayoutRoles roles_of(const Graph& graph, NodeId node, const Forms& forms) {
  return Classifier(graph, node, forms).classify();
}

}  // namespace tenon::passes::layouts
