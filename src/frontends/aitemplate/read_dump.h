#pragma once

#include "frontends/aitemplate/tables.h"

#include <string>
#include <string_view>
#include <vector>

namespace tenon::aitemplate {

/// Where everything in a dump's text stands.
class SourceMap {
 public:
  SourceMap() = default;
  SourceMap(std::string_view text, std::vector<PythonValue> tensors,
            std::vector<PythonValue> operators);

  /// The line and column of what a path leads to, "" where it leads nowhere (or nothing was read):
  /// "tensors/3/shape/1/values/0". What is missing at the end of a path is left out.
  std::string place(std::string_view path) const;

 private:
  std::vector<PythonValue> tensors_, operators_;
  std::vector<std::size_t> line_starts_;
};

struct ReadDump {
  Dump dump;
  SourceMap source;
};

/// Reads a whole dump. Throws Error with line and column: besides what is no dump, it refuses
/// tensors of one name, operators that name tensors nobody described, tensors that name operators
/// that do not exist, operators that wait for one another, and accessors that are fewer or more
/// than operands.
ReadDump read_dump(std::string_view text, std::string_view source);

}  // namespace tenon::aitemplate
