// Any bytes are a program that holds together, or an Error. Its code is linked and its memory laid
// out, never run: what machine code does nobody can check. Seeds are made by, for each file of
// tests/fixtures/programs, `tenon compile FILE --cpu=x86-64-v3 -o tests/fuzz/program/NAME.tnn`; a
// new version of the format needs new ones.
#include "base/error.h"
#include "host/context.h"
#include "program/file.h"
#include "runtime/executable.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  // Not on the fuzzer's own copy: the checksum is made right first, or nothing would get past it.
  auto bytes = std::make_shared<std::vector<std::byte>>(size);
  if (size > 0) std::memcpy(bytes->data(), data, size);
  try {
    seal_program(*bytes);
    Program program = parse_program(*bytes, bytes);
    if (!program.is_kernels_alone()) {
      HostContext context(std::make_shared<const HostExecutable>(std::move(program)), 1);
      return 0;
    }
    std::vector<std::int64_t> least;
    for (const Program::Symbol& symbol : program.symbols) least.push_back(symbol.lo);
    std::vector<std::vector<std::int64_t>> shapes;
    for (const std::uint32_t id : program.inputs) {
      auto& shape = shapes.emplace_back();
      for (const Extent& dim : program.buffers[id].dims) shape.push_back(dim.value(least));
    }
    Context context(std::make_shared<const Executable>(std::move(program)), 1);
    context.bind(shapes);
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
