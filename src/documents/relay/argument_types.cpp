#include "documents/relay/argument_types.h"

#include "documents/relay/types.h"

#include <algorithm>
#include <set>

namespace tenon::documents::relay {
namespace {

std::optional<std::int64_t> extent_at(const Dims& dims, std::int64_t axis) {
  if (axis < 0) axis += static_cast<std::int64_t>(dims.size());
  if (axis < 0 || axis >= static_cast<std::int64_t>(dims.size())) return std::nullopt;
  return dims[static_cast<std::size_t>(axis)].value();
}

// Returns the extent of the axis that a norm or a bias runs along.
std::optional<Integers> along_axis(const CallImport& call) {
  const auto extent = extent_at(call.dims(0), call.integer("axis"));
  return extent ? std::optional(Integers{*extent}) : std::nullopt;
}

std::optional<Integers> dense_weights(const CallImport& call) {
  const auto terms = extent_at(call.dims(0), -1);
  if (!terms || !call.has("units")) return std::nullopt;
  return Integers{call.integer("units"), *terms};
}

// O and I of a convolution are outputs and inputs, I of a transposed one its inputs.
std::optional<Integers> window_weights(const CallImport& call) {
  const std::string data = call.text("data_layout"), kernel = call.text("kernel_layout");
  const auto channel = data.find('C');
  const auto channels = channel == std::string::npos
                            ? std::nullopt
                            : extent_at(call.dims(0), static_cast<std::int64_t>(channel));
  if (!channels || !call.has("channels") || !call.has("kernel_size")) return std::nullopt;
  const std::int64_t groups = call.integer("groups"), outputs = call.integer("channels");
  if (groups < 1) return std::nullopt;
  const bool is_transposed = call.op().ends_with("_transpose");
  const Integers sizes = call.integers("kernel_size");
  const std::string spatial = sizes.size() == 1 ? "W" : sizes.size() == 2 ? "HW" : "DHW";
  Integers shape;
  for (const char letter : kernel) {
    if (letter == 'O') {
      shape.push_back(is_transposed ? outputs / groups : outputs);
    } else if (letter == 'I') {
      shape.push_back(is_transposed ? *channels : *channels / groups);
    } else if (const auto place = spatial.find(letter); place < sizes.size()) {
      shape.push_back(sizes[place]);
    } else {
      return std::nullopt;  // blocks of channels
    }
  }
  return shape.size() == sizes.size() + 2 ? std::optional(shape) : std::nullopt;
}

}  // namespace

std::optional<RelayType> argument_type(const CallImport& call, std::size_t position) {
  static const std::set<std::string, std::less<>> windows = {
      "nn.conv1d",           "nn.conv2d",           "nn.conv3d",
      "nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"};
  static const std::set<std::string, std::less<>> norms = {"nn.bias_add",      "nn.batch_norm",
                                                           "nn.layer_norm",    "nn.group_norm",
                                                           "nn.instance_norm", "nn.prelu"};
  if (position == 0) return std::nullopt;
  std::optional<Integers> shape;
  if (norms.contains(call.op())) shape = along_axis(call);
  if (position == 1 && call.op() == "nn.dense") shape = dense_weights(call);
  if (position == 1 && windows.contains(call.op())) shape = window_weights(call);
  if (!shape) return std::nullopt;
  RelayType type;
  type.dims = *shape;
  type.dtype = dtype_name(call.type(call.value(0)).dtype);
  return type;
}

}  // namespace tenon::documents::relay
