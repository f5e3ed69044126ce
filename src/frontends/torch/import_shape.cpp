#include "frontends/torch/import_node.h"
#include "ops/definition/var_ops.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tenon::frontends::torch {
namespace {

// Operators that keep the elements' order: the program states the extents of the result.
void import_reshape(NodeImport& n) { n.result(reshape_to(n.first(), n.result_dims())); }

void import_expand(NodeImport& n) { n.result(expand_to(n.first(), n.result_dims())); }

void import_transpose(NodeImport& n) {
  const Var x = n.first();
  const std::size_t rank = n.rank(x);
  if (n.op == "t" || n.op == "numpy_T" || n.op == "mT") {
    if (rank < 2) return n.result(x);
    if (n.op == "numpy_T" && rank > 2) n.unsupported("more than two axes");
    return n.result(n.swapped(x, rank - 2, rank - 1));
  }
  const bool is_named_axis = n.has("axis0");
  n.result(n.swapped(x, n.axis(is_named_axis ? "axis0" : "dim0", rank),
                     n.axis(is_named_axis ? "axis1" : "dim1", rank)));
}

void import_permute(NodeImport& n) {
  const Var x = n.first();
  n.result(n.permuted(x, n.axes("dims", n.rank(x))));
}

void import_movedim(NodeImport& n) {
  const Var x = n.first();
  const std::size_t rank = n.rank(x);
  const std::vector<std::int64_t> from = n.axes("source", rank), to = n.axes("destination", rank);
  std::vector<std::int64_t> perm(rank, -1);
  for (std::size_t k = 0; k < std::min(from.size(), to.size()); ++k)
    perm[static_cast<std::size_t>(to[k])] = from[k];
  std::int64_t next = 0;
  for (std::int64_t& axis : perm) {
    if (axis >= 0) continue;
    while (std::ranges::find(from, next) != from.end()) ++next;
    axis = next++;
  }
  n.result(n.permuted(x, perm));
}

void import_repeat(NodeImport& n) {
  Dims repeats = n.extents(n.op == "tile" ? "dims" : "repeats");
  Var x = n.first();
  const Dims dims = n.dims(x);
  if (repeats.size() < dims.size())
    repeats.insert(repeats.begin(), dims.size() - repeats.size(), Dim(1));
  Dims padded(repeats.size() - dims.size(), 1);
  padded.insert(padded.end(), dims.begin(), dims.end());
  n.result(n.call("tile", {reshape_to(x, padded)}, {{"repeats", repeats}}));
}

void import_repeat_interleave(NodeImport& n) {
  if (!n.has("repeats") || n.is_tensor("repeats")) n.unsupported("repeats that differ");
  Var x = n.first();
  const Dim repeats = n.extent("repeats");
  if (!n.has("dim")) x = reshape_to(x, {product(n.dims(x))});
  const std::size_t axis = n.has("dim") ? n.axis("dim", n.rank(x)) : 0;
  Dims inner = n.dims(x);
  inner.insert(inner.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Dim(1));
  Dims repeated = inner;
  repeated[axis + 1] = repeats;
  n.result(reshape_to(expand_to(reshape_to(x, inner), repeated), n.result_dims()));
}

void import_concat(NodeImport& n) {
  std::vector<Var> parts;
  for (const Var part : n.tensors("tensors")) {
    // PyTorch ignores empty vectors here.
    const bool is_placeholder = n.dims(part) == Dims{0} && n.result_dims().size() != 1;
    if (!is_placeholder) parts.push_back(cast_to(part, n.result_dtype()));
  }
  const std::size_t axis = n.axis("dim", n.result_dims().size(), 0);
  n.result(parts.size() == 1 ? parts.front() : n.call("concat", parts, {{"axis", axis_dim(axis)}}));
}

void import_stack(NodeImport& n) {
  std::vector<Var> parts;
  const std::size_t axis = n.axis("dim", n.result_dims().size(), 0);
  for (const Var part : n.tensors("tensors")) {
    Dims dims = n.dims(part);
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), Dim(1));
    parts.push_back(reshape_to(cast_to(part, n.result_dtype()), dims));
  }
  n.result(parts.size() == 1 ? parts.front() : n.call("concat", parts, {{"axis", axis_dim(axis)}}));
}

