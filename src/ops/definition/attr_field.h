#pragma once

#include "base/error.h"
#include "ir/op_def.h"
#include "ops/definition/operand_types.h"

#include <bit>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace tenon::inline ops {

/// Properties of a field beyond its name and type.
struct FieldOptions {
  bool is_required = false;
  /// An operand of the same name may provide the value at run time.
  bool is_dynamic = false;
  /// Names of the enumerators of an enum field, in order.
  const char* words = "";
};
inline constexpr FieldOptions required{true, false};
inline constexpr FieldOptions dynamic{false, true};
/// Required, as attribute or as operand.
inline constexpr FieldOptions dynamic_required{true, true};
constexpr FieldOptions words(const char* names) { return {false, false, names}; }

/// Conversion between a member of some C++ type and an attribute.
struct FieldAccess {
  AttrKind kind;
  void (*set)(void* member, const AttrDef& def, const AttrValue& value);
  std::optional<AttrValue> (*get)(const void* member, const AttrDef& def);
  /// Reads the value from the operand of the attribute's name; false if it is not known yet.
  bool (*set_dynamic)(void* member, const AttrDef& def, const OperandTypes& operands);
};

/// For bool, int, std::int64_t, Dim, double, std::string, DType, Dims, Constant, Type, vectors of
/// std::int64_t, double and std::string, and std::optional of these; instantiated in
/// attr_field.cpp.
template <class T>
const FieldAccess& field_access();
/// For an enum with consecutive enumerators from 0, of the width of an int or a byte.
const FieldAccess& word_access();
const FieldAccess& narrow_word_access();

/// Field with its owner's type erased.
struct ErasedField {
  AttrDef def;
  bool is_dynamic = false;
  /// Offset of the member in its struct.
  std::size_t offset = 0;
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
/// Binds an attribute's name to a member of the op's `Attrs`. The member's initial value is the
/// default; a std::optional member is absent by default. A literal type, so that an op's fields are
/// constant-initialized.
struct FieldSpec {
  const char* name;
  std::ptrdiff_t offset;
  const FieldAccess& (*access)();
  FieldOptions options;
};
template <class Attrs>
struct AttrField : FieldSpec {
  template <class T>
  AttrField(const char* field, T Attrs::*member, FieldOptions how = {})
      : FieldSpec{field, std::bit_cast<std::ptrdiff_t>(member), access_of<T>(), how} {}

 private:
  template <class T>
  static constexpr auto access_of() {
    if constexpr (std::is_enum_v<T> && !std::is_same_v<T, DType>) {
      static_assert(sizeof(T) == sizeof(int) || sizeof(T) == 1,
                    "words are enums of the usual widths");
      return sizeof(T) == 1 ? narrow_word_access : word_access;
    } else {
      return field_access<T>;
    }
  }
};
/// `initial` holds the default attributes.
ErasedField make_field(const FieldSpec& spec, const void* initial);

}  // namespace tenon::inline ops
