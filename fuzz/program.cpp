// Fuzz target: compiled programs. Any bytes give a consistent program or an Error. Code is linked
// and memory planned, but not run, because arbitrary machine code cannot be checked. Create a seed
// for each file of tests/fixtures/programs with `tenon compile FILE --cpu=x86-64-v3 -o
// tests/fuzz/program/NAME.tnn`; a new format version requires new seeds.
#include "base/error.h"
#include "host/executable.h"
#include "program/file.h"
#include "runtime/executor.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  // Works on a copy with a repaired checksum, because random bytes would all fail the checksum.
  auto bytes = std::make_shared<std::vector<std::byte>>(size);
  if (size > 0) std::memcpy(bytes->data(), data, size);
  try {
    seal_program(*bytes);
    Program program = parse_program(*bytes, bytes);
    std::vector<std::int64_t> least;
    for (const Program::Symbol& symbol : program.symbols) least.push_back(symbol.lo);
    std::vector<std::vector<std::int64_t>> shapes;
    for (const std::uint32_t id : program.inputs) {
      auto& shape = shapes.emplace_back();
      for (const Extent& dim : program.buffers[id].dims) shape.push_back(dim.value(least));
    }
    Executor context(load_executable(std::move(program)), 1);
    context.bind(shapes);
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
