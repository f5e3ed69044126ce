#include "passes/compat/relay/config.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <functional>

namespace tenon::passes::relay_quantize {
namespace {

struct ConfigField {
  std::string name, expected;
  std::function<bool(Config&, const std::string& value)> set;  // returns false for an unknown value
};

ConfigField word(std::string name, std::string Config::*field, std::vector<std::string> words) {
  std::string expected = "one of " + join(words, ", ");
  return {std::move(name), std::move(expected),
          [field, words](Config& config, const std::string& value) {
            if (std::ranges::find(words, value) == words.end()) return false;
            config.*field = value;
            return true;
          }};
}

ConfigField bits(std::string name, int Config::*field, std::int64_t least, std::int64_t most) {
  return {std::move(name), concat("a number from ", least, " to ", most),
          [field, least, most](Config& config, const std::string& value) {
            const auto number = parse_integer(value);
            if (!number || *number < least || *number > most) return false;
            config.*field = static_cast<int>(*number);
            return true;
          }};
}

ConfigField flag(std::string name, bool Config::*field) {
  return {std::move(name), "true or false", [field](Config& config, const std::string& value) {
            if (value != "true" && value != "false") return false;
            config.*field = value == "true";
            return true;
          }};
}

ConfigField element(std::string name, DType Config::*field,
                    std::vector<std::pair<std::string, DType>> types) {
  std::vector<std::string> names;
  for (const auto& type : types) names.push_back(type.first);
  return {std::move(name), "one of " + join(names, ", "),
          [field, types](Config& config, const std::string& value) {
            const auto found =
                std::ranges::find(types, value, [](const auto& type) { return type.first; });
            if (found == types.end()) return false;
            config.*field = found->second;
            return true;
          }};
}

bool set_scale(Config& config, const std::string& value) {
  const std::optional<double> number = parse_real(value);
  if (!number || !(*number > 0) || !(*number < 1e30)) return false;
  config.global_scale = static_cast<float>(*number);
  return true;
}

bool set_skipped(Config& config, const std::string& value) {
  if (value == "none") {
    config.skip_conv_layers.reset();
    return true;
  }
  std::vector<std::int64_t> layers;
  for (const std::string& part : split(value, ',')) {
    const auto number = parse_integer(trim(part));
    if (!number || *number < 0) return false;
    layers.push_back(*number);
  }
  config.skip_conv_layers = std::move(layers);
  return true;
}

bool set_enabled(Config& config, const std::string& value) {
  config.debug_enabled_ops.reset();
  if (value == "none") return true;
  config.debug_enabled_ops.emplace();
  for (const std::string& part : split(value, ','))
    config.debug_enabled_ops->emplace_back(trim(part));
  return true;
}

bool set_chunk(Config& config, const std::string& value) {
  const auto number = parse_integer(value);
  if (!number || (*number < 1 && *number != -1)) return false;
  config.calibrate_chunk_by = *number;
  return true;
}

const std::vector<ConfigField>& fields() {
  const std::vector<std::pair<std::string, DType>> bytes = {{"int8", DType::I8}},
                                                   sums = {{"int32", DType::I32}};
  static const std::vector<ConfigField> all = {
      bits("nbit_input", &Config::nbit_input, 2, 8),
      bits("nbit_weight", &Config::nbit_weight, 2, 8),
      bits("nbit_activation", &Config::nbit_activation, 9, 32),
      element("dtype_input", &Config::dtype_input, bytes),
      element("dtype_weight", &Config::dtype_weight, bytes),
      element("dtype_activation", &Config::dtype_activation, sums),
      word("calibrate_mode", &Config::calibrate_mode,
           {"global_scale", "kl_divergence", "percentile"}),
      {"global_scale", "a positive number", set_scale},
      word("weight_scale", &Config::weight_scale, {"power2", "max"}),
      flag("skip_dense_layer", &Config::skip_dense_layer),
      {"skip_conv_layers", "none, or numbers of convolutions from 0, as 0,3", set_skipped},
      flag("do_simulation", &Config::do_simulation),
      flag("round_for_shift", &Config::round_for_shift),
      {"debug_enabled_ops", "none, or words of Relay, as nn.conv2d,add", set_enabled},
      word("rounding", &Config::rounding, {"UPWARD", "TONEAREST"}),
      {"calibrate_chunk_by", "a number from 1, or -1 for all", set_chunk},
      word("partition_conversions", &Config::partition_conversions, {"disabled"}),
      flag("legacy_add", &Config::legacy_add),
      word("ties", &Config::ties, {"even", "away"}),
  };
  return all;
}

}  // namespace

std::string_view name_of(QuantizerKind kind) {
  switch (kind) {
    case QuantizerKind::Identity:
      return "identity";
    case QuantizerKind::Input:
      return "input";
    case QuantizerKind::Weight:
      return "weight";
    case QuantizerKind::Activation:
      return "activation";
  }
  return "";
}

int Config::bits(QuantizerKind kind) const {
  return kind == QuantizerKind::Input    ? nbit_input
         : kind == QuantizerKind::Weight ? nbit_weight
                                         : nbit_activation;
}

void set_field(Config& config, std::string_view setting) {
  const std::size_t mark = setting.find('=');
  if (mark == std::string_view::npos) {
    throw Error(concat("'", setting, "' sets no field"), ErrorKind::Usage).expected("FIELD=VALUE");
  }
  const std::string name(trim(setting.substr(0, mark))), value(trim(setting.substr(mark + 1)));
  std::vector<std::string> names;
  for (const ConfigField& field : fields()) {
    names.push_back(field.name);
    if (field.name != name) continue;
    if (field.set(config, value)) return;
    throw Error(concat("field '", name, "' cannot be '", value, "'"), ErrorKind::Usage)
        .expected(field.expected);
  }
  throw Error(concat("no field is called '", name, "'"), ErrorKind::Usage)
      .hint(suggest_name(name, names));
}

}  // namespace tenon::passes::relay_quantize
