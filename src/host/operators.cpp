#include "host/operators.h"

#include "base/error.h"
#include "host/program_types.h"
#include "ir/node_rules.h"
#include "ops/definition/registry.h"

#include <algorithm>
#include <cstring>

namespace tenon::inline host {
namespace {

using Kind = ProgramAttribute::Kind;

[[noreturn]] void refuse(const HostOperator& from, std::string_view what) {
  throw Error("the program calls an operator that there is not")
      .at(from.where)
      .got(what)
      .hint("compile the model again");
}

class OperatorReader {
 public:
  OperatorReader(const HostOperator& from, const Program& program)
      : from_(from), program_(program) {}

  AttrValue value(const ProgramAttribute& attribute) const {
    switch (attribute.kind) {
      case Kind::Bool:
        return one(attribute.integers) != Extent(0);
      case Kind::Integer:
        return dim_of(one(attribute.integers), program_);
      case Kind::Real:
        return one(attribute.reals);
      case Kind::Text:
        return one(attribute.texts);
      case Kind::Element:
        return element(one(attribute.texts));
      case Kind::Integers:
        return dims(attribute.integers);
      case Kind::Reals:
        return attribute.reals;
      case Kind::Texts:
        return attribute.texts;
      case Kind::Constant:
        return constant(attribute);
      case Kind::Type:
        return parse_type(one(attribute.texts));
    }
    refuse(from_, "an attribute of no kind");
  }

 private:
  template <class T>
  const T& one(const std::vector<T>& list) const {
    if (list.size() != 1) refuse(from_, "an attribute of another kind");
    return list.front();
  }
  DType element(const std::string& name) const {
    const std::optional<DType> dtype = parse_dtype(name);
    if (!dtype) refuse(from_, concat("elements of type ", name));
    return *dtype;
  }
  Dims dims(const std::vector<Extent>& extents) const {
    Dims list;
    for (const Extent& extent : extents) list.push_back(dim_of(extent, program_));
    return list;
  }
  Constant constant(const ProgramAttribute& attribute) const {
    if (attribute.texts.empty()) refuse(from_, "a constant of no type");
    const DType dtype = element(attribute.texts.front());
    Shape shape;
    for (const Extent& extent : attribute.integers) {
      if (!extent.is_number() || extent.number() < 0) refuse(from_, "a constant of no shape");
      shape.push_back(extent.number());
    }
    if (dtype == DType::String) {
      std::vector<std::string> strings(attribute.texts.begin() + 1, attribute.texts.end());
      if (static_cast<std::int64_t>(strings.size()) != checked_element_count(shape))
        refuse(from_, "a constant cut short");
      return Tensor::of_strings(std::move(shape), std::move(strings));
    }
    std::int64_t bytes = checked_element_count(shape);
    if (__builtin_mul_overflow(bytes, static_cast<std::int64_t>(info(dtype).storage_bytes),
                               &bytes) ||
        bytes != static_cast<std::int64_t>(attribute.bytes.size())) {
      refuse(from_, "a constant cut short");
    }
    Tensor tensor(dtype, std::move(shape));
    if (bytes > 0)
      std::memcpy(tensor.mutable_bytes().data(), attribute.bytes.data(), attribute.bytes.size());
    return tensor;
  }

  const HostOperator& from_;
  const Program& program_;
};

bool has_symbols(const AttrValue& value) {
  if (const auto* dim = std::get_if<Dim>(&value)) return !dim->is_constant();
  const auto* dims = std::get_if<Dims>(&value);
  return dims != nullptr && !all_constant(*dims);
}

}  // namespace

Attributes ReadyOperator::bound_attributes(const DimBindings& symbols) const {
  Attributes bound;
  for (const auto& [name, value] : attributes) {
    if (const auto* dim = std::get_if<Dim>(&value)) {
      bound.set(name, dim->substitute(symbols));
    } else if (const auto* dims = std::get_if<Dims>(&value)) {
      bound.set(name, substitute(*dims, symbols));
    } else {
      bound.set(name, value);
    }
  }
  return bound;
}

ReadyOperator ready_operator(const HostOperator& from, const Program& program) {
  ReadyOperator ready;
  ready.op = all_ops().find(from.op);
  if (ready.op == nullptr) refuse(from, from.op);
  if (!ready.op->bodies.empty()) refuse(from, concat(from.op, ", which has bodies"));
  const OperatorReader reader(from, program);
  Attributes attributes;
  for (const ProgramAttribute& attribute : from.attributes) {
    if (attributes.find(attribute.name) != nullptr) refuse(from, "an attribute twice");
    attributes.set(attribute.name, reader.value(attribute));
  }
  try {
    ready.attributes = ready.op->canonical_attributes(std::move(attributes));
    std::vector<ValueId> operands;
    for (const std::uint32_t id : from.operands)
      operands.push_back(id == kNoBuffer ? ValueId{} : ValueId{0});
    check_fit(*ready.op, operands, ready.attributes, 0);
  } catch (Error& error) {
    throw error.at(from.where);
  }
  const bool any_number = !ready.op->results.empty() && ready.op->results.back().is_variadic;
  if (from.results.empty() || (!any_number && from.results.size() > ready.op->results.size())) {
    refuse(from, concat(from.results.size(), " results of ", from.op));
  }
  if (from.layouts.size() > from.operands.size()) refuse(from, "layouts of nothing");
  for (const std::string& layout : from.layouts) {
    ready.layouts.push_back(layout.empty() ? Layout() : Layout(layout));
  }
  ready.kernel = ready.layouts.empty() ? host_kernel(from.op) : nullptr;
  ready.has_symbols = std::any_of(ready.attributes.begin(), ready.attributes.end(),
                                  [](const auto& item) { return has_symbols(item.second); });
  return ready;
}

}  // namespace tenon::inline host
