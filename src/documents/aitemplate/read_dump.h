#pragma once

#include "documents/aitemplate/tables.h"

#include <string>
#include <string_view>
#include <vector>

namespace tenon::documents::aitemplate {

/// Source positions of a dump's parts.
class SourceMap {
 public:
  SourceMap() = default;
  SourceMap(std::string_view text, std::vector<PythonValue> tensors,
            std::vector<PythonValue> operators);

  /// Returns the line and column of a path such as "tensors/3/shape/1/values/0", or "" for an
  /// unknown path or without a source text. Missing trailing components are ignored.
  std::string place(std::string_view path) const;

 private:
  std::vector<PythonValue> tensors_, operators_;
  std::vector<std::size_t> line_starts_;
};

struct ReadDump {
  Dump dump;
  SourceMap source;
};

/// Reads a whole dump. Throws Error with line and column; besides malformed text, it refuses
/// duplicate tensor names, dangling references between operators and tensors, cycles, and accessor
/// counts that differ from the operand counts.
ReadDump read_dump(std::string_view text, std::string_view source);

}  // namespace tenon::documents::aitemplate
