#include "codegen/program_attribute.h"

#include "codegen/extent_of.h"

namespace tenon::codegen {
namespace {

// Converts each kind of attribute value.
struct Write {
  ProgramAttribute& to;
  const std::map<std::string, std::size_t>& symbols;

  void operator()(bool value) const { to.integers = {Extent(value ? 1 : 0)}; }
  void operator()(const Dim& value) const { to.integers = {extent_of(value, symbols)}; }
  void operator()(double value) const { to.reals = {value}; }
  void operator()(const std::string& value) const { to.texts = {value}; }
  void operator()(DType value) const { to.texts = {std::string(to_string(value))}; }
  void operator()(const Dims& value) const {
    for (const Dim& dim : value) to.integers.push_back(extent_of(dim, symbols));
  }
  void operator()(const std::vector<double>& value) const { to.reals = value; }
  void operator()(const std::vector<std::string>& value) const { to.texts = value; }
  void operator()(const Constant& value) const {
    const Tensor tensor = value.materialise();
    for (const std::int64_t extent : tensor.shape()) to.integers.emplace_back(extent);
    to.texts = {std::string(to_string(tensor.dtype()))};
    if (tensor.dtype() == DType::String) {
      to.texts.insert(to.texts.end(), tensor.strings().begin(), tensor.strings().end());
    } else {
      to.bytes.assign(tensor.bytes().begin(), tensor.bytes().end());
    }
  }
  void operator()(const Type& value) const { to.texts = {to_string(value)}; }
};

}  // namespace

ProgramAttribute program_attribute(const std::string& name, const AttrValue& value,
                                   const std::map<std::string, std::size_t>& symbols) {
  ProgramAttribute made;
  made.name = name;
  made.kind = static_cast<ProgramAttribute::Kind>(value.index());
  std::visit(Write{made, symbols}, value);
  return made;
}

}  // namespace tenon::codegen
