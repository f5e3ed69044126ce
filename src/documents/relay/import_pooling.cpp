#include "base/error.h"
#include "documents/relay/import_call.h"
#include "documents/relay/window.h"

#include <algorithm>

namespace tenon::documents::relay {
namespace {

bool is_max(const CallImport& call) { return call.op().find("max") != std::string::npos; }
const char* pool_op(const CallImport& call) { return is_max(call) ? "max_pool" : "average_pool"; }

Var image(const CallImport& call) {
  return call.as_layout(call.value(0), call.text("layout"),
                        "NC" + spatial_letters(spatial_count(call.op())));
}

void add_out_layout(const CallImport& call, std::vector<Attr>& attrs) {
  const std::string layout = call.text("out_layout");
  if (!layout.empty() && layout != call.text("layout")) attrs.emplace_back("out_layout", layout);
}

ImportedValue import_pool(const CallImport& call) {
  const std::size_t count = spatial_count(call.op());
  std::vector<Attr> attrs = {{"kernel_shape", along_each_axis(call, "pool_size", count)},
                             {"strides", along_each_axis(call, "strides", count)},
                             {"dilations", along_each_axis(call, "dilation", count)},
                             {"pads", pads_around(call, count)},
                             {"ceil_mode", call.flag("ceil_mode")}};
  add_out_layout(call, attrs);
  if (!is_max(call)) attrs.emplace_back("count_include_pad", call.flag("count_include_pad"));
  return call.build().call_all(pool_op(call), {image(call)}, attrs, {""}).front();
}

// Returns the extents of spatial axes if all are numbers.
Integers spatial_extents(const CallImport& call, Var x) {
  const Layout layout(call.text("layout"));
  Integers extents;
  for (const char letter : spatial_letters(spatial_count(call.op()))) {
    const auto axis = layout.axis(letter);
    if (!axis) throw call.error("the layout lacks an axis").got(layout.text());
    const std::optional<std::int64_t> extent = call.type(x).dims[*axis].value();
    if (!extent) return {};
    extents.push_back(*extent);
  }
  return extents;
}

// Global pooling, distinguished from a pool whose window and stride are the image's extents.
ImportedValue import_global_pool(const CallImport& call) {
  const Var x = image(call);
  const Integers extents = spatial_extents(call, x);
  if (extents.empty()) {
    Integers axes;
    const Layout layout(call.text("layout"));
    for (const char letter : spatial_letters(spatial_count(call.op()))) {
      axes.push_back(static_cast<std::int64_t>(*layout.axis(letter)));
    }
    return call.call(is_max(call) ? "reduce_max" : "reduce_mean", {x}, {{"axes", axes}});
  }
  std::vector<Attr> attrs = {{"kernel_shape", extents}, {"strides", extents}};
  add_out_layout(call, attrs);
  return call.build().call_all(pool_op(call), {x}, attrs, {""}).front();
}

// Bins of equal size, if the extents are divisible.
ImportedValue import_adaptive_pool(const CallImport& call) {
  const Var x = image(call);
  Integers sizes = call.integers("output_size");
  const Integers extents = spatial_extents(call, x);
  if (extents.empty()) throw call.unsupported("bins of an extent known at run time");
  if (sizes.empty()) sizes = extents;
  if (sizes.size() == 1) sizes.resize(extents.size(), sizes.front());
  if (sizes.size() != extents.size()) throw call.error("output_size has another number of axes");
  Integers windows;
  for (std::size_t k = 0; k < extents.size(); ++k) {
    if (sizes[k] < 1) throw call.error("output_size is not positive").got(sizes[k]);
    if (extents[k] % sizes[k] != 0) throw call.unsupported("bins of different sizes");
    windows.push_back(extents[k] / sizes[k]);
  }
  std::vector<Attr> attrs = {{"kernel_shape", windows}, {"strides", windows}};
  add_out_layout(call, attrs);
  return call.build().call_all(pool_op(call), {x}, attrs, {""}).front();
}

Integers spatial_axes(const CallImport& call) {
  const Layout layout(call.text("layout"));
  Integers axes;
  for (const char letter : spatial_letters(call.op() == "nn.upsampling3d" ? 3 : 2)) {
    const auto axis = layout.axis(letter);
    if (!axis) throw call.error("the layout lacks an axis").got(layout.text());
    axes.push_back(static_cast<std::int64_t>(*axis));
  }
  return axes;
}

ImportedValue import_upsampling(const CallImport& call) {
  const Var x = call.value(0);
  const bool is_volume = call.op() == "nn.upsampling3d";
  const std::string method = call.text("method");
  const bool is_nearest = method.find("nearest") != std::string::npos;
  const bool is_cubic = method.find("cubic") != std::string::npos;
  const std::string coordinates = is_volume ? call.text("coordinate_transformation_mode")
                                  : call.flag("align_corners") ? "align_corners"
                                                               : "asymmetric";
  std::vector<Attr> attrs = {{"mode", is_nearest ? "nearest"
                                      : is_cubic ? "cubic"
                                                 : "linear"},
                             {"coordinates", coordinates}};
  if (is_nearest) attrs.emplace_back("rounding", "floor");
  std::vector<double> scales;
  for (const char* name : {"scale_d", "scale_h", "scale_w"}) {
    if (is_volume || name != std::string_view("scale_d")) scales.push_back(call.real(name));
  }
  attrs.emplace_back("scales", scales);
  attrs.emplace_back("axes", spatial_axes(call));
  return call.call("resize", {x}, attrs);
}

ImportedValue import_resize(const CallImport& call) {
  const Var x = call.value(0);
  const std::string method = call.text("method"),
                    mode = call.text("coordinate_transformation_mode");
  const bool is_nearest = method.find("nearest") != std::string::npos;
  const bool is_cubic = method.find("cubic") != std::string::npos;
  if (mode != "half_pixel" && mode != "align_corners" && mode != "asymmetric" &&
      mode != "pytorch_half_pixel") {
    throw call.unsupported(concat("coordinates '", mode, "'"));
  }
  Integers sizes = call.integers("size");
  if (sizes.size() == 1) sizes.push_back(sizes.front());
  std::vector<Attr> attrs = {{"mode", is_nearest ? "nearest"
                                      : is_cubic ? "cubic"
                                                 : "linear"},
                             {"coordinates", mode},
                             {"sizes", sizes},
                             {"axes", spatial_axes(call)}};
  if (is_nearest) {
    const std::string rounding = call.text("rounding_method");
    attrs.emplace_back("rounding", rounding == "floor"               ? "floor"
                                   : rounding == "ceil"              ? "ceil"
                                   : rounding == "round_prefer_ceil" ? "round_prefer_ceil"
                                                                     : "round_prefer_floor");
  }
  if (is_cubic) {
    attrs.emplace_back("cubic_a", call.real("cubic_alpha"));
    attrs.emplace_back("exclude_outside", call.integer("cubic_exclude") != 0);
  }
  const Var y = call.call("resize", {x}, attrs);
  const std::optional<DType> out = call.dtype("out_dtype");
  return out ? call.cast(y, *out) : y;
}

ImportedValue import_depth_space(const CallImport& call) {
  if (call.text("layout") != "NCHW") throw call.unsupported(concat("layout ", call.text("layout")));
  const bool is_to_space = call.op() == "nn.depth_to_space";
  std::vector<Attr> attrs = {{"block", call.integer("block_size")}};
  if (call.text("mode") == "CRD") attrs.emplace_back("mode", "crd");
  return call.call(is_to_space ? "depth_to_space" : "space_to_depth", {call.value(0)}, attrs);
}

}  // namespace

void add_pooling_handlers(Handlers& handlers) {
  for (const char* kind : {"max", "avg"}) {
    for (const char* count : {"1d", "2d", "3d"}) {
      handlers[concat("nn.", kind, "_pool", count)] = import_pool;
      handlers[concat("nn.global_", kind, "_pool", count)] = import_global_pool;
      handlers[concat("nn.adaptive_", kind, "_pool", count)] = import_adaptive_pool;
    }
  }
  handlers["nn.upsampling"] = import_upsampling;
  handlers["nn.upsampling3d"] = import_upsampling;
  handlers["image.resize2d"] = import_resize;
  handlers["nn.depth_to_space"] = import_depth_space;
  handlers["nn.space_to_depth"] = import_depth_space;
}

}  // namespace tenon::documents::relay
