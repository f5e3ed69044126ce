#include "frontends/torch/import_node.h"
#include "ops/definition/var_ops.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace tenon::frontends::torch {
namespace {

// Advanced indexing: index tensors for some axes, broadcast against each other.
struct Indexing {
  std::vector<std::size_t> axes;
  std::vector<Var> indices;
  /// Shape to which the indices broadcast.
  Dims shape;
  /// The axes are neighbours: the indexed axes stay at the place of the first.
  bool is_adjacent = true;
};

Dims broadcast(const Dims& a, const Dims& b) {
  Dims longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  const std::size_t skipped = longer.size() - shorter.size();
  for (std::size_t k = 0; k < shorter.size(); ++k) {
    if (longer[skipped + k] == Dim(1)) longer[skipped + k] = shorter[k];
  }
  return longer;
}

Indexing indexing_of(NodeImport& n) {
  Indexing made;
  const std::vector<Var> given = n.tensors("indices");
  for (std::size_t axis = 0; axis < given.size(); ++axis) {
    if (!given[axis].is_valid()) continue;
    if (n.dtype(given[axis]) == DType::Bool || n.dtype(given[axis]) == DType::U8)
      n.unsupported("the number of true elements depends on data");
    if (!made.axes.empty() && axis != made.axes.back() + 1) made.is_adjacent = false;
    made.axes.push_back(axis);
    made.indices.push_back(cast_to(given[axis], DType::I64));
    made.shape =
        made.axes.size() == 1 ? n.dims(given[axis]) : broadcast(made.shape, n.dims(given[axis]));
  }
  if (made.axes.empty()) n.unsupported("no index");
  return made;
}

// The indexed axes first, then the others in order.
std::vector<std::int64_t> indexed_first(const Indexing& indexing, std::size_t rank) {
  std::vector<std::int64_t> perm;
  for (const std::size_t axis : indexing.axes) perm.push_back(static_cast<std::int64_t>(axis));
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (std::ranges::find(indexing.axes, axis) == indexing.axes.end())
      perm.push_back(static_cast<std::int64_t>(axis));
  }
  return perm;
}

std::vector<std::int64_t> inverse_of(const std::vector<std::int64_t>& perm) {
  std::vector<std::int64_t> inverse(perm.size());
  for (std::size_t k = 0; k < perm.size(); ++k)
    inverse[static_cast<std::size_t>(perm[k])] = static_cast<std::int64_t>(k);
  return inverse;
}

// Moves the axes of the index shape from the front to the place of the first indexed axis.
std::vector<std::int64_t> result_order(const Indexing& indexing, std::size_t result_rank) {
  std::vector<std::int64_t> perm(result_rank);
  std::iota(perm.begin(), perm.end(), 0);
  const std::size_t first = indexing.is_adjacent ? indexing.axes.front() : 0;
  std::rotate(perm.begin(), perm.begin() + static_cast<std::ptrdiff_t>(indexing.shape.size()),
              perm.begin() + static_cast<std::ptrdiff_t>(indexing.shape.size() + first));
  return perm;
}

// Coordinates along a new last axis.
Var coordinates(NodeImport& n, const Indexing& indexing, const Dims& extents) {
  std::vector<Var> parts;
  Dims dims = indexing.shape;
  dims.emplace_back(1);
  for (std::size_t k = 0; k < indexing.indices.size(); ++k) {
    const Var index = indexing.indices[k];
    // Negative positions count from the end.
    const Var is_negative = n.call("less", {index, n.number(0, DType::I64)});
    const Var wrapped = n.call("add", {index, n.number_of(extents[indexing.axes[k]])});
    const Var position = n.call("where", {is_negative, wrapped, index});
    parts.push_back(reshape_to(expand_to(position, indexing.shape), dims));
  }
  if (parts.size() == 1) return parts.front();
  return n.call("concat", parts, {{"axis", axis_dim(indexing.shape.size())}});
}

void import_index(NodeImport& n) {
  const Var x = n.first();
  const Indexing indexing = indexing_of(n);
  if (indexing.axes.size() == 1) {
    return n.result(n.call("gather", {x, indexing.indices.front()},
                           {{"axis", axis_dim(indexing.axes.front())}}));
  }
  const Var moved = n.permuted(x, indexed_first(indexing, n.rank(x)));
  const Var found = n.call("gather_nd", {moved, coordinates(n, indexing, n.dims(x))});
  n.result(n.permuted(found, result_order(indexing, n.rank(found))));
}

