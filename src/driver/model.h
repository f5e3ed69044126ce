#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace tenon {

/// A format that models are read from or written to.
struct Format {
  std::string name;
  std::string summary;
  bool can_read = true, can_write = true;
};
const std::vector<Format>& formats();

/// Reads a model: `zoo:NAME?param=value,…` or a file, whose format its content tells.
Graph load_model(const std::string& argument);

struct SaveOptions {
  int onnx_opset = 0;  ///< 0: the newest that the ops need
};
/// Writes a model in the format of that name. The file appears only when it is complete.
void save_model(const Graph& graph, const std::string& format, const std::string& path,
                const SaveOptions& options = {});

}  // namespace tenon