// The program states the extents of every part.
void import_split(NodeImport& n) {
  const Var x = n.first();
  const std::size_t axis = n.axis("dim", n.rank(x), 0);
  if (n.result_count() == 1 && n.op != "unbind") return n.result(x);
  Dims sizes;
  for (std::size_t k = 0; k < n.result_count(); ++k)
    sizes.push_back(n.op == "unbind" ? Dim(1) : n.result_type(k).dims[axis]);
  std::vector<Var> parts =
      n.result_count() == 1
          ? std::vector<Var>{x}
          : n.call_all("split", {x}, {{"axis", axis_dim(axis)}, {"sizes", sizes}}, sizes.size());
  if (n.op == "unbind") {
    for (std::size_t k = 0; k < parts.size(); ++k)
      parts[k] = reshape_to(parts[k], n.result_type(k).dims);
  }
  n.results(parts);
}

Var sliced(NodeImport& n, Var x, std::size_t axis, const Dim& start, const Dim& end,
           std::int64_t step = 1) {
  return n.call("slice", {x},
                {{"starts", Dims{start}},
                 {"ends", Dims{end}},
                 {"axes", Dims{axis_dim(axis)}},
                 {"steps", Dims{step}}});
}

void import_select(NodeImport& n) {
  const Var x = n.first();
  const std::size_t axis = n.axis("dim", n.rank(x));
  Dim index = n.extent("index");
  if (index.is_constant() && index.constant() < 0) index = index + n.dims(x)[axis];
  n.result(reshape_to(sliced(n, x, axis, index, index + 1), n.result_dims()));
}

// Bounds of a slice: the end of "everything after" is the largest integer.
void import_slice(NodeImport& n) {
  const Var x = n.first();
  const std::size_t axis = n.axis("dim", n.rank(x), 0);
  const Dim extent = n.dims(x)[axis];
  const Dim start = n.extent("start", Dim(0));
  Dim end = n.extent("end", extent);
  if (end.is_constant() && end.constant() >= kMaxExtent) end = extent;
  const std::int64_t step = n.integer("step", 1);
  if (start == Dim(0) && end == extent && step == 1) return n.result(x);
  n.result(sliced(n, x, axis, start, end, step));
}

void import_narrow(NodeImport& n) {
  const Var x = n.first();
  const std::size_t axis = n.axis("dim", n.rank(x));
  if (n.is_tensor("start")) n.unsupported("a start that is a tensor");
  Dim start = n.extent("start");
  if (start.is_constant() && start.constant() < 0) start = start + n.dims(x)[axis];
  n.result(sliced(n, x, axis, start, start + n.extent("length")));
}

void import_flip(NodeImport& n) {
  Var x = n.first();
  for (const std::int64_t axis : n.axes("dims", n.rank(x)))
    x = sliced(n, x, static_cast<std::size_t>(axis), -1, -kMaxExtent, -1);
  n.result(x);
}

void import_roll(NodeImport& n) {
  Var x = n.first();
  const Dims shape = n.dims(x);
  const Dims shifts = n.extents("shifts");
  std::vector<std::int64_t> axes = n.integers("dims");
  if (axes.empty()) {
    x = reshape_to(x, {product(shape)});
    axes = {0};
  }
  for (std::size_t k = 0; k < axes.size() && k < shifts.size(); ++k) {
    const auto axis = static_cast<std::size_t>(
        axes[k] < 0 ? axes[k] + static_cast<std::int64_t>(n.rank(x)) : axes[k]);
    const Dim extent = n.dims(x).at(axis), shift = mod(shifts[k], max(extent, 1));
    if (shift == Dim(0)) continue;
    x = n.call("concat",
               {sliced(n, x, axis, extent - shift, extent), sliced(n, x, axis, 0, extent - shift)},
               {{"axis", axis_dim(axis)}});
  }
  n.result(reshape_to(x, shape));
}