void import_index_put(NodeImport& n) {
  const Var x = n.first();
  const auto given = n.tensors("indices");
  if (given.size() == 1 && n.dtype(given.front()) == DType::Bool &&
      product(n.dims(n.tensor("values"))) == Dim(1) && !n.flag("accumulate")) {
    // A mask over the first axes.
    Dims dims = n.dims(given.front());
    dims.resize(n.rank(x), 1);
    const Var value = reshape_to(n.operand("values", n.dtype(x)), {});
    return n.result(n.call("where", {reshape_to(given.front(), dims), value, x}));
  }
  const Indexing indexing = indexing_of(n);
  const std::vector<std::int64_t> perm = indexed_first(indexing, n.rank(x));
  const Var moved = n.permuted(x, perm);
  Dims updated = indexing.shape;
  const Dims dims = n.dims(moved);
  updated.insert(updated.end(), dims.begin() + static_cast<std::ptrdiff_t>(indexing.axes.size()),
                 dims.end());
  // Values broadcast to the shape of x[indices].
  const std::vector<std::int64_t> order = result_order(indexing, updated.size());
  Dims shape;
  for (const std::int64_t axis : order) shape.push_back(updated[static_cast<std::size_t>(axis)]);
  const Var values =
      n.permuted(expand_to(n.operand("values", n.dtype(x)), shape), inverse_of(order));
  const Var written = n.call("scatter_nd", {moved, coordinates(n, indexing, n.dims(x)), values},
                             {{"reduction", word(n.flag("accumulate") ? "add" : "none")}});
  n.result(n.permuted(written, inverse_of(perm)));
}

void import_index_select(NodeImport& n) {
  const Var x = n.first();
  n.result(n.call("gather",
                  {x, reshape_to(n.tensor("index"), {product(n.dims(n.tensor("index")))})},
                  {{"axis", axis_dim(n.axis("dim", n.rank(x)))}}));
}

void import_gather(NodeImport& n) {
  const Var x = n.first();
  n.result(n.call("gather_elements", {x, n.tensor("index")},
                  {{"axis", axis_dim(n.axis("dim", n.rank(x)))}}));
}

void import_scatter(NodeImport& n) {
  static const std::unordered_map<std::string_view, std::string_view> names = {
      {"sum", "add"},  {"add", "add"},  {"prod", "mul"}, {"multiply", "mul"},
      {"amax", "max"}, {"amin", "min"}, {"none", "none"}};
  const Var x = n.first(), index = n.tensor("index");
  const std::string given =
      n.op == "scatter_add" ? "add" : n.text("reduce", n.text("reduction", "none"));
  const auto reduction = names.find(given);
  if (reduction == names.end() || !n.flag("include_self", true))
    n.unsupported(concat("the reduction '", given, "'"));
  Var updates = n.operand(n.has("src") ? "src" : "value", n.dtype(x));
  const Dims wanted = n.dims(index);
  if (n.rank(updates) == 0) {
    updates = expand_to(updates, wanted);
  } else if (n.dims(updates) != wanted) {  // Only the part that has an index is read.
    updates = n.call("slice", {updates}, {{"starts", Dims(wanted.size(), 0)}, {"ends", wanted}});
  }
  n.result(n.call("scatter_elements", {x, index, updates},
                  {{"axis", axis_dim(n.axis("dim", n.rank(x)))},
                   {"reduction", word(std::string(reduction->second))}}));
}

// Rows of `source` go to the positions of `index` along an axis.
void import_index_add(NodeImport& n) {
  const Var x = n.first();
  const std::size_t axis = n.axis("dim", n.rank(x));
  const bool is_fill = n.op == "index_fill", is_add = n.op == "index_add";
  Var index = n.tensor("index");
  index = reshape_to(index, {product(n.dims(index))});
  Dims wanted = n.dims(x);
  wanted[axis] = n.dims(index).at(0);
  Dims dims(n.rank(x), 1);
  dims[axis] = wanted[axis];
  Var updates = expand_to(n.operand(is_fill ? "value" : "source", n.dtype(x)), wanted);
  if (is_add && n.has("alpha") && n.real("alpha") != 1) updates = updates * n.real("alpha");
  n.result(n.call("scatter_elements", {x, expand_to(reshape_to(index, dims), wanted), updates},
                  {{"axis", axis_dim(axis)}, {"reduction", word(is_add ? "add" : "none")}}));
}

