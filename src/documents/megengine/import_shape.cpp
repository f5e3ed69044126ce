#include "base/text.h"
#include "documents/megengine/importer.h"

#include <algorithm>
#include <set>

namespace tenon::documents::megengine {
namespace {

using Integers = Attr::Integers;

std::int64_t member(const frontends::JsonValue& json, std::string_view name,
                    std::int64_t otherwise) {
  return Param(&json).integer(name, otherwise);
}

}  // namespace

// Returns the shape in the second input, or the document's.
Extents MegEngineImporter::target() {
  if (input_count() > 1) {
    if (const auto values = host_values(1)) return *values;
  }
  const Extents stated = stated_output(0);
  if (stated.empty()) throw Error("the target shape is not known");
  return stated;
}

void MegEngineImporter::reshape() {
  const Var x = input(0);
  if (settings_.computes_shapes && input_count() > 1 && value_[index_.inputs[opr_][1]]) {
    const Var shape = input(1);
    if (builder_.type(shape).is_tensor() && builder_.type(shape).tensor().dtype == DType::I64) {
      define(0, builder_.call("reshape", {x, shape}));
      return;
    }
  }
  const Extents shape = target();
  const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  define(0, builder_.call("reshape", {x}, {{"shape", shape}, {"allow_zero", is_empty}}));
}

void MegEngineImporter::broadcast() {
  const Var x = input(0);
  const Extents to = target(), from = extents(x);
  // `expand` also accepts shapes smaller than the target.
  const Var y = builder_.call("expand", {x}, {{"shape", to}});
  if (extents(y) != to)
    throw Error("this does not broadcast").got(to_text(from), " to ", to_text(to));
  define(0, y);
}

void MegEngineImporter::concat_all() {
  std::vector<Var> parts = inputs();
  if (parts.empty()) throw Error("nothing to concatenate");
  const std::int64_t axis = param().integer("axis", 0);
  define(0, builder_.call("concat", parts, {{"axis", axis}}));
}

// Axis k of the result is axis pattern[k]; -1 is a new one. Omitted axes have extent one.
void MegEngineImporter::dimshuffle() {
  const frontends::JsonValue* pattern_json = param().find("pattern");
  const auto* pattern =
      pattern_json ? std::get_if<frontends::JsonValue::Array>(&pattern_json->value) : nullptr;
  if (pattern == nullptr) unsupported("the footprint states no 'pattern'");
  const Var x = input(0);
  const Extents from = extents(x);
  Integers perm, shape;
  std::set<std::int64_t> named;
  for (const frontends::JsonValue& entry : *pattern) {
    const auto* axis = std::get_if<std::int64_t>(&entry.value);
    if (axis == nullptr || *axis < -1 || *axis >= static_cast<std::int64_t>(from.size()) ||
        (*axis >= 0 && !named.insert(*axis).second)) {
      throw Error("this is not a pattern of axes");
    }
    if (*axis >= 0) perm.push_back(*axis);
    shape.push_back(*axis < 0 ? 1 : from[static_cast<std::size_t>(*axis)]);
  }
  const bool is_permutation = perm.size() == from.size() && shape.size() == from.size();
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    if (named.contains(static_cast<std::int64_t>(axis))) continue;
    if (from[axis] != 1)
      throw Error("an axis is dropped that has more than one element").got(to_text(from));
    perm.push_back(static_cast<std::int64_t>(axis));
  }
  Var y = x;
  if (!std::is_sorted(perm.begin(), perm.end()) || is_permutation)
    y = builder_.call("transpose", {x}, {{"perm", perm}});
  if (!is_permutation) y = builder_.call("reshape", {y}, {{"shape", shape}, {"allow_zero", true}});
  define(0, y);
}

