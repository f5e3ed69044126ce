#include "host/program_types.h"

#include "base/error.h"

namespace tenon::inline host {

DType element_type_of(const Program::Buffer& buffer) {
  const std::optional<DType> dtype = parse_dtype(buffer.dtype);
  if (!dtype || info(*dtype).storage_bytes != buffer.element_bytes) {
    throw Error("the program has elements of a type that is not known")
        .at("'", buffer.name, "'")
        .got(buffer.dtype, " of ", buffer.element_bytes, " bytes");
  }
  return *dtype;
}

Dim dim_of(const Extent& extent, const Program& program) {
  std::vector<Dim> stack;
  for (const Extent::Instruction& step : extent.steps()) {
    if (step.op == Extent::Op::Number) {
      stack.emplace_back(step.number);
    } else if (step.op == Extent::Op::Symbol) {
      const Program::Symbol& symbol = program.symbols[static_cast<std::size_t>(step.number)];
      stack.push_back(Dim::symbol(symbol.name, {symbol.lo, symbol.hi}));
    } else {
      const Dim b = stack.back();
      stack.pop_back();
      Dim& a = stack.back();
      switch (step.op) {
        case Extent::Op::Add:
          a = a + b;
          break;
        case Extent::Op::Multiply:
          a = a * b;
          break;
        case Extent::Op::FloorDivide:
          a = floor_div(a, b);
          break;
        case Extent::Op::Minimum:
          a = min(a, b);
          break;
        default:
          a = max(a, b);
          break;
      }
    }
  }
  return stack.back();
}

}  // namespace tenon::inline host
