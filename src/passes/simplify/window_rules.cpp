#include "expr/layout_access.h"
#include "ops/families/window.h"
#include "passes/rewrite/facts.h"
#include "passes/simplify/rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::passes::simplification {

using namespace rewrite;

namespace {

/// Padding elements before and after each axis.
struct SpatialPadding {
  Dims before, behind;
};

// Returns the pads of a constant-mode pad node for every axis of its operand.
std::optional<SpatialPadding> padding_of(const Graph& graph, const Node& pad) {
  const Type& type = graph.value(pad.operands.front()).type;
  const AttrValue* pads_attr = pad.attrs.find("pads");
  if (!type.is_tensor() || !pads_attr || pad.attrs.find("mode")) return {};
  const std::size_t rank = type.tensor().rank();
  const Dims& pads = std::get<Dims>(*pads_attr);
  const std::size_t count = pads.size() / 2;
  Dims axes;
  if (const AttrValue* given = pad.attrs.find("axes")) axes = std::get<Dims>(*given);
  if (axes.empty()) {
    for (std::size_t k = 0; k < rank; ++k) axes.emplace_back(static_cast<std::int64_t>(k));
  }
  const auto places = counted_axes(axes, rank);
  if (!places || places->size() != count) return {};
  SpatialPadding padding{Dims(rank, Dim(0)), Dims(rank, Dim(0))};
  for (std::size_t k = 0; k < count; ++k) {
    const auto axis = static_cast<std::size_t>((*places)[k]);
    padding.before[axis] = pads[k];
    padding.behind[axis] = pads[count + k];
  }
  return padding;
}

bool adds_only(const SpatialPadding& padding) {
  const auto is_added = [](const Dim& pad) { return pad.range().lo >= 0 && is_written_down(pad); };
  return std::all_of(padding.before.begin(), padding.before.end(), is_added) &&
         std::all_of(padding.behind.begin(), padding.behind.end(), is_added);
}

bool pads_nothing(const Match& match) {
  const AttrValue* pads = match.root_node().attrs.find("pads");
  if (!pads) return false;
  const Dims& list = std::get<Dims>(*pads);
  return std::all_of(list.begin(), list.end(), [](const Dim& pad) { return pad == Dim(0); });
}

// Returns the fill value of a pad; 0 by default.
std::optional<double> fill_of(const Match& match, std::string_view value) {
  return match.has(value) ? uniform_value(match.graph(), match.value(value)) : 0.0;
}

bool fills_alike(const Match& match) {
  const auto a = fill_of(match, "v"), b = fill_of(match, "w");
  return a && b && *a == *b && std::signbit(*a) == std::signbit(*b);
}

ValueId one_pad(const Match& match) {
  const auto inner = padding_of(match.graph(), match.node("y"));
  const auto outer = padding_of(match.graph(), match.root_node());
  if (!inner || !outer || !adds_only(*inner) || !adds_only(*outer)) return {};
  Dims pads;
  for (std::size_t k = 0; k < inner->before.size(); ++k) {
    pads.push_back(inner->before[k] + outer->before[k]);
  }
  for (std::size_t k = 0; k < inner->behind.size(); ++k) {
    pads.push_back(inner->behind[k] + outer->behind[k]);
  }
  return match.make("pad", {match.value("x"), match.value("v")}, {{"pads", pads}});
}

// Adds a pad's spatial padding to the window's; nullopt if other axes are padded too.
std::optional<Dims> window_pads(const Match& match, const Attributes& window) {
  const auto padding = padding_of(match.graph(), match.node("y"));
  const TensorType* x = match.type("x");
  if (!padding || !adds_only(*padding) || !x || window.find("auto_pad")) return {};
  const AxisMap map("pad", *x, "NC");
  for (std::size_t axis = 0; axis < map.rank(); ++axis) {
    if (map.block(axis) != 1) return {};
  }
  const Dims before = map.logical_dims(padding->before), behind = map.logical_dims(padding->behind);
  if (before.size() < 3) return {};
  for (std::size_t axis : {0, 1}) {
    if (!(before[axis] == Dim(0)) || !(behind[axis] == Dim(0))) return {};
  }
  Dims pads(before.begin() + 2, before.end());
  pads.insert(pads.end(), behind.begin() + 2, behind.end());
  if (const AttrValue* own = window.find("pads")) {
    const Dims& given = std::get<Dims>(*own);
    if (given.size() != pads.size()) return {};
    for (std::size_t k = 0; k < pads.size(); ++k) pads[k] = pads[k] + given[k];
  }
  return pads;
}

// Rebuilds the root on x with these pads.
ValueId with_pads(const Match& match, Dims pads) {
  Attributes attrs = match.root_node().attrs;
  attrs.set("pads", std::move(pads));
  std::vector<ValueId> operands = match.root_node().operands;
  operands.front() = match.value("x");
  return match.make(match.root_node().op->name, std::move(operands), std::move(attrs));
}

ValueId padded_convolution(const Match& match) {
  const auto fill = fill_of(match, "v");
  if (!fill || *fill != 0) {
    match.refuse("a convolution pads with zeros, this pad does not");
    return {};
  }
  const auto pads = window_pads(match, match.root_node().attrs);
  return pads ? with_pads(match, *pads) : ValueId{};
}

// Padding does not affect a maximum if it is the lowest value: -inf, or the lowest integer.
ValueId padded_max_pool(const Match& match) {
  const auto fill = fill_of(match, "v");
  const TensorType* x = match.type("x");
  if (!fill || !x) return {};
  const double lowest = is_float(x->dtype) ? -std::numeric_limits<double>::infinity()
                                           : static_cast<double>(lowest_integer(x->dtype));
  if (*fill != lowest) {
    match.refuse("max_pool pads with the lowest value, this pad does not");
    return {};
  }
  const auto pads = window_pads(match, match.root_node().attrs);
  return pads ? with_pads(match, *pads) : ValueId{};
}

// Padding elements of a pad node are counted in the average.
ValueId padded_average_pool(const Match& match) {
  const auto fill = fill_of(match, "v");
  if (!fill || *fill != 0 || std::signbit(*fill)) {
    match.refuse("average_pool pads with zeros, this pad does not");
    return {};
  }
  Attributes attrs = match.root_node().attrs;
  const auto pads = window_pads(match, attrs);
  if (!pads) return {};
  if (const AttrValue* own = attrs.find("pads"); own && !attrs.find("count_include_pad")) {
    const Dims& given = std::get<Dims>(*own);
    if (std::any_of(given.begin(), given.end(), [](const Dim& pad) { return !(pad == Dim(0)); })) {
      match.refuse("the two paddings are counted differently");
      return {};
    }
  }
  attrs.set("pads", *pads);
  attrs.set("count_include_pad", true);
  return match.make("average_pool", {match.value("x")}, std::move(attrs));
}

/// Kernel taps at either end of one axis of a window.
struct WindowTaps {
  std::int64_t before = 0, behind = 0;
};

// Returns the taps that only ever read padding, limited by the pads; zero for symbolic extents.
WindowTaps idle_taps(const Window& window) {
  for (const Dim& dim : {window.extent, window.kernel, window.count, window.begin, window.end}) {
    if (!dim.is_constant()) return {};
  }
  const std::int64_t taps = window.kernel.constant(), begin = window.begin.constant();
  const std::int64_t last = (window.count.constant() - 1) * window.stride;
  WindowTaps idle;
  while (idle.before + 1 < taps && last + idle.before * window.dilation < begin) ++idle.before;
  while (idle.before + idle.behind + 1 < taps &&
         (taps - 1 - idle.behind) * window.dilation - begin >= window.extent.constant()) {
    ++idle.behind;
  }
  idle.before = std::min(idle.before, begin / window.dilation);
  idle.behind = std::min(idle.behind, window.end.constant() / window.dilation);
  return idle;
}

std::vector<std::int64_t> steps_of(const Attributes& attrs, std::string_view name) {
  const AttrValue* given = attrs.find(name);
  return given ? constants(std::get<Dims>(*given)) : std::vector<std::int64_t>{};
}

// Drops kernel taps that only read padding: dilated windows wider than the image, as in
// segmentation networks, keep their middle taps.
ValueId without_idle_taps(const Match& match) {
  Attributes attrs = match.root_node().attrs;
  const TensorType *x = match.type("x"), *w = match.type("w");
  const AttrValue* pads = attrs.find("pads");
  if (!x || !w || !pads || attrs.find("auto_pad") || attrs.find("pad_value")) return {};
  if (!w->layout.is_empty() || !match.graph().constant_of(match.value("w"))) return {};
  WindowAttrs given;
  given.strides = steps_of(attrs, "strides");
  given.dilations = steps_of(attrs, "dilations");
  given.pads = std::get<Dims>(*pads);
  const Dims image = AxisMap("conv", *x, "NC").logical_dims(x->dims);
  const std::vector<Window> windows = resolve_windows(
      "conv", given, {image.begin() + 2, image.end()}, {w->dims.begin() + 2, w->dims.end()});
  Dims starts, ends, axes;
  for (std::size_t k = 0; k < windows.size(); ++k) {
    const WindowTaps idle = idle_taps(windows[k]);
    if (idle.before + idle.behind == 0) continue;
    starts.emplace_back(idle.before);
    ends.push_back(windows[k].kernel - Dim(idle.behind));
    axes.emplace_back(static_cast<std::int64_t>(k + 2));
    given.pads[k] = given.pads[k] - Dim(idle.before * windows[k].dilation);
    given.pads[windows.size() + k] =
        given.pads[windows.size() + k] - Dim(idle.behind * windows[k].dilation);
  }
  if (axes.empty()) return {};
  attrs.set("pads", given.pads);
  std::vector<ValueId> operands = match.root_node().operands;
  operands[1] =
      match.make("slice", {operands[1]}, {{"starts", starts}, {"ends", ends}, {"axes", axes}});
  return match.make("conv", std::move(operands), std::move(attrs));
}

}  // namespace

std::vector<Rule> window_rules() {
  return {
      {"pad(x, v?) {..}", "x", pads_nothing},
      {"pad(y: pad(x, v?) {..}, w?) {..}", one_pad, fills_alike},
      {"conv(y: pad(x, v?) {..}, w, b?) {..}", padded_convolution},
      {"conv(x, w, b?) {..}", without_idle_taps},
      {"max_pool(y: pad(x, v?) {..}) {..}", padded_max_pool},
      {"average_pool(y: pad(x, v?) {..}) {..}", padded_average_pool},
  };
}

}  // namespace tenon::passes::simplification
