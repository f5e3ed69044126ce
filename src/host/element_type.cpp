#include "host/element_type.h"

#include "base/error.h"

namespace tenon {

DType element_type_of(const Program::Buffer& buffer) {
  const std::optional<DType> dtype = parse_dtype(buffer.dtype);
  if (!dtype || info(*dtype).storage_bytes != buffer.element_bytes) {
    throw Error("the program has elements of a type that is not known")
        .at("'", buffer.name, "'")
        .got(buffer.dtype, " of ", buffer.element_bytes, " bytes");
  }
  return *dtype;
}

}  // namespace tenon