void import_embedding(NodeImport& n) {
  n.result(n.call("gather", {n.tensor("weight"), n.tensor("indices")}, {{"axis", Dim(0)}}));
}

void import_one_hot(NodeImport& n) {
  const Var values = n.build.constant("i64[2] [0, 1]");
  n.result(n.call("one_hot", {n.first(), values}, {{"depth", n.extent("num_classes")}}));
}

// Replaces a slice of the operand.
Var with_part(NodeImport& n, Var x, Var part, std::size_t axis, const Dim& start, const Dim& end) {
  const auto sliced = [&](const Dim& from, const Dim& to) {
    return n.call("slice", {x},
                  {{"starts", Dims{from}}, {"ends", Dims{to}}, {"axes", Dims{axis_dim(axis)}}});
  };
  const Dim extent = n.dims(x)[axis];
  std::vector<Var> parts;
  if (!(start == Dim(0))) parts.push_back(sliced(0, start));
  parts.push_back(part);
  if (!(end == extent)) parts.push_back(sliced(end, extent));
  return parts.size() == 1 ? part : n.call("concat", parts, {{"axis", axis_dim(axis)}});
}

void import_select_scatter(NodeImport& n) {
  const Var x = n.first();
  const std::size_t axis = n.axis("dim", n.rank(x));
  Dim index = n.extent("index");
  if (index.is_constant() && index.constant() < 0) index = index + n.dims(x)[axis];
  Dims dims = n.dims(x);
  dims[axis] = 1;
  const Var part = reshape_to(n.operand("src", n.dtype(x)), dims);
  n.result(with_part(n, x, part, axis, index, index + 1));
}

void import_slice_scatter(NodeImport& n) {
  const Var x = n.first();
  const std::size_t axis = n.axis("dim", n.rank(x), 0);
  if (n.integer("step", 1) != 1) n.unsupported("a step other than 1");
  Dim start = n.extent("start", Dim(0));
  if (start.is_constant() && start.constant() < 0) start = max(start + n.dims(x)[axis], 0);
  const Var part = n.operand("src", n.dtype(x));
  n.result(with_part(n, x, part, axis, start, start + n.dims(part)[axis]));
}

// Position of the first boundary that is not below (right: that is above) an element.
void import_bucketize(NodeImport& n) {
  const Var x = n.first(), boundaries = n.tensor("boundaries");
  Dims column = n.dims(x);
  column.emplace_back(1);
  const DType dtype = n.promoted({"self", "boundaries"});
  const Var element = reshape_to(cast_to(x, dtype), column), bound = cast_to(boundaries, dtype);
  const Var is_below =
      n.flag("right") ? n.call("less_equal", {bound, element}) : n.call("less", {bound, element});
  n.result(n.call("reduce_sum", {cast_to(is_below, DType::I64)},
                  {{"axes", Dims{-1}}, {"keep_axes", false}}));
}

constexpr Handler indexing_table[] = {
    {"index", import_index},
    {"_unsafe_index", import_index},
    {"index_put", import_index_put},
    {"_unsafe_index_put", import_index_put},
    {"index_select", import_index_select},
    {"gather", import_gather},
    {"scatter", import_scatter},
    {"scatter_add", import_scatter},
    {"scatter_reduce", import_scatter},
    {"index_add", import_index_add},
    {"index_copy", import_index_add},
    {"index_fill", import_index_add},
    {"embedding", import_embedding},
    {"one_hot", import_one_hot},
    {"select_scatter", import_select_scatter},
    {"slice_scatter", import_slice_scatter},
    {"bucketize", import_bucketize},
};

}  // namespace

std::span<const Handler> indexing_handlers() { return indexing_table; }

}  // namespace tenon::frontends::torch
