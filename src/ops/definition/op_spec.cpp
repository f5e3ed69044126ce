#include "ops/definition/op_spec.h"

#include "base/text.h"
#include "expr/lowering.h"
#include "ir/assumptions.h"

namespace tenon::inline ops {

namespace {

bool may_be_known(const Type& type) {
  if (!type.is_tensor()) return false;
  const TensorType& tensor = type.tensor();
  const bool is_counting =
      tensor.dtype == DType::I64 || tensor.dtype == DType::I32 || tensor.dtype == DType::Bool;
  return is_counting && tensor.rank() <= 1 && all_constant(tensor.dims) &&
         product(tensor.dims).constant() <= 64;
}

void refuse_unknown_attributes(const OpDef& op, const Attributes& attrs) {
  for (const auto& [name, value] : attrs) {
    if (op.find_attr(name)) continue;
    std::vector<std::string> known;
    for (const AttrDef& attr : op.attrs) known.push_back(attr.name);
    throw Error(concat(op.name, ": unknown attribute '", name, "'"))
        .hint(suggest_name(name, known));
  }
}

// Owns the typed attributes of one node.
class TypedAttrs {
 public:
  explicit TypedAttrs(const ErasedSpec& spec) : spec_(spec), held_(spec.make_attrs()) {}
  ~TypedAttrs() { spec_.free_attrs(held_); }
  TypedAttrs(const TypedAttrs&) = delete;
  TypedAttrs& operator=(const TypedAttrs&) = delete;
  void* get() const { return held_; }

  // Reads dynamic attributes from operands; returns false if a required one is not known yet.
  bool read(const Attributes& attrs, const OperandTypes* operands) {
    for (const ErasedField& field : spec_.fields) {
      if (const AttrValue* value = attrs.find(field.def.name)) {
        field.set(held_, *value);
      } else if (field.is_dynamic && operands && operands->has(field.def.name)) {
        if (!field.set_dynamic(held_, *operands)) return false;
      } else if (field.def.is_required) {
        throw Error(concat(spec_.def.name, ": attribute '", field.def.name, "' is missing"));
      }
    }
    return true;
  }