// PyTorch lists pads from the last axis: before, after.
void import_pad(NodeImport& n) {
  const Var x = n.first();
  const Dims given = n.extents(n.has("pad") ? "pad" : "padding");
  const std::size_t count = given.size() / 2, rank = n.rank(x);
  if (given.size() % 2 != 0 || count > rank) n.unsupported("its pads do not fit its operand");
  Dims pads(2 * rank, 0);
  for (std::size_t k = 0; k < count; ++k) {
    pads[rank - 1 - k] = given[2 * k];
    pads[2 * rank - 1 - k] = given[2 * k + 1];
  }
  std::string mode = n.text("mode", "constant");
  if (n.op.starts_with("reflection_pad")) mode = "reflect";
  if (n.op.starts_with("replication_pad") || mode == "replicate") mode = "edge";
  if (mode == "circular") mode = "wrap";
  std::vector<Var> operands = {x};
  if (mode == "constant" && n.has("value")) operands.push_back(n.operand("value", n.dtype(x)));
  n.result(n.call("pad", operands, {{"pads", pads}, {"mode", word(mode)}}));
}

void import_triangle(NodeImport& n) {
  n.result(n.call("trilu", {n.first()},
                  {{"k", n.extent("diagonal", Dim(0))}, {"upper", n.op == "triu"}}));
}

// Windows along an axis; the elements of each window become the last axis.
void import_unfold(NodeImport& n) {
  Var x = n.first();
  const std::size_t rank = n.rank(x), axis = n.axis("dimension", rank);
  const std::int64_t size = n.integer("size"), step = n.integer("step");
  constexpr std::int64_t kMaxWindow = 4096;
  if (size < 1 || size > kMaxWindow) n.unsupported("its windows are too long");
  const Dim count = n.result_dims()[axis];
  std::vector<Var> parts;
  Dims dims = n.dims(x);
  dims[axis] = count;
  dims.emplace_back(1);
  for (std::int64_t k = 0; k < size; ++k) {
    const Var part = sliced(n, x, axis, k, (count - 1) * step + k + 1, step);
    parts.push_back(reshape_to(part, dims));
  }
  n.result(parts.size() == 1 ? parts.front() : n.call("concat", parts, {{"axis", axis_dim(rank)}}));
}

void import_pixel_shuffle(NodeImport& n) {
  const bool is_shuffle = n.op == "pixel_shuffle";
  const Dim block = n.extent(is_shuffle ? "upscale_factor" : "downscale_factor");
  if (is_shuffle) {
    return n.result(
        n.call("depth_to_space", {n.first()}, {{"block", block}, {"mode", word("crd")}}));
  }
  // [N, C, h*b, w*b] to [N, C*b*b, h, w].
  const Var x = n.first();
  const Dims d = n.dims(x);
  if (d.size() != 4) n.unsupported("more or fewer than four axes");
  const Var split =
      reshape_to(x, {d[0], d[1], floor_div(d[2], block), block, floor_div(d[3], block), block});
  n.result(reshape_to(n.permuted(split, {0, 1, 3, 5, 2, 4}), n.result_dims()));
}

void import_channel_shuffle(NodeImport& n) {
  const Var x = n.first();
  const Dims d = n.dims(x);
  if (d.size() < 3) n.unsupported("an image without spatial axes");
  const Dim groups = n.extent("groups");
  Dims split = {d[0], groups, floor_div(d[1], groups)};
  split.insert(split.end(), d.begin() + 2, d.end());
  n.result(reshape_to(n.swapped(reshape_to(x, split), 1, 2), d));
}

void import_diff(NodeImport& n) {
  Var x = n.first();
  const std::size_t axis = n.axis("dim", n.rank(x), -1);
  if (n.integer("n", 1) != 1) n.unsupported("differences of a higher order");
  std::vector<Var> parts;
  if (n.has("prepend")) parts.push_back(n.tensor("prepend"));
  parts.push_back(x);
  if (n.has("append")) parts.push_back(n.tensor("append"));
  if (parts.size() > 1) x = n.call("concat", parts, {{"axis", axis_dim(axis)}});
  const Dim extent = n.dims(x)[axis];
  const Var later = sliced(n, x, axis, 1, extent), before = sliced(n, x, axis, 0, extent - 1);
  n.result(n.dtype(x) == DType::Bool ? n.call("logical_xor", {later, before}) : later - before);
}

void import_diagonal(NodeImport& n) {
  const Var x = n.first();
  const std::size_t rank = n.rank(x);
  if (n.integer("offset", 0) != 0) n.unsupported("a diagonal beside the main one");
  const std::size_t a = n.axis("dim1", rank, 0), b = n.axis("dim2", rank, 1);
  std::string from, to;
  for (std::size_t k = 0; k < rank; ++k) {
    const char letter = static_cast<char>('a' + (k == b ? a : k));
    from += letter;
    if (k != a && k != b) to += letter;
  }
  to += static_cast<char>('a' + a);
  n.result(n.call("einsum", {x}, {{"equation", word(from + "->" + to)}}));
}

