#include "frontends/torch/output_names.h"

#include "base/error.h"
#include "base/text.h"

#include <cctype>

namespace tenon::frontends::torch {
namespace {

// Keys of a dictionary or field names; empty for a list.
std::vector<std::string> keys_of(const JsonReader& spec) {
  const auto context = spec.find("context");
  std::vector<std::string> keys;
  if (!context || !context->is_text()) return keys;
  try {
    const JsonValue json = parse_json(context->text(), "context");
    for (const JsonReader& key : JsonReader(json, "context").elements())
      keys.push_back(key.is_text() ? key.text() : std::to_string(key.integer()));
  } catch (const Error&) {  // Another class of results; its parts are numbered.
    keys.clear();
  }
  return keys;
}

std::string as_name(std::string text) {
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return text;
}

void collect(const JsonReader& spec, const std::string& prefix, std::vector<std::string>& names,
             int depth) {
  const std::vector<JsonReader> children = spec.member("children_spec").elements();
  if (spec.member("type").is_null()) {
    names.push_back(prefix);
    return;
  }
  if (depth > 32) throw spec.error("the result is nested too deep");
  const std::vector<std::string> keys = keys_of(spec);
  for (std::size_t k = 0; k < children.size(); ++k) {
    const std::string key = keys.size() == children.size() ? as_name(keys[k]) : std::to_string(k);
    collect(
        children[k],
        prefix.empty()
            ? (std::isdigit(static_cast<unsigned char>(key[0])) != 0 ? concat("output_", key) : key)
            : concat(prefix, "_", key),
        names, depth + 1);
  }
}

}  // namespace

std::vector<std::string> output_names(const JsonReader& graph_module, std::size_t count) {
  const auto calls = graph_module.member("module_call_graph").elements();
  if (calls.empty() || calls.front().member("signature").is_null()) return {};
  const std::string& text = calls.front().member("signature").member("out_spec").text();
  std::vector<std::string> names;
  try {
    const JsonValue json = parse_json(text, "out_spec");
    const auto parts = JsonReader(json, "out_spec").elements();  // A version and the tree.
    if (parts.size() == 2) collect(parts[1], "", names, 0);
  } catch (const Error&) {
    return {};
  }
  const bool is_single = names.size() == 1 && names.front().empty();
  return is_single || names.size() != count ? std::vector<std::string>() : names;
}

}  // namespace tenon::frontends::torch
