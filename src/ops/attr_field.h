#pragma once

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "ir/op_def.h"
#include "ops/operand_types.h"

namespace tenon {

/// How a field behaves beyond its name and type.
struct FieldOptions {
  bool is_required = false;
  bool is_late = false;            ///< an operand of the same name may give it at run time
  std::vector<std::string> words;  ///< names of the enumerators of an enum field, in order
};
inline const FieldOptions required{true, false, {}};
inline const FieldOptions late{false, true, {}};
inline const FieldOptions late_required{true, true, {}};  ///< as attribute or as operand
inline FieldOptions words(std::vector<std::string> names) { return {false, false, std::move(names)}; }

namespace detail {
template <class T> struct IsOptional : std::false_type {};
template <class T> struct IsOptional<std::optional<T>> : std::true_type { using Inner = T; };

/// The readers and writers of each C++ type an attribute field may have; defined in attr_field.cpp.
template <class T> struct AttrTraits;
#define TENON_ATTR_TRAITS(T, attr_kind)                                       \
  template <> struct AttrTraits<T> {                                          \
    static constexpr AttrKind kind = attr_kind;                               \
    static T from(std::string_view name, const AttrValue& value);             \
    static AttrValue to(const T& value);                                      \
    static bool from_operand(std::string_view name, const OperandTypes& in, T& value); \
  };
TENON_ATTR_TRAITS(bool, AttrKind::Bool)
TENON_ATTR_TRAITS(int, AttrKind::Integer)
TENON_ATTR_TRAITS(std::int64_t, AttrKind::Integer)
TENON_ATTR_TRAITS(Dim, AttrKind::Integer)
TENON_ATTR_TRAITS(double, AttrKind::Real)
TENON_ATTR_TRAITS(std::string, AttrKind::Text)
TENON_ATTR_TRAITS(DType, AttrKind::Element)
TENON_ATTR_TRAITS(Dims, AttrKind::Integers)
TENON_ATTR_TRAITS(std::vector<std::int64_t>, AttrKind::Integers)
TENON_ATTR_TRAITS(std::vector<double>, AttrKind::Reals)
TENON_ATTR_TRAITS(std::vector<std::string>, AttrKind::Texts)
TENON_ATTR_TRAITS(Constant, AttrKind::Constant)
TENON_ATTR_TRAITS(Type, AttrKind::Type)
#undef TENON_ATTR_TRAITS

std::size_t word_index(std::string_view attr, const AttrValue& value,
                       const std::vector<std::string>& words);
}  // namespace detail

/// Binds an attribute's name to a member of the op's `Attrs`. The member's initial value is the
/// default; a std::optional member is absent by default.
template <class Attrs>
struct AttrField {
  AttrDef def;
  bool is_late = false;
  std::function<void(Attrs&, const AttrValue&)> set;
  std::function<std::optional<AttrValue>(const Attrs&)> get;
  std::function<bool(Attrs&, const OperandTypes&)> set_late;

  template <class T>
  AttrField(const char* name, T Attrs::*member, FieldOptions options = {}) {
    def.name = name;
    def.is_required = options.is_required;
    def.words = options.words;
    is_late = options.is_late;
    std::string attr = name;
    if constexpr (std::is_enum_v<T> && !std::is_same_v<T, DType>) {
      def.kind = AttrKind::Word;
      auto names = options.words;
      set = [=](Attrs& attrs, const AttrValue& value) {
        attrs.*member = static_cast<T>(detail::word_index(attr, value, names));
      };
      get = [=](const Attrs& attrs) -> std::optional<AttrValue> {
        return AttrValue(names.at(static_cast<std::size_t>(attrs.*member)));
      };
      set_late = [](Attrs&, const OperandTypes&) { return false; };
    } else if constexpr (detail::IsOptional<T>::value) {
      using Traits = detail::AttrTraits<typename detail::IsOptional<T>::Inner>;
      def.kind = Traits::kind;
      set = [=](Attrs& attrs, const AttrValue& value) { attrs.*member = Traits::from(attr, value); };
      get = [=](const Attrs& attrs) -> std::optional<AttrValue> {
        if (!(attrs.*member)) return std::nullopt;
        return Traits::to(*(attrs.*member));
      };
      set_late = [=](Attrs& attrs, const OperandTypes& in) {
        return Traits::from_operand(attr, in, (attrs.*member).emplace());
      };
    } else {
      using Traits = detail::AttrTraits<T>;
      def.kind = Traits::kind;
      set = [=](Attrs& attrs, const AttrValue& value) { attrs.*member = Traits::from(attr, value); };
      get = [=](const Attrs& attrs) -> std::optional<AttrValue> { return Traits::to(attrs.*member); };
      set_late = [=](Attrs& attrs, const OperandTypes& in) {
        return Traits::from_operand(attr, in, attrs.*member);
      };
    }
    if (!def.is_required) def.default_value = get(Attrs{});
  }
};

}  // namespace tenon