void import_meshgrid(NodeImport& n) {
  const std::vector<Var> given = n.tensors("tensors");
  const bool is_xy = n.text("indexing", "ij") == "xy" && given.size() > 1;
  std::vector<Var> made;
  for (std::size_t k = 0; k < given.size(); ++k) {
    const std::size_t axis = is_xy && k < 2 ? 1 - k : k;
    Dims dims(given.size(), 1);
    dims[axis] = product(n.dims(given[k]));
    made.push_back(expand_to(reshape_to(given[k], dims), n.result_type(k).dims));
  }
  n.results(made);
}

void import_broadcast(NodeImport& n) {
  std::vector<Var> values = n.tensors("tensors");
  for (std::size_t k = 0; k < values.size() && k < n.result_count(); ++k)
    values[k] = expand_to(values[k], n.result_type(k).dims);
  n.results(values);
}

// Supported where the strides are those of the operand in row-major order.
void import_as_strided(NodeImport& n) {
  const Var x = n.first();
  const Dims size = n.extents("size"), stride = n.extents("stride");
  Dim expected = 1;
  bool is_dense = n.extent("storage_offset", Dim(0)) == Dim(0) && size.size() == stride.size();
  for (std::size_t k = size.size(); k-- > 0 && is_dense;) {
    is_dense = size[k] == Dim(1) || stride[k] == expected;
    expected = expected * size[k];
  }
  if (!is_dense || product(size) != product(n.dims(x)))
    n.unsupported("strides that are not those of a dense tensor");
  n.result(reshape_to(x, size));
}

constexpr Handler shape_table[] = {
    {"view", import_reshape},
    {"reshape", import_reshape},
    {"_unsafe_view", import_reshape},
    {"flatten", import_reshape},
    {"unflatten", import_reshape},
    {"squeeze", import_reshape},
    {"unsqueeze", import_reshape},
    {"view_as", import_reshape},
    {"reshape_as", import_reshape},
    {"ravel", import_reshape},
    {"atleast_1d", import_reshape},
    {"expand", import_expand},
    {"expand_as", import_expand},
    {"broadcast_to", import_expand},
    {"broadcast_tensors", import_broadcast},
    {"t", import_transpose},
    {"mT", import_transpose},
    {"numpy_T", import_transpose},
    {"transpose", import_transpose},
    {"swapaxes", import_transpose},
    {"swapdims", import_transpose},
    {"permute", import_permute},
    {"movedim", import_movedim},
    {"moveaxis", import_movedim},
    {"repeat", import_repeat},
    {"tile", import_repeat},
    {"repeat_interleave", import_repeat_interleave},
    {"cat", import_concat},
    {"concat", import_concat},
    {"concatenate", import_concat},
    {"stack", import_stack},
    {"split", import_split},
    {"split_with_sizes", import_split},
    {"chunk", import_split},
    {"tensor_split", import_split},
    {"unbind", import_split},
    {"select", import_select},
    {"slice", import_slice},
    {"narrow", import_narrow},
    {"flip", import_flip},
    {"roll", import_roll},
    {"pad", import_pad},
    {"constant_pad_nd", import_pad},
    {"reflection_pad1d", import_pad},
    {"reflection_pad2d", import_pad},
    {"reflection_pad3d", import_pad},
    {"replication_pad1d", import_pad},
    {"replication_pad2d", import_pad},
    {"replication_pad3d", import_pad},
    {"tril", import_triangle},
    {"triu", import_triangle},
    {"unfold", import_unfold},
    {"pixel_shuffle", import_pixel_shuffle},
    {"pixel_unshuffle", import_pixel_shuffle},
    {"channel_shuffle", import_channel_shuffle},
    {"diff", import_diff},
    {"diagonal", import_diagonal},
    {"meshgrid", import_meshgrid},
    {"as_strided", import_as_strided},
};

}  // namespace

std::span<const Handler> shape_handlers() { return shape_table; }

}  // namespace tenon::frontends::torch
