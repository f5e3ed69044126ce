#pragma once

#include <cstddef>
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
  bool is_dynamic = false;            ///< an operand of the same name may give it at run time
  std::vector<std::string> words;  ///< names of the enumerators of an enum field, in order
};
inline const FieldOptions required{true, false, {}};
inline const FieldOptions dynamic{false, true, {}};
inline const FieldOptions dynamic_required{true, true, {}};  ///< as attribute or as operand
inline FieldOptions words(std::vector<std::string> names) { return {false, false, std::move(names)}; }

/// How a member of some C++ type is read from and written to an attribute.
struct FieldAccess {
  AttrKind kind;
  void (*set)(void* member, const AttrDef& def, const AttrValue& value);
  std::optional<AttrValue> (*get)(const void* member, const AttrDef& def);
  /// Takes the value from the operand of the attribute's name; false if it is not known yet.
  bool (*set_dynamic)(void* member, const AttrDef& def, const OperandTypes& operands);
};

/// For bool, int, std::int64_t, Dim, double, std::string, DType, Dims, Constant, Type, vectors of
/// std::int64_t, double and std::string, and std::optional of these; made in attr_field.cpp.
template <class T>
const FieldAccess& field_access();
/// For an enum whose enumerators count up from 0, as wide as `bytes`.
const FieldAccess& word_access(std::size_t bytes);

/// A field without the type it belongs to.
struct ErasedField {
  AttrDef def;
  bool is_dynamic = false;
  std::size_t offset = 0;  ///< of the member in its struct
  const FieldAccess* access = nullptr;

  // Out of line, as for OpDef.
  ErasedField();
  ErasedField(const ErasedField&);
  ErasedField(ErasedField&&) noexcept;
  ErasedField& operator=(const ErasedField&);
  ErasedField& operator=(ErasedField&&) noexcept;
  ~ErasedField();

  void set(void* attrs, const AttrValue& value) const;
  std::optional<AttrValue> get(const void* attrs) const;
  bool set_dynamic(void* attrs, const OperandTypes& operands) const;
};
ErasedField make_field(const char* name, FieldOptions options, const FieldAccess& access,
                       const void* attrs, const void* member);

/// Binds an attribute's name to a member of the op's `Attrs`. The member's initial value is the
/// default; a std::optional member is absent by default.
template <class Attrs>
struct AttrField : ErasedField {
  template <class T>
  AttrField(const char* name, T Attrs::*member, FieldOptions options = {}) {
    const Attrs initial{};
    const FieldAccess* how = nullptr;
    if constexpr (std::is_enum_v<T> && !std::is_same_v<T, DType>) {
      how = &word_access(sizeof(T));
    } else {
      how = &field_access<T>();
    }
    static_cast<ErasedField&>(*this) =
        make_field(name, std::move(options), *how, &initial, &(initial.*member));
  }
};

}  // namespace tenon
