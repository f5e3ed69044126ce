#include "base/error.h"
#include "documents/relay/import_call.h"
#include "ops/families/movement.h"

#include <algorithm>
#include <limits>

namespace tenon::documents::relay {
namespace {

// Relay's special extents: 0 copies one, -2 copies all remaining, -3 merges two, -4 splits one in
// two; -1 is inferred.
Dims target_shape(const CallImport& call, const Dims& from, const Integers& words) {
  Dims shape;
  std::size_t source = 0;
  const auto take = [&]() -> const Dim& {
    if (source >= from.size())
      throw call.error("the new shape reads more axes than there are").got(to_string(from));
    return from[source++];
  };
  for (std::size_t k = 0; k < words.size(); ++k) {
    const std::int64_t word = words[k];
    if (word > 0) {
      shape.emplace_back(word);
      ++source;
    } else if (word == 0) {
      shape.push_back(call.flag("allowzero") ? Dim(0) : take());
    } else if (word == -1) {
      shape.emplace_back(-1);
      ++source;
    } else if (word == -2) {
      while (source < from.size()) shape.push_back(from[source++]);
    } else if (word == -3) {
      const Dim first = take();
      shape.push_back(first * take());
    } else if (word == -4) {
      if (k + 2 >= words.size()) throw call.error("-4 in a shape is followed by two extents");
      const Dim whole = take();
      Dim first = words[k + 1], second = words[k + 2];
      if (words[k + 1] == -1 && words[k + 2] > 0) first = floor_div(whole, second);
      if (words[k + 2] == -1 && words[k + 1] > 0) second = floor_div(whole, first);
      shape.push_back(first);
      shape.push_back(second);
      k += 2;
    } else {
      throw call.error("a shape has no such word").got(word);
    }
  }
  return shape;
}

Var reshape_dims(Var x, const Dims& shape) {
  const bool has_zero =
      std::any_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim == Dim(0); });
  return call_with("reshape", {x}, {{"shape", shape}, {"allow_zero", has_zero}});
}

ImportedValue reshape(const CallImport& call) {
  const Var x = call.value(0);
  const Integers words = call.integers("newshape");
  const Dims shape = target_shape(call, call.type(x).dims, words);
  // Copied and inferred extents exist in Tenon as well.
  const bool is_plain =
      !call.flag("allowzero") && all_constant(shape) && words.size() == shape.size() &&
      std::all_of(words.begin(), words.end(), [](std::int64_t word) { return word >= -1; });
  if (!words.empty() && is_plain) return call.call("reshape", {x}, {{"shape", words}});
  return reshape_dims(x, shape);
}

// Applies the special extents from the last axis to the first.
ImportedValue reverse_reshape(const CallImport& call) {
  const Var x = call.value(0);
  Dims from = call.type(x).dims;
  Integers words = call.integers("newshape");
  std::reverse(from.begin(), from.end());
  std::reverse(words.begin(), words.end());
  Dims shape = target_shape(call, from, words);
  std::reverse(shape.begin(), shape.end());
  return reshape_dims(x, shape);
}

ImportedValue transpose(const CallImport& call) {
  std::vector<Attr> attrs;
  if (call.has("axes") && !call.integers("axes").empty())
    attrs.emplace_back("perm", call.integers("axes"));
  return call.call("transpose", {call.value(0)}, attrs);
}

ImportedValue squeeze(const CallImport& call) {
  std::vector<Attr> attrs;
  if (call.has("axis")) {
    if (call.integers("axis").empty()) return call.value(0);
    attrs.emplace_back("axes", call.integers("axis"));
  }
  return call.call("squeeze", {call.value(0)}, attrs);
}

ImportedValue expand_dims(const CallImport& call) {
  const Var x = call.value(0);
  const auto rank = static_cast<std::int64_t>(call.type(x).rank());
  const std::int64_t count = call.integer("num_newaxis");
  std::int64_t axis = call.integer("axis");
  if (axis < -rank - 1 || axis > rank || count < 0 || count > 64)
    throw call.error("there is no such axis").got(axis);
  if (axis < 0) axis += rank + 1;
  if (count == 0) return x;
  Integers axes;
  for (std::int64_t k = 0; k < count; ++k) axes.push_back(axis + k);
  return call.call("unsqueeze", {x}, {{"axes", axes}});
}

ImportedValue concatenate(const CallImport& call) {
  const std::vector<Var> parts = call.values(0);
  if (parts.empty()) throw call.error("there is nothing to join");
  return call.call("concat", parts, {{"axis", call.integer("axis")}});
}

ImportedValue stack(const CallImport& call) {
  std::vector<Var> parts = call.values(0);
  if (parts.empty()) throw call.error("there is nothing to join");
  const std::int64_t axis = call.integer("axis");
  for (Var& part : parts) part = call.call("unsqueeze", {part}, {{"axes", Integers{axis}}});
  return call.call("concat", parts, {{"axis", axis}});
}

