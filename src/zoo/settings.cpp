#include "zoo/settings.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>

namespace tenon::zoo {
namespace {

constexpr std::int64_t kMaxNumber = std::int64_t{1} << 31;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_symbol(std::string_view text) {
  return !text.empty() && is_letter(text.front()) &&
         std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c); });
}

std::vector<std::string> parameter_names(const Network& network) {
  std::vector<std::string> names;
  for (const Parameter& parameter : network.parameters) names.push_back(parameter.name);
  return names;
}

}  // namespace

NetworkSettings::NetworkSettings(const Network& network, std::string_view text)
    : network_(network) {
  for (const Parameter& parameter : network.parameters) {
    values_[parameter.name] = parameter.default_value;
  }
  if (text.empty()) return;
  std::vector<std::string> given;
  for (const std::string& item : split(text, ',')) {
    const std::size_t equals = item.find('=');
    const std::string name(trim(std::string_view(item).substr(0, equals)));
    if (!values_.contains(name)) {
      throw Error(concat("zoo:", network.name, " has no parameter '", name, "'"), ErrorKind::Usage)
          .hint(suggest_name(name, parameter_names(network)));
    }
    if (equals == std::string::npos) {
      throw Error(concat("zoo:", network.name, ": parameter '", name, "' has no value"),
                  ErrorKind::Usage)
          .expected(name, "=VALUE");
    }
    if (std::ranges::count(given, name) > 0) {
      throw Error(concat("zoo:", network.name, ": parameter '", name, "' is given twice"),
                  ErrorKind::Usage);
    }
    values_[name] = std::string(trim(std::string_view(item).substr(equals + 1)));
    given.push_back(name);
  }
}

const std::string& NetworkSettings::value(std::string_view name) const {
  const auto found = values_.find(name);
  TENON_ASSERT(found != values_.end(), "a recipe reads only the parameters that it lists");
  return found->second;
}

void NetworkSettings::refuse(std::string_view name, std::string_view expected) const {
  throw Error(
      concat("zoo:", network_.name, ": parameter '", name, "' cannot be '", value(name), "'"),
      ErrorKind::Usage)
      .expected(expected);
}

std::string NetworkSettings::extent(std::string_view name) const {
  const std::string& text = value(name);
  if (is_symbol(text)) return text;
  const std::optional<std::int64_t> number = parse_integer(text);
  if (!number || *number < 1 || *number > kMaxNumber) {
    refuse(name, "a number from 1, or a symbol such as N");
  }
  return std::to_string(*number);
}

std::string NetworkSettings::extent_or_zero(std::string_view name) const {
  return value(name) == "0" ? "0" : extent(name);
}

std::int64_t NetworkSettings::number(std::string_view name, std::int64_t lowest,
                                     std::int64_t highest) const {
  const std::optional<std::int64_t> number = parse_integer(value(name));
  if (!number || *number < lowest || *number > highest) {
    refuse(name, concat("a number from ", lowest, " to ", highest));
  }
  return *number;
}

bool NetworkSettings::flag(std::string_view name) const { return word(name, {"0", "1"}) == "1"; }

bool NetworkSettings::flag_or(std::string_view name, bool automatic) const {
  const std::string& text = word(name, {"0", "1", "auto"});
  return text == "auto" ? automatic : text == "1";
}

const std::string& NetworkSettings::word(std::string_view name,
                                         const std::vector<std::string>& choices) const {
  const std::string& text = value(name);
  if (std::ranges::count(choices, text) == 0) refuse(name, concat("one of ", join(choices, ", ")));
  return text;
}

const std::string& NetworkSettings::element_type() const {
  return word("dtype", {"f32", "f16", "bf16", "f64"});
}

std::vector<Parameter> with_common(std::vector<Parameter> own) {
  own.insert(own.begin(), {"batch", "1", "inputs at a time: a number, or a symbol such as N"});
  own.push_back({"dtype", "f32", "element type of weights and activations: f32, f16, bf16 or f64"});
  return own;
}

Parameter size_parameter(std::string default_value) {
  return {"size", std::move(default_value), "rows and columns of the image"};
}

Parameter classes_parameter(std::string default_value) {
  return {"classes", std::move(default_value), "number of classes"};
}

}  // namespace tenon::zoo
