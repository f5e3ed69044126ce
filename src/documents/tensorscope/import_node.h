#pragma once

#include "documents/tensorscope/data_flow.h"
#include "documents/tensorscope/windows.h"
#include "tenon/builder.h"

#include <string>
#include <string_view>
#include <vector>

namespace tenon::documents::tensorscope {

/// Import of one row to nodes of a graph.
struct ImportNode {
  Builder& build;
  const TensorScopeTable& table;
  const DataFlow& step;
  /// its row
  std::size_t at = 0;
  /// by data input
  std::vector<Var> operands;
  /// of its images
  ImageLayout layout = ImageLayout::Unknown;
  /// null for rows without a window, and if no window fits
  const Windows* windows = nullptr;
  /// the name of its first result
  std::string result;

  const Row& row() const { return table.rows[at]; }
  const TensorShape& output(std::size_t k = 0) const { return row().outputs[k]; }
  /// Appends one node; the last node of the row takes its name.
  Var call(std::string_view op, const std::vector<Var>& inputs,
           const std::vector<Attr>& attrs = {}) {
    return build.call(op, inputs, attrs);
  }
  Var last(std::string_view op, const std::vector<Var>& inputs,
           const std::vector<Attr>& attrs = {}) {
    return build.call(op, inputs, attrs, result);
  }
};

/// Returns results by output. Throws Error for a row that contradicts its operator.
using ImportRule = std::vector<Var> (*)(ImportNode& node);
/// Returns null for an unknown operator.
ImportRule find_import_rule(std::string_view op);
/// Rules of convolutions, pools, and normalization.
ImportRule find_image_rule(std::string_view op);

/// Sets a layout on a value without one.
Var with_layout(Builder& build, Var value, std::string_view layout);
/// Throws an error of this row.
[[noreturn]] void refuse(const ImportNode& node, std::string_view what);

}  // namespace tenon::documents::tensorscope