// Equal parts, or cuts at positions.
ImportedValue split_tensor(const CallImport& call) {
  const Var x = call.value(0);
  const auto rank = static_cast<std::int64_t>(call.type(x).rank());
  std::int64_t axis = call.integer("axis");
  if (axis < -rank || axis >= rank) throw call.error("there is no such axis").got(axis);
  if (axis < 0) axis += rank;
  std::vector<Attr> attrs = {{"axis", axis}};
  std::int64_t count = 0;
  constexpr std::int64_t most_parts = 65536;
  if (std::holds_alternative<IntegerLiteral>(call.attribute("indices_or_sections").value)) {
    count = call.integer("indices_or_sections");
  } else {
    Integers cuts = call.integers("indices_or_sections");
    const std::optional<std::int64_t> extent =
        call.type(x).dims[static_cast<std::size_t>(axis)].value();
    if (!extent) throw call.unsupported("cuts along an extent known at run time");
    cuts.push_back(*extent);
    Integers sizes;
    std::int64_t before = 0;
    for (const std::int64_t cut : cuts) {
      if (cut < before || cut > *extent) throw call.error("the cuts are not in order").got(cut);
      sizes.push_back(cut - before);
      before = cut;
    }
    count = static_cast<std::int64_t>(sizes.size());
    attrs.emplace_back("sizes", sizes);
  }
  if (count < 1 || count > most_parts)
    throw call.error("there is no such number of parts").got(count);
  std::vector<ImportedValue> parts;
  for (const Var part : call.build().call_all(
           "split", {x}, attrs, std::vector<std::string>(static_cast<std::size_t>(count), ""))) {
    parts.emplace_back(part);
  }
  return ImportedValue::tuple(std::move(parts));
}

ImportedValue strided_slice(const CallImport& call) {
  const Var x = call.value(0);
  Integers starts = call.integers("begin"), ends = call.integers("end"), steps, axes;
  if (call.has("strides")) steps = call.integers("strides");
  if (steps.size() == 1) steps.resize(starts.size(), steps.front());
  steps.resize(starts.size(), 1);
  if (call.has("axes")) axes = call.integers("axes");
  if (axes.empty()) {
    for (std::size_t k = 0; k < starts.size(); ++k) axes.push_back(static_cast<std::int64_t>(k));
  }
  if (ends.size() != starts.size() || axes.size() != starts.size()) {
    throw call.error("begin and end differ in length").got(starts.size(), " and ", ends.size());
  }
  if (call.text("slice_mode") == "size") {
    for (std::size_t k = 0; k < ends.size(); ++k) {
      ends[k] = ends[k] < 0 ? std::numeric_limits<std::int32_t>::max() : starts[k] + ends[k];
      steps[k] = 1;
    }
  }
  return call.call("slice", {x},
                   {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}});
}

ImportedValue pad(const CallImport& call) {
  const Var x = call.value(0);
  const bool is_mirror = call.op() == "nn.mirror_pad";
  const std::size_t rank = call.type(x).rank();
  const auto* rows = std::get_if<AttributeList>(&call.attribute("pad_width").value);
  if (rows == nullptr || rows->size() != rank)
    throw call.error("pad_width has another number of axes").expected(rank);
  Integers begins, ends;
  for (const AttributeValue& row : *rows) {
    const auto* sides = std::get_if<AttributeList>(&row.value);
    if (sides == nullptr || sides->size() != 2 ||
        !std::holds_alternative<IntegerLiteral>((*sides)[0].value) ||
        !std::holds_alternative<IntegerLiteral>((*sides)[1].value)) {
      throw call.error("pad_width has two numbers for each axis");
    }
    begins.push_back(std::get<IntegerLiteral>((*sides)[0].value).value);
    ends.push_back(std::get<IntegerLiteral>((*sides)[1].value).value);
  }
  begins.insert(begins.end(), ends.begin(), ends.end());
  std::vector<Attr> attrs = {{"pads", begins}};
  std::string mode = is_mirror ? call.text("mode") : call.text("pad_mode");
  if (is_mirror && mode == "SYMMETRIC")
    throw call.unsupported("mirror images that repeat the edge");
  if (mode == "REFLECT") mode = "reflect";
  if (mode != "constant") attrs.emplace_back("mode", mode);
  if (is_mirror || mode != "constant" || call.argument_count() < 2)
    return call.call("pad", {x}, attrs);
  // The reference's default pad value is the integer 0 for every type; the graph omits it.
  const AttributeValue* literal = call.literal(1);
  const auto* number = literal ? std::get_if<IntegerLiteral>(&literal->value) : nullptr;
  if (number && number->value == 0 && is_float(call.type(x).dtype))
    return call.call("pad", {x}, attrs);
  return call.call("pad", {x, call.cast(call.value(1), call.type(x).dtype)}, attrs);
}

