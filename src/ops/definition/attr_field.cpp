#include "ops/definition/attr_field.h"

#include "base/text.h"

#include <cstring>

namespace tenon::inline ops {
namespace {

template <class T>
struct AttrTraits;
#define TENON_ATTR_TRAITS(T, attr_kind)                                                \
  template <>                                                                          \
  struct AttrTraits<T> {                                                               \
    static constexpr AttrKind kind = attr_kind;                                        \
    static T from(std::string_view name, const AttrValue& value);                      \
    static AttrValue to(const T& value);                                               \
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

[[noreturn]] void refuse(std::string_view name, std::string_view expected) {
  throw Error(concat("attribute '", name, "' has a value of the wrong kind")).expected(expected);
}

template <class T>
const T& take(std::string_view name, const AttrValue& value, std::string_view expected) {
  if (const T* found = std::get_if<T>(&value)) return *found;
  refuse(name, expected);
}

std::int64_t take_integer(std::string_view name, const AttrValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
  const Dim& dim = take<Dim>(name, value, "an integer");
  if (!dim.is_constant()) refuse(name, "an integer, not a symbol");
  return dim.constant();
}

// An empty list has no element kind.
bool is_empty_list(const AttrValue& value) {
  if (const auto* dims = std::get_if<Dims>(&value)) return dims->empty();
  if (const auto* reals = std::get_if<std::vector<double>>(&value)) return reals->empty();
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) return texts->empty();
  return false;
}

// Returns the operand's elements as dims: known ones, or fresh unknowns if only their count is
// known.
std::optional<Dims> dims_from_operand(std::string_view name, const OperandTypes& in) {
  if (const Dims* known = in.known(name)) return *known;
  if (const Tensor* value = in.value(name)) {
    const std::vector<std::int64_t> integers = value->integers();
    return Dims(integers.begin(), integers.end());
  }
  const Type& type = in.type(name);
  if (!type.is_tensor()) return std::nullopt;
  const Dim count = element_count(type.tensor());
  if (!count.is_constant() || count.constant() > 64) return std::nullopt;
  Dims unknowns;
  for (std::int64_t k = 0; k < count.constant(); ++k) unknowns.push_back(in.unknown());
  return unknowns;
}

std::optional<std::vector<std::int64_t>> integers_from_operand(std::string_view name,
                                                               const OperandTypes& in) {
  if (const Tensor* value = in.value(name)) return value->integers();
  const Type& type = in.type(name);
  if (type.is_tensor() && element_count(type.tensor()) == Dim(0))
    return std::vector<std::int64_t>{};
  const Dims* known = in.known(name);
  if (!known || !all_constant(*known)) return std::nullopt;
  return constants(*known);
}

bool AttrTraits<bool>::from(std::string_view name, const AttrValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  return take_integer(name, value) != 0;
}
AttrValue AttrTraits<bool>::to(const bool& value) { return value; }
bool AttrTraits<bool>::from_operand(std::string_view name, const OperandTypes& in, bool& value) {
  const Tensor* tensor = in.value(name);
  if (!tensor || tensor->size() != 1) return false;
  value = tensor->real_at(0) != 0;
  return true;
}

std::int64_t AttrTraits<std::int64_t>::from(std::string_view name, const AttrValue& value) {
  return take_integer(name, value);
}
AttrValue AttrTraits<std::int64_t>::to(const std::int64_t& value) { return Dim(value); }
bool AttrTraits<std::int64_t>::from_operand(std::string_view name, const OperandTypes& in,
                                            std::int64_t& value) {
  const auto integers = integers_from_operand(name, in);
  if (!integers || integers->size() != 1) return false;
  value = integers->front();
  return true;
}

int AttrTraits<int>::from(std::string_view name, const AttrValue& value) {
  const std::int64_t wide = take_integer(name, value);
  if (wide != static_cast<int>(wide)) refuse(name, "an integer of 32 bits");
  return static_cast<int>(wide);
}
AttrValue AttrTraits<int>::to(const int& value) { return Dim(value); }
bool AttrTraits<int>::from_operand(std::string_view name, const OperandTypes& in, int& value) {
  std::int64_t wide = 0;
  if (!AttrTraits<std::int64_t>::from_operand(name, in, wide)) return false;
  value = static_cast<int>(wide);
  return true;
}

Dim AttrTraits<Dim>::from(std::string_view name, const AttrValue& value) {
  return take<Dim>(name, value, "an integer or symbol");
}
AttrValue AttrTraits<Dim>::to(const Dim& value) { return value; }
bool AttrTraits<Dim>::from_operand(std::string_view name, const OperandTypes& in, Dim& value) {
  const std::optional<Dims> dims = dims_from_operand(name, in);
  if (!dims || dims->size() != 1) return false;
  value = dims->front();
  return true;
}

double AttrTraits<double>::from(std::string_view name, const AttrValue& value) {
  if (const auto* dim = std::get_if<Dim>(&value); dim && dim->is_constant()) {
    return static_cast<double>(dim->constant());
  }
  return take<double>(name, value, "a number");
}
AttrValue AttrTraits<double>::to(const double& value) { return value; }
bool AttrTraits<double>::from_operand(std::string_view name, const OperandTypes& in,
                                      double& value) {
  const Tensor* tensor = in.value(name);
  if (!tensor || tensor->size() != 1) return false;
  value = tensor->real_at(0);
  return true;
}

std::string AttrTraits<std::string>::from(std::string_view name, const AttrValue& value) {
  return take<std::string>(name, value, "a text in quotes");
}
AttrValue AttrTraits<std::string>::to(const std::string& value) { return value; }
bool AttrTraits<std::string>::from_operand(std::string_view, const OperandTypes&, std::string&) {
  return false;
}

DType AttrTraits<DType>::from(std::string_view name, const AttrValue& value) {
  return take<DType>(name, value, "an element type such as f32");
}
AttrValue AttrTraits<DType>::to(const DType& value) { return value; }
bool AttrTraits<DType>::from_operand(std::string_view, const OperandTypes&, DType&) {
  return false;
}

Dims AttrTraits<Dims>::from(std::string_view name, const AttrValue& value) {
  if (is_empty_list(value)) return {};
  return take<Dims>(name, value, "a list of integers or symbols");
}
AttrValue AttrTraits<Dims>::to(const Dims& value) { return value; }
bool AttrTraits<Dims>::from_operand(std::string_view name, const OperandTypes& in, Dims& value) {
  std::optional<Dims> dims = dims_from_operand(name, in);
  if (!dims) return false;
  value = std::move(*dims);
  return true;
}

using Integers = std::vector<std::int64_t>;
Integers AttrTraits<Integers>::from(std::string_view name, const AttrValue& value) {
  if (is_empty_list(value)) return {};
  const Dims& dims = take<Dims>(name, value, "a list of integers");
  if (!all_constant(dims)) refuse(name, "a list of integers, no symbols");
  return constants(dims);
}
AttrValue AttrTraits<Integers>::to(const Integers& value) {
  return Dims(value.begin(), value.end());
}
bool AttrTraits<Integers>::from_operand(std::string_view name, const OperandTypes& in,
                                        Integers& value) {
  auto integers = integers_from_operand(name, in);
  if (!integers) return false;
  value = std::move(*integers);
  return true;
}

using Reals = std::vector<double>;
Reals AttrTraits<Reals>::from(std::string_view name, const AttrValue& value) {
  if (is_empty_list(value)) return {};
  if (const auto* dims = std::get_if<Dims>(&value); dims && all_constant(*dims)) {
    const Integers integers = constants(*dims);
    return Reals(integers.begin(), integers.end());
  }
  return take<Reals>(name, value, "a list of numbers");
}
AttrValue AttrTraits<Reals>::to(const Reals& value) { return value; }
bool AttrTraits<Reals>::from_operand(std::string_view name, const OperandTypes& in, Reals& value) {
  const Tensor* tensor = in.value(name);
  if (!tensor) return false;
  value = tensor->reals();
  return true;
}

using Texts = std::vector<std::string>;
Texts AttrTraits<Texts>::from(std::string_view name, const AttrValue& value) {
  if (is_empty_list(value)) return {};
  return take<Texts>(name, value, "a list of texts");
}
AttrValue AttrTraits<Texts>::to(const Texts& value) { return value; }
bool AttrTraits<Texts>::from_operand(std::string_view, const OperandTypes&, Texts&) {
  return false;
}

Constant AttrTraits<Constant>::from(std::string_view name, const AttrValue& value) {
  return take<Constant>(name, value, "a constant such as f32[2] [1, 2]");
}
AttrValue AttrTraits<Constant>::to(const Constant& value) { return value; }
bool AttrTraits<Constant>::from_operand(std::string_view, const OperandTypes&, Constant&) {
  return false;
}

Type AttrTraits<Type>::from(std::string_view name, const AttrValue& value) {
  return take<Type>(name, value, "a type such as f32[2]");
}
AttrValue AttrTraits<Type>::to(const Type& value) { return value; }
bool AttrTraits<Type>::from_operand(std::string_view, const OperandTypes&, Type&) { return false; }

std::size_t word_index(const AttrDef& def, const AttrValue& value) {
  const std::vector<std::string>& words = def.words;
  const std::string& word =
      take<std::string>(def.name, value, concat("one of ", join(words, ", ")));
  for (std::size_t k = 0; k < words.size(); ++k) {
    if (words[k] == word) return k;
  }
  throw Error(concat("attribute '", def.name, "' has no value '", word, "'"))
      .expected("one of ", join(words, ", "))
      .hint(suggest_name(word, words));
}

template <class T>
struct MemberAccess {
  static void set(void* member, const AttrDef& def, const AttrValue& value) {
    *static_cast<T*>(member) = AttrTraits<T>::from(def.name, value);
  }
  static std::optional<AttrValue> get(const void* member, const AttrDef&) {
    return AttrTraits<T>::to(*static_cast<const T*>(member));
  }
  static bool set_dynamic(void* member, const AttrDef& def, const OperandTypes& operands) {
    return AttrTraits<T>::from_operand(def.name, operands, *static_cast<T*>(member));
  }
  static constexpr FieldAccess access{AttrTraits<T>::kind, set, get, set_dynamic};
};

template <class T>
struct MemberAccess<std::optional<T>> {
  static void set(void* member, const AttrDef& def, const AttrValue& value) {
    static_cast<std::optional<T>*>(member)->emplace(AttrTraits<T>::from(def.name, value));
  }
  static std::optional<AttrValue> get(const void* member, const AttrDef&) {
    const auto& held = *static_cast<const std::optional<T>*>(member);
    return held ? std::optional<AttrValue>(AttrTraits<T>::to(*held)) : std::nullopt;
  }
  static bool set_dynamic(void* member, const AttrDef& def, const OperandTypes& operands) {
    return AttrTraits<T>::from_operand(def.name, operands,
                                       static_cast<std::optional<T>*>(member)->emplace());
  }
  static constexpr FieldAccess access{AttrTraits<T>::kind, set, get, set_dynamic};
};

// Enums are stored as integers of the enum's width.
template <class Integer>
struct WordAccess {
  static void set(void* member, const AttrDef& def, const AttrValue& value) {
    const auto index = static_cast<Integer>(word_index(def, value));
    std::memcpy(member, &index, sizeof index);
  }
  static std::optional<AttrValue> get(const void* member, const AttrDef& def) {
    Integer index = 0;
    std::memcpy(&index, member, sizeof index);
    return AttrValue(def.words.at(static_cast<std::size_t>(index)));
  }
  static bool set_dynamic(void*, const AttrDef&, const OperandTypes&) { return false; }
  static constexpr FieldAccess access{AttrKind::Word, set, get, set_dynamic};
};

}  // namespace

template <class T>
const FieldAccess& field_access() {
  return MemberAccess<T>::access;
}

#define TENON_FIELD_ACCESS(T)                    \
  template const FieldAccess& field_access<T>(); \
  template const FieldAccess& field_access<std::optional<T>>();
TENON_FIELD_ACCESS(bool)
TENON_FIELD_ACCESS(int)
TENON_FIELD_ACCESS(std::int64_t)
TENON_FIELD_ACCESS(Dim)
TENON_FIELD_ACCESS(double)
TENON_FIELD_ACCESS(std::string)
TENON_FIELD_ACCESS(DType)
TENON_FIELD_ACCESS(Dims)
TENON_FIELD_ACCESS(std::vector<std::int64_t>)
TENON_FIELD_ACCESS(std::vector<double>)
TENON_FIELD_ACCESS(std::vector<std::string>)
TENON_FIELD_ACCESS(Constant)
TENON_FIELD_ACCESS(Type)
#undef TENON_FIELD_ACCESS

const FieldAccess& word_access() { return WordAccess<int>::access; }
const FieldAccess& narrow_word_access() { return WordAccess<std::uint8_t>::access; }

ErasedField::ErasedField() = default;
ErasedField::ErasedField(const ErasedField&) = default;
ErasedField::ErasedField(ErasedField&&) noexcept = default;
ErasedField& ErasedField::operator=(const ErasedField&) = default;
ErasedField& ErasedField::operator=(ErasedField&&) noexcept = default;
ErasedField::~ErasedField() = default;

void ErasedField::set(void* attrs, const AttrValue& value) const {
  access->set(static_cast<std::byte*>(attrs) + offset, def, value);
}
std::optional<AttrValue> ErasedField::get(const void* attrs) const {
  return access->get(static_cast<const std::byte*>(attrs) + offset, def);
}
bool ErasedField::set_dynamic(void* attrs, const OperandTypes& operands) const {
  return access->set_dynamic(static_cast<std::byte*>(attrs) + offset, def, operands);
}

ErasedField make_field(const FieldSpec& spec, const void* initial) {
  ErasedField field;
  field.def.name = spec.name;
  field.access = &spec.access();
  field.def.kind = field.access->kind;
  field.def.is_required = spec.options.is_required;
  if (*spec.options.words != '\0') field.def.words = split(spec.options.words, ' ');
  field.is_dynamic = spec.options.is_dynamic;
  field.offset = static_cast<std::size_t>(spec.offset);
  if (!field.def.is_required) field.def.default_value = field.get(initial);
  return field;
}

}  // namespace tenon::inline ops
