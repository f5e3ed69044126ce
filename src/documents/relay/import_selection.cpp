#include "base/error.h"
#include "documents/relay/import_call.h"
#include "ops/families/movement.h"

#include <limits>

namespace tenon::documents::relay {
namespace {

Var filled(Var fill, const Dims& shape) { return call_with("expand", {fill}, {{"shape", shape}}); }

Var splat(const CallImport& call, DType dtype, double value, const Integers& shape) {
  for (const std::int64_t extent : shape) {
    if (extent < 0) throw call.error("an extent is negative").got(extent);
  }
  return call.build().constant(Constant::splat(Tensor::scalar(dtype, value), shape));
}

DType required_dtype(const CallImport& call) {
  const std::optional<DType> dtype = call.dtype("dtype");
  if (!dtype) throw call.error("the element type is missing");
  return *dtype;
}

// Broadcasts one number to the shape of another tensor.
ImportedValue fill_like(const CallImport& call, double value) {
  const Var x = call.value(0);
  const TensorType type = call.type(x);
  if (all_constant(type.dims)) return splat(call, type.dtype, value, constants(type.dims));
  return filled(call.build().scalar(value, x), type.dims);
}

ImportedValue take(const CallImport& call) {
  const Var x = call.value(0), indices = call.value(1);
  if (call.integer("batch_dims") != 0) throw call.unsupported("batches");
  if (call.has("axis")) return call.call("gather", {x, indices}, {{"axis", call.integer("axis")}});
  return call.call("gather", {call.call("reshape", {x}, {{"shape", Integers{-1}}}), indices});
}

// Relay has the coordinates along the first axis, a graph along the last.
ImportedValue gather_nd(const CallImport& call) {
  const Var x = call.value(0), indices = call.value(1);
  const std::size_t rank = call.type(indices).rank();
  if (rank == 0) throw call.error("the indices are a scalar");
  Integers perm;
  for (std::size_t k = 1; k < rank; ++k) perm.push_back(static_cast<std::int64_t>(k));
  perm.push_back(0);
  const Var last = rank == 1 ? indices : call.call("transpose", {indices}, {{"perm", perm}});
  return call.call("gather_nd", {x, call.cast(last, DType::I64)},
                   {{"batch_dims", call.integer("batch_dims")}});
}

ImportedValue scatter(const CallImport& call) {
  std::string reduction = call.op() == "scatter_add" ? "add" : "none";
  if (call.op() == "scatter_elements") {
    const std::string word = call.text("reduction");
    if (word != "update") reduction = word;
  }
  return call.call("scatter_elements", {call.value(0), call.value(1), call.value(2)},
                   {{"axis", call.integer("axis")}, {"reduction", reduction}});
}

ImportedValue arange(const CallImport& call) {
  const DType dtype = required_dtype(call);
  Var parts[3];
  for (std::size_t k = 0; k < 3; ++k) {
    parts[k] = call.cast(call.value(k), dtype);
    // A scalar may be a vector of one element.
    if (call.type(parts[k]).rank() != 0)
      parts[k] = call.call("reshape", {parts[k]}, {{"shape", Integers{}}});
  }
  return call.call("range", {parts[0], parts[1], parts[2]});
}

ImportedValue one_hot(const CallImport& call) {
  const DType dtype = required_dtype(call);
  const Var on = call.cast(call.value(1), dtype), off = call.cast(call.value(2), dtype);
  const auto row = [&](Var value) {
    return call.call("reshape", {value}, {{"shape", Integers{1}}});
  };
  const Var values = call.call("concat", {row(off), row(on)}, {{"axis", 0}});
  return call.call("one_hot", {call.value(0), values},
                   {{"depth", call.integer("depth")}, {"axis", call.integer("axis")}});
}

ImportedValue reverse(const CallImport& call) {
  const std::int64_t lowest = std::numeric_limits<std::int32_t>::min();
  const Integers axis = call.integers("axis");
  const std::size_t count = axis.size();
  return call.call("slice", {call.value(0)},
                   {{"starts", Integers(count, -1)},
                    {"ends", Integers(count, lowest)},
                    {"axes", axis},
                    {"steps", Integers(count, -1)}});
}

// Repeats each element in place.
ImportedValue repeat(const CallImport& call) {
  Var x = call.value(0);
  const std::int64_t count = call.integer("repeats");
  if (count < 1) throw call.error("nothing is repeated less than once").got(count);
  if (!call.has("axis")) x = call.call("reshape", {x}, {{"shape", Integers{-1}}});
  const Dims dims = call.type(x).dims;
  const auto rank = static_cast<std::int64_t>(dims.size());
  std::int64_t axis = call.has("axis") ? call.integer("axis") : 0;
  if (axis < -rank || axis >= rank) throw call.error("there is no such axis").got(axis);
  if (axis < 0) axis += rank;
  Dims spread(dims.begin(), dims.begin() + axis + 1), joined = dims;
  spread.emplace_back(count);
  spread.insert(spread.end(), dims.begin() + axis + 1, dims.end());
  joined[static_cast<std::size_t>(axis)] = joined[static_cast<std::size_t>(axis)] * Dim(count);
  const Var wide = filled(call.call("unsqueeze", {x}, {{"axes", Integers{axis + 1}}}), spread);
  return call_with("reshape", {wide}, {{"shape", joined}});
}

ImportedValue tile(const CallImport& call) {
  const Var x = call.value(0);
  Integers repeats = call.integers("reps");
  const std::size_t rank = call.type(x).rank();
  if (repeats.size() < rank) repeats.insert(repeats.begin(), rank - repeats.size(), 1);
  Integers axes;
  for (std::size_t k = rank; k < repeats.size(); ++k)
    axes.push_back(static_cast<std::int64_t>(k - rank));
  const Var wide = axes.empty() ? x : call.call("unsqueeze", {x}, {{"axes", axes}});
  return call.call("tile", {wide}, {{"repeats", repeats}});
}

// A row of a region is its batch index and four corners.
ImportedValue roi_align(const CallImport& call) {
  if (call.text("layout") != "NCHW") throw call.unsupported(concat("layout ", call.text("layout")));
  const Var regions = call.value(1);
  const auto columns = [&](std::int64_t from, std::int64_t to) {
    return call.call("slice", {regions},
                     {{"starts", Attr::Integers{from}},
                      {"ends", Attr::Integers{to}},
                      {"axes", Attr::Integers{1}}});
  };
  const Var images =
      call.cast(call.call("squeeze", {columns(0, 1)}, {{"axes", Attr::Integers{1}}}), DType::I64);
  const Integers size = call.integers("pooled_size");
  return call.call("roi_align", {call.value(0), columns(1, 5), images},
                   {{"height", size.front()},
                    {"width", size.back()},
                    {"sampling_ratio", std::max<std::int64_t>(0, call.integer("sample_ratio"))},
                    {"spatial_scale", call.real("spatial_scale")},
                    {"mode", call.text("mode")},
                    {"half_pixel", false}});
}

}  // namespace

void add_selection_handlers(Handlers& handlers) {
  handlers["take"] = take;
  handlers["gather_nd"] = gather_nd;
  for (const char* op : {"scatter", "scatter_add", "scatter_elements"}) handlers[op] = scatter;
  handlers["arange"] = arange;
  handlers["one_hot"] = one_hot;
  handlers["reverse"] = reverse;
  handlers["reverse_sequence"] = [](const CallImport& call) -> ImportedValue {
    return call.call(
        "reverse_sequence", {call.value(0), call.cast(call.value(1), DType::I64)},
        {{"time_axis", call.integer("seq_axis")}, {"batch_axis", call.integer("batch_axis")}});
  };
  handlers["repeat"] = repeat;
  handlers["tile"] = tile;
  for (const char* op : {"zeros", "ones"}) {
    handlers[op] = [](const CallImport& call) -> ImportedValue {
      return splat(call, required_dtype(call), call.op() == "ones" ? 1 : 0, call.integers("shape"));
    };
  }
  handlers["zeros_like"] = [](const CallImport& call) { return fill_like(call, 0); };
  handlers["ones_like"] = [](const CallImport& call) { return fill_like(call, 1); };
  handlers["full"] = [](const CallImport& call) -> ImportedValue {
    const Var fill = call.value(0);
    const Integers shape = call.integers("shape");
    const std::optional<DType> dtype = call.dtype("dtype");
    return filled(dtype ? call.cast(fill, *dtype) : fill, Dims(shape.begin(), shape.end()));
  };
  handlers["full_like"] = [](const CallImport& call) -> ImportedValue {
    const TensorType type = call.type(call.value(0));
    return filled(call.cast(call.value(1), type.dtype), type.dims);
  };
  handlers["broadcast_to"] = [](const CallImport& call) -> ImportedValue {
    const Integers shape = call.integers("shape");
    return filled(call.value(0), Dims(shape.begin(), shape.end()));
  };
  handlers["broadcast_to_like"] = [](const CallImport& call) -> ImportedValue {
    return filled(call.value(0), call.type(call.value(1)).dims);
  };
  handlers["argwhere"] = [](const CallImport& call) -> ImportedValue {
    const Var places = call.call("nonzero", {call.value(0)});
    return call.cast(call.call("transpose", {places}, {{"perm", Attr::Integers{1, 0}}}),
                     DType::I32);
  };
  handlers["image.grid_sample"] = [](const CallImport& call) -> ImportedValue {
    if (call.text("layout") != "NCHW")
      throw call.unsupported(concat("layout ", call.text("layout")));
    // Relay has the coordinates as [N, 2, H, W], a graph as [N, H, W, 2].
    const Var grid =
        call.call("transpose", {call.value(1)}, {{"perm", Attr::Integers{0, 2, 3, 1}}});
    const std::string method = call.text("method");
    return call.call("grid_sample", {call.value(0), grid},
                     {{"mode", method == "bilinear"  ? "linear"
                               : method == "bicubic" ? "cubic"
                                                     : method},
                      {"padding", call.text("padding_mode")},
                      {"align_corners", call.flag("align_corners")}});
  };
  handlers["vision.roi_align"] = roi_align;
  handlers["shape_of"] = [](const CallImport& call) -> ImportedValue {
    return call.cast(call.call("shape", {call.value(0)}), call.dtype("dtype").value_or(DType::I32));
  };
  handlers["ndarray_size"] = [](const CallImport& call) -> ImportedValue {
    return call.cast(call.call("size", {call.value(0)}), call.dtype("dtype").value_or(DType::I32));
  };
  handlers["trilu"] = [](const CallImport& call) -> ImportedValue {
    const AttributeValue* literal = call.literal(1);
    const auto* number = literal ? std::get_if<IntegerLiteral>(&literal->value) : nullptr;
    if (number == nullptr) throw call.unsupported("a diagonal known at run time");
    return call.call("trilu", {call.value(0)},
                     {{"k", number->value}, {"upper", call.flag("upper")}});
  };
}

}  // namespace tenon::documents::relay