 private:
  const ErasedSpec& spec_;
  void* held_;
};

// Evaluates the op's own lowering with dims as elements, so that shape arithmetic stays symbolic.
std::optional<Dims> derived_elements(const ErasedSpec& spec, const InferInput& input,
                                     std::size_t result, const std::vector<Type>& types) {
  std::vector<const Dims*> known;
  std::vector<const Tensor*> values;
  std::vector<Type> operands;
  for (std::size_t k = 0; k < input.operands.size(); ++k) {
    const OperandFacts& facts = input.operands[k];
    const bool is_dynamic =
        k < spec.def.operands.size() && spec.def.operands[k].is_dynamic_attribute;
    if (input.present[k] && !facts.known && !facts.value) return std::nullopt;
    if (is_dynamic && input.present[k] && !facts.value) return std::nullopt;
    known.push_back(facts.known);
    values.push_back(is_dynamic && input.present[k] ? facts.value : nullptr);
    operands.push_back(facts.type);
  }
  TypedAttrs typed(spec);
  typed.read(bind_dynamic_attributes(spec.def, input.attrs, values), nullptr);
  Lowering lowering(spec.def, std::move(operands), types);
  spec.lower(typed.get(), lowering);
  return known_elements(lowering.definitions()[result], known);
}

Attributes canonical_attributes(const ErasedSpec& spec, const Attributes& given) {
  refuse_unknown_attributes(spec.def, given);
  Attributes kept;
  for (const ErasedField& field : spec.fields) {
    const AttrValue* value = given.find(field.def.name);
    if (!value) continue;
    const TypedAttrs typed(spec);
    field.set(typed.get(), *value);
    std::optional<AttrValue> canonical = field.get(typed.get());
    if (!canonical) continue;
    if (field.def.default_value && equal(*canonical, *field.def.default_value)) continue;
    kept.set(field.def.name, std::move(*canonical));
  }
  return kept;
}

// Refuses extents below zero and element counts that overflow, whichever attributes and operands
// caused them.
void refuse_impossible_extents(const OpDef& op, const std::vector<Type>& types) {
  for (const Type& type : types) {
    if (!type.is_tensor()) continue;
    std::int64_t count = 1;
    bool is_too_large = false;
    for (const Dim& extent : type.tensor().dims) {
      if (!assume_at_most(0, extent)) {
        throw Error(concat(op.name, ": an extent of the result is negative")).got(type);
      }
      if (!extent.is_constant()) continue;
      if (extent.constant() == 0) {
        is_too_large = false;
        break;
      }
      is_too_large |=
          __builtin_mul_overflow(count, extent.constant(), &count) || count > kMaxExtent;
    }
    if (is_too_large) throw Error(concat(op.name, ": the result has too many elements")).got(type);
  }
}

InferOutput infer_op(const ErasedSpec& spec, const InferInput& input) {
  const OpDef& op = spec.def;
  InferOutput output;
  const OperandTypes operands(op, input);
  TypedAttrs typed(spec);
  try {
    if (!typed.read(input.attrs, &operands)) throw OperandTypes::NotKnownYet{};
    output.types = spec.infer(typed.get(), operands);
  } catch (const OperandTypes::NotKnownYet&) {
    output.types.assign(input.result_count, Type{});
    output.known.resize(input.result_count);
    return output;
  }
  TENON_ASSERT(output.types.size() >= input.result_count,
               concat(op.name, " infers a type for each result"));
  output.types.resize(input.result_count);
  output.known.resize(input.result_count);
  refuse_impossible_extents(op, output.types);
  for (std::size_t k = 0; k < input.result_count; ++k) {
    if (!may_be_known(output.types[k])) continue;
    if (k == 0 && spec.known) output.known[k] = spec.known(typed.get(), operands);
    if (!output.known[k] && spec.lower && !input.operands.empty()) {
      output.known[k] = derived_elements(spec, input, k, output.types);
    }
  }
  return output;
}

}  // namespace

ErasedSpec::ErasedSpec() = default;
ErasedSpec::ErasedSpec(const ErasedSpec&) = default;
ErasedSpec::ErasedSpec(ErasedSpec&&) noexcept = default;
ErasedSpec& ErasedSpec::operator=(const ErasedSpec&) = default;
ErasedSpec& ErasedSpec::operator=(ErasedSpec&&) noexcept = default;
ErasedSpec::~ErasedSpec() = default;

void set_lists(ErasedSpec& spec, std::span<const OperandName> operands,
               std::span<const OperandName> results, std::span<const FieldSpec> attrs,
               std::span<const char* const> bodies, std::span<const char* const> examples) {
  for (const OperandName& it : operands)
    spec.def.operands.push_back({it.name, it.is_optional, it.is_variadic, false});
  for (const OperandName& it : results)
    spec.def.results.push_back({it.name, it.is_optional, it.is_variadic});
  spec.def.bodies.assign(bodies.begin(), bodies.end());
  spec.def.examples.assign(examples.begin(), examples.end());
  const TypedAttrs initial(spec);
  for (const FieldSpec& it : attrs) spec.fields.push_back(make_field(it, initial.get()));
}

OpDef make_op_def(ErasedSpec given) {
  const auto spec = std::make_shared<ErasedSpec>(std::move(given));
  for (const ErasedField& field : spec->fields) {
    spec->def.attrs.push_back(field.def);
    if (field.is_dynamic) spec->def.operands.push_back({field.def.name, true, false, true});
  }
  const auto bind = [spec](auto& rule) {
    return [spec, &rule](const Attributes& attrs, auto& op) {
      TypedAttrs typed(*spec);
      typed.read(attrs, nullptr);
      rule(typed.get(), op);
    };
  };
  // The rules share the spec. Its copy of the definition has no rules: it serves for names.
  OpDef def = spec->def;
  if (spec->lower) def.lower = bind(spec->lower);
  if (spec->evaluate) def.evaluate = bind(spec->evaluate);
  if (spec->gradient) def.gradient = bind(spec->gradient);
  if (spec->infer) def.infer = [spec](const InferInput& input) { return infer_op(*spec, input); };
  def.canonical_attributes = [spec](const Attributes& attrs) {
    return canonical_attributes(*spec, attrs);
  };
  return def;
}

OpDef with_examples(std::vector<const char*> examples, OpDef op) {
  op.examples.assign(examples.begin(), examples.end());
  return op;
}

}  // namespace tenon::inline ops