// A list of axes to add (0) or to remove (1), in sequence.
void MegEngineImporter::axis_add_remove() {
  const frontends::JsonValue* desc_json = param().find("desc");
  const auto* desc =
      desc_json ? std::get_if<frontends::JsonValue::Array>(&desc_json->value) : nullptr;
  if (desc == nullptr) unsupported("the footprint states no 'desc'");
  Var y = input(0);
  const Var x = y;
  Integers axes;
  std::int64_t last_method = -1;
  const auto flush = [&] {
    if (axes.empty()) return;
    std::sort(axes.begin(), axes.end());
    y = builder_.call(last_method == 1 ? "squeeze" : "unsqueeze", {y}, {{"axes", axes}});
    axes.clear();
  };
  for (const frontends::JsonValue& entry : *desc) {
    const std::int64_t method = member(entry, "method", -1), axis = member(entry, "axisnum", -1);
    if (method != 0 && method != 1) throw Error("an axis is neither added nor removed");
    // Ascending additions, and removals from the last axis on, are merged into one node.
    const bool joins = method == last_method && !axes.empty() &&
                       (method == 0 ? axis > axes.back() : axis < axes.back());
    if (!joins) flush();
    last_method = method;
    axes.push_back(axis);
  }
  flush();
  define_from(x, y);
}

// For each sliced axis, the parameters state which further inputs are its begin, end, step and
// index.
void MegEngineImporter::subtensor() {
  Var y = input(0);
  const Var x = y;
  const Extents from = extents(x);
  const auto number = [&](std::size_t k) {
    if (k >= input_count()) throw Error("an index is missing");
    const auto values = host_values(k);
    if (!values || values->size() != 1) unsupported("an index is only known at run time");
    return values->front();
  };
  const frontends::JsonValue::Array* desc = param().list();
  Integers starts, ends, axes, steps, dropped;
  std::size_t next = 1;
  const auto take_index = [&](std::int64_t axis, std::int64_t index) {
    starts.push_back(index);
    ends.push_back(index == -1 ? from.at(static_cast<std::size_t>(axis)) : index + 1);
    steps.push_back(1);
    axes.push_back(axis);
    dropped.push_back(axis);
  };
  if (desc == nullptr) {
    // An operator that is not executed lacks a footprint: a single index selects an element of a
    // vector.
    if (input_count() != 2 || from.size() != 1) unsupported("the footprint states no indices");
    take_index(0, number(1));
  } else {
    for (const frontends::JsonValue& entry : *desc) {
      std::int64_t axis = member(entry, "axis", 0);
      if (axis < 0) axis += static_cast<std::int64_t>(from.size());
      if (axis < 0 || axis >= static_cast<std::int64_t>(from.size()))
        throw Error("there is no such axis").got(axis);
      const std::int64_t extent = from[static_cast<std::size_t>(axis)];
      if (member(entry, "idx", 0) != 0) {
        take_index(axis, number(next++));
        continue;
      }
      const std::int64_t begin = member(entry, "begin", 0) != 0 ? number(next++) : 0;
      const std::int64_t end = member(entry, "end", 0) != 0 ? number(next++) : extent;
      const std::int64_t step = member(entry, "step", 0) != 0 ? number(next++) : 1;
      if (step <= 0) unsupported("a step backwards");
      starts.push_back(begin);
      ends.push_back(end);
      steps.push_back(step);
      axes.push_back(axis);
    }
  }
  if (!axes.empty()) {
    y = builder_.call("slice", {y},
                      {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}});
  }
  // A scalar is a vector of one element.
  if (dropped.size() == from.size() && !dropped.empty()) dropped.erase(dropped.begin());
  if (!dropped.empty()) y = builder_.call("squeeze", {y}, {{"axes", dropped}});
  define_from(x, y);
}

void MegEngineImporter::get_var_shape() {
  const Var x = input(0);
  const std::int64_t axis = param().integer("axis", (std::int64_t{1} << 31) - 1);
  const auto rank = static_cast<std::int64_t>(extents(x).size());
  if (axis >= -rank && axis < rank) {
    const std::int64_t from = axis < 0 ? axis + rank : axis;
    define(0, builder_.call("shape", {x}, {{"start", from}, {"end", from + 1}}));
  } else {
    define(0, builder_.call("shape", {x}));
  }
}

}  // namespace tenon::documents::megengine
