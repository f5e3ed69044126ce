#pragma once

#include "zoo/zoo.h"

#include <cstdint>
#include <map>

namespace tenon::zoo {

/// Parameter values of a network. Every getter throws a usage Error with the network and the
/// parameter for an invalid value.
class NetworkSettings {
 public:
  /// Parses "batch=4,form=v1"; other parameters have their defaults.
  NetworkSettings(const Network& network, std::string_view text);

  const std::string& network_name() const { return network_.name; }
  /// Returns the text of an extent: a positive number ("4") or a symbol ("N").
  std::string extent(std::string_view name) const;
  /// likewise, or "0"
  std::string extent_or_zero(std::string_view name) const;
  std::int64_t number(std::string_view name, std::int64_t lowest, std::int64_t highest) const;
  bool flag(std::string_view name) const;
  /// Returns a flag, or `automatic` for the value "auto".
  bool flag_or(std::string_view name, bool automatic) const;
  const std::string& word(std::string_view name, const std::vector<std::string>& choices) const;
  /// Returns an element type that weights can have.
  const std::string& element_type() const;
  [[noreturn]] void refuse(std::string_view name, std::string_view expected) const;

 private:
  const std::string& value(std::string_view name) const;

  const Network& network_;
  std::map<std::string, std::string, std::less<>> values_;
};

/// A network and its builder: one file of the folder for each family.
struct Recipe {
  Network network;
  Graph (*make)(const NetworkSettings& settings);
};
std::vector<Recipe> alexnet_recipes();
std::vector<Recipe> densenet_recipes();
std::vector<Recipe> mlp_recipes();
std::vector<Recipe> mobilenet_recipes();
std::vector<Recipe> recurrent_recipes();
std::vector<Recipe> resnet_recipes();
std::vector<Recipe> squeezenet_recipes();
std::vector<Recipe> transformer_recipes();
std::vector<Recipe> unet_recipes();
std::vector<Recipe> vgg_recipes();

/// Returns `own` after the common parameters of all networks: batch and dtype.
std::vector<Parameter> with_common(std::vector<Parameter> own);
/// Parameters of image classifiers: size and classes.
Parameter size_parameter(std::string default_value);
Parameter classes_parameter(std::string default_value);

}  // namespace tenon::zoo
