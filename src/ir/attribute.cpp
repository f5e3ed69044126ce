#include "ir/attribute.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tenon::inline ir {
namespace {

AttrValue substituted(const AttrValue& value, const DimBindings& values) {
  if (const auto* dim = std::get_if<Dim>(&value)) return dim->substitute(values);
  if (const auto* dims = std::get_if<Dims>(&value)) return substitute(*dims, values);
  if (const auto* type = std::get_if<Type>(&value)) return substitute(*type, values);
  return value;
}

// Compares bits: -0.0 differs from 0.0 and NaN equals itself, so that dropping values "equal to the
// default" loses no information.
bool same_real(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

struct SameAs {
  const AttrValue& other;

  template <class T>
  bool operator()(const T& value) const {
    return value == std::get<T>(other);
  }
  bool operator()(double value) const { return same_real(value, std::get<double>(other)); }
  bool operator()(const std::vector<double>& values) const {
    const auto& others = std::get<std::vector<double>>(other);
    return std::equal(values.begin(), values.end(), others.begin(), others.end(), same_real);
  }
  bool operator()(const Constant& value) const {
    return identical(value, std::get<Constant>(other));
  }
};

}  // namespace

bool equal(const AttrValue& a, const AttrValue& b) {
  return a.index() == b.index() && std::visit(SameAs{b}, a);
}

Attributes::Attributes(std::initializer_list<Item> items) {
  for (const Item& item : items) set(item.first, item.second);
}

const AttrValue* Attributes::find(std::string_view name) const {
  for (const Item& item : items_) {  // a handful: a scan beats a search
    if (item.first == name) return &item.second;
  }
  return nullptr;
}

void Attributes::set(std::string_view name, AttrValue value) {
  auto place =
      std::lower_bound(items_.begin(), items_.end(), name,
                       [](const Item& item, std::string_view key) { return item.first < key; });
  if (place != items_.end() && place->first == name) {
    place->second = std::move(value);
  } else {
    items_.emplace(place, std::string(name), std::move(value));
  }
}

void Attributes::erase(std::string_view name) {
  std::erase_if(items_, [&](const Item& item) { return item.first == name; });
}

bool Attributes::operator==(const Attributes& other) const {
  return std::equal(
      items_.begin(), items_.end(), other.items_.begin(), other.items_.end(),
      [](const Item& a, const Item& b) { return a.first == b.first && equal(a.second, b.second); });
}

Attributes substitute(const Attributes& attrs, const DimBindings& values) {
  if (values.empty()) return attrs;
  Attributes result = attrs;
  for (const auto& [name, value] : attrs) result.set(name, substituted(value, values));
  return result;
}

}  // namespace tenon::inline ir
