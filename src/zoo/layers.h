#pragma once

#include "tenon/builder.h"
#include "zoo/settings.h"

#include <optional>

namespace tenon::zoo {

/// Parameters of a convolution.
struct ConvolutionSettings {
  std::int64_t channels = 0;
  std::int64_t kernel = 1, stride = 1, pad = 0, groups = 1;
  bool has_bias = false;
  /// Weights have variance gain / fan-in: 2 keeps the scale through a following ReLU, 1 without
  /// one.
  double gain = 2;
  /// beginnings, then ends; instead of `pad`
  Attr::Integers pads = {};
  /// name of the result, if it differs from the layer's
  std::string result = {};
};

struct PoolSettings {
  std::int64_t kernel = 2, stride = 2, pad = 0;
  /// beginnings, then ends; instead of `pad`
  Attr::Integers pads = {};
  bool ceil_mode = false;
};

/// Returns SAME padding: one window at every `stride`-th of `size` pixels, the odd pixel at the
/// end.
Attr::Integers same_pads(std::int64_t size, std::int64_t kernel, std::int64_t stride);

/// Suffixes and prefix that form the names of weights from the name of a layer.
struct WeightNames {
  std::string weight = ".weight", bias = ".bias", prefix = {};
};

/// A network under construction: a Builder with layers. A layer's name is the name of its result
/// and the prefix of its weights' names; a weight's name and the network's seed determine its
/// elements.
class Layers {
 public:
  explicit Layers(const NetworkSettings& settings, std::string image_layout = "NCHW",
                  WeightNames weight_names = {});

  Builder& builder() { return build_; }
  const std::string& element_type() const { return element_type_; }
  Graph take() { return build_.take(); }

  Var image(const std::string& name, const std::string& batch, std::int64_t channels,
            std::int64_t size);
  /// Images of noise stored as a constant of the network.
  Var stored_image(const std::string& name, std::int64_t batch, std::int64_t channels,
                   std::int64_t size);
  Var normal(const std::string& name, const Attr::Integers& shape, double deviation,
             const std::string& layout = "");
  Var uniform(const std::string& name, const Attr::Integers& shape, double low, double high);

  Var convolution(Var x, const std::string& name, const ConvolutionSettings& options);
  /// A transposed convolution with `stride` times the extents of x.
  Var up_convolution(Var x, const std::string& name, std::int64_t channels, std::int64_t stride);
  /// Adds a bias per channel of an image as a separate node.
  Var add_bias(Var x, const std::string& name, Var bias);
  Var bias(const std::string& name, std::int64_t channels);
  /// Scales are about `scale`, the other statistics are those of images of order one.
  Var batch_norm(Var x, const std::string& name, double scale = 1);
  Var relu(Var x, const std::string& name) { return build_.call("relu", {x}, {}, name); }
  Var relu6(Var x, const std::string& name);
  Var max_pool(Var x, const std::string& name, const PoolSettings& pool);
  Var average_pool(Var x, const std::string& name, const PoolSettings& pool);
  /// Returns the mean over rows and columns, [N, C].
  Var mean_over_pixels(Var x, const std::string& name);
  /// Merges all axes but the first.
  Var flatten(Var x, const std::string& name);
  Var concat_channels(const std::vector<Var>& xs, const std::string& name);

  /// Returns x · w + b over the last axis.
  Var linear(Var x, const std::string& name, std::int64_t size, double gain = 1);
  Var layer_norm(Var x, const std::string& name, double epsilon);

  std::int64_t channels(Var x) const;
  std::int64_t rows(Var x) const;
  /// Axis indices of an image.
  std::int64_t channel_axis() const { return is_channels_last_ ? 3 : 1; }
  Attr::Integers pixel_axes() const;

 private:
  std::string weight_name(const std::string& layer) const;
  std::string bias_name(const std::string& layer) const;
  std::string type_text(const Attr::Integers& shape, const std::string& layout) const;
  std::uint64_t seed_of(std::string_view name) const;
  std::vector<Attr> pool_attributes(const PoolSettings& pool) const;

  Builder build_;
  std::string network_name_, element_type_;
  bool is_channels_last_;
  WeightNames names_;
  std::optional<Var> zero_, six_;
};

}  // namespace tenon::zoo
