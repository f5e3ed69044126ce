#include "ops/definition/elements.h"

#include "base/error.h"
#include "base/text.h"

#include <string>
#include <vector>

namespace tenon::inline ops {
namespace {

Elements elements_of(DType dtype) {
  if (is_float(dtype)) return floats;
  if (is_integer(dtype)) return integers;
  if (is_complex(dtype)) return complexes;
  return dtype == DType::Bool ? bools : texts;
}

std::string to_string(Elements elements) {
  std::vector<std::string> kinds;
  if (elements.kinds & floats.kinds) kinds.push_back("floats");
  if (elements.kinds & integers.kinds) kinds.push_back("integers");
  if (elements.kinds & bools.kinds) kinds.push_back("bool");
  if (elements.kinds & complexes.kinds) kinds.push_back("complex numbers");
  if (elements.kinds & texts.kinds) kinds.push_back("strings");
  return join(kinds, ", ");
}

}  // namespace

const TensorType& require_elements(const OperandTypes& in, std::string_view operand,
                                   Elements elements) {
  const TensorType& type = in[operand];
  if (elements_of(type.dtype).kinds & elements.kinds) return type;
  throw Error(concat(in.op_name(), ": operand '", operand, "' has an element type it cannot have"))
      .expected(to_string(elements))
      .got(type);
}

}  // namespace tenon::inline ops