// Permutes axes, splits and merges blocks: reshape, transpose, reshape.
ImportedValue layout_transform(const CallImport& call) {
  const Layout from(call.text("src_layout")), to(call.text("dst_layout"));
  const Var x = call.value(0);
  const Dims dims = call.type(x).dims;
  if (from.rank() != dims.size())
    throw call.error("the layout has another rank").expected(from.rank()).got(dims.size());
  std::string letters;
  for (const char c : from.text()) {
    if (c >= 'A' && c <= 'Z') letters += c;
  }
  Dims split_dims;
  std::string split_letters;
  for (std::size_t k = 0, axis = 0; k < from.text().size(); ++k) {
    const char c = from.text()[k];
    if (c >= '0' && c <= '9') continue;
    const char upper = static_cast<char>(c & ~0x20);
    const std::int64_t now = from.block(upper), wanted = to.block(upper);
    if (c == upper && now == 1 && wanted > 1) {
      split_dims.push_back(floor_div(dims[axis], Dim(wanted)));
      split_dims.emplace_back(wanted);
      split_letters += {upper, static_cast<char>(upper | 0x20)};
    } else {
      if (now != 1 && wanted != 1 && now != wanted)
        throw call.unsupported("blocks of another size");
      split_dims.push_back(dims[axis]);
      split_letters += c;
    }
    ++axis;
  }
  Integers perm;
  Dims joined;
  for (const char c : to.text()) {
    if (c >= '0' && c <= '9') continue;
    const std::size_t at = split_letters.find(c);
    if (at == std::string::npos) throw call.error("the layouts have different axes").got(to.text());
    perm.push_back(static_cast<std::int64_t>(at));
    Dim extent = split_dims[at];
    const char lower = static_cast<char>(c | 0x20);
    if (c != lower && to.block(c) == 1 && from.block(c) > 1) {
      const std::size_t inner = split_letters.find(lower);
      perm.push_back(static_cast<std::int64_t>(inner));
      extent = extent * split_dims[inner];
    }
    joined.push_back(extent);
  }
  if (perm.size() != split_dims.size())
    throw call.error("the layouts have different axes").got(to.text());
  const bool splits = split_dims.size() != dims.size(), joins = joined.size() != perm.size();
  const Var parts = splits ? reshape_dims(x, split_dims) : x;
  const Var moved = call.call("transpose", {parts}, {{"perm", perm}});
  return joins ? reshape_dims(moved, joined) : moved;
}

// Puts each element first in a block of zeros; the last block is cropped to its element.
ImportedValue dilate(const CallImport& call) {
  Var x = call.value(0);
  const Integers strides = call.integers("strides");
  const Dims dims = call.type(x).dims;
  if (strides.size() != dims.size()) throw call.error("there is not one stride for each axis");
  const Var fill = call.build().scalar(call.real("dilation_value"), x);
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (strides[axis] == 1) continue;
    if (strides[axis] < 1) throw call.error("a stride is less than one");
    const Dim extent = call.type(x).dims[axis];
    Dims shape = call.type(x).dims;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Dim(1));
    x = reshape_dims(x, shape);
    Attr::Integers pads(2 * shape.size(), 0);
    pads[shape.size() + axis + 1] = strides[axis] - 1;
    x = call.call("pad", {x, fill}, {{"pads", pads}});
    shape[axis] = extent * Dim(strides[axis]);
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
    x = reshape_dims(x, shape);
    x = call_with("slice", {x},
                  {{"starts", Dims{Dim(0)}},
                   {"ends", Dims{(extent - Dim(1)) * Dim(strides[axis]) + Dim(1)}},
                   {"axes", Dims{Dim(static_cast<std::int64_t>(axis))}}});
  }
  return x;
}

}  // namespace

void add_shape_handlers(Handlers& handlers) {
  handlers["reshape"] = reshape;
  handlers["contrib_reverse_reshape"] = reverse_reshape;
  handlers["reshape_like"] = [](const CallImport& call) -> ImportedValue {
    return reshape_dims(call.value(0), call.type(call.value(1)).dims);
  };
  handlers["nn.batch_flatten"] = [](const CallImport& call) -> ImportedValue {
    const Var x = call.value(0);
    const Dims& dims = call.type(x).dims;
    if (dims.empty()) throw call.error("a scalar has no batch");
    return reshape_dims(x, {dims[0], Dim(-1)});
  };
  handlers["transpose"] = transpose;
  handlers["squeeze"] = squeeze;
  handlers["expand_dims"] = expand_dims;
  handlers["concatenate"] = concatenate;
  handlers["stack"] = stack;
  handlers["split"] = split_tensor;
  handlers["strided_slice"] = strided_slice;
  handlers["nn.pad"] = pad;
  handlers["nn.mirror_pad"] = pad;
  handlers["layout_transform"] = layout_transform;
  handlers["dyn.reshape"] = [](const CallImport& call) -> ImportedValue {
    return call.call("reshape", {call.value(0), call.cast(call.value(1), DType::I64)},
                     {{"allow_zero", call.flag("allowzero")}});
  };
  handlers["dyn.broadcast_to"] = [](const CallImport& call) -> ImportedValue {
    return call.call("expand", {call.value(0), call.cast(call.value(1), DType::I64)});
  };
  handlers["dyn.tile"] = [](const CallImport& call) -> ImportedValue {
    return call.call("tile", {call.value(0), call.cast(call.value(1), DType::I64)});
  };
  handlers["nn.dilate"] = dilate;
}

}  // namespace tenon::documents::relay
