#include "frontends/node_attrs.h"

#include <algorithm>

namespace tenon::frontends {

const AttrValue* attr_of(const Node& node, std::string_view name) {
  if (const AttrValue* stated = node.attrs.find(name)) return stated;
  const AttrDef* def = node.op->find_attr(name);
  return def != nullptr && def->default_value ? &*def->default_value : nullptr;
}

bool flag_of(const Node& node, std::string_view name) {
  const auto* flag = attr_of<bool>(node, name);
  return flag != nullptr && *flag;
}

std::string text_of(const Node& node, std::string_view name) {
  const auto* text = attr_of<std::string>(node, name);
  return text == nullptr ? "" : *text;
}

double real_of(const Node& node, std::string_view name) {
  const auto* real = attr_of<double>(node, name);
  return real == nullptr ? 0 : *real;
}

std::optional<std::int64_t> integer_of(const Node& node, std::string_view name) {
  const auto* dim = attr_of<Dim>(node, name);
  return dim == nullptr ? std::nullopt : dim->value();
}

std::optional<std::vector<std::int64_t>> integers_of(const Node& node, std::string_view name) {
  const auto* dims = attr_of<Dims>(node, name);
  if (dims == nullptr || !all_constant(*dims)) return std::nullopt;
  return constants(*dims);
}

bool WindowNumbers::has_same_pads() const {
  const auto half = pads.begin() + static_cast<std::ptrdiff_t>(pads.size() / 2);
  return std::equal(pads.begin(), half, half);
}

std::optional<WindowNumbers> window_numbers(const Node& node, std::size_t axes) {
  const std::string auto_pad = text_of(node, "auto_pad");
  if (!auto_pad.empty() && auto_pad != "none" && auto_pad != "valid") return std::nullopt;
  bool are_known = true;
  const auto read = [&](std::string_view name, std::size_t count, std::int64_t usual) {
    std::vector<std::int64_t> numbers(count, usual);
    if (attr_of(node, name) == nullptr) return numbers;
    const auto stated = integers_of(node, name);
    are_known = are_known && stated && (stated->empty() || stated->size() == count);
    return stated && !stated->empty() ? *stated : numbers;
  };
  WindowNumbers window{read("kernel_shape", axes, 1), read("strides", axes, 1),
                       read("dilations", axes, 1), read("pads", 2 * axes, 0)};
  if (auto_pad == "valid") window.pads.assign(2 * axes, 0);
  return are_known ? std::optional(std::move(window)) : std::nullopt;
}

std::string plain_equation(std::string_view equation) {
  std::string plain, seen;
  for (const char c : equation) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (is_letter && seen.find(c) == std::string::npos) seen += c;
    if (c != ' ') plain += is_letter ? static_cast<char>('A' + seen.find(c)) : c;
  }
  return plain;
}

}  // namespace tenon::frontends
