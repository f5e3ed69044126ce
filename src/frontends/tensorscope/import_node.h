#pragma once

#include "frontends/tensorscope/data_flow.h"
#include "frontends/tensorscope/windows.h"
#include "tenon/builder.h"

#include <string>
#include <string_view>
#include <vector>

namespace tenon::tensorscope {

/// A row that is turned into nodes of a graph.
struct ImportNode {
  Builder& build;
  const Table& table;
  const DataFlow& step;
  /// its row
  std::size_t at = 0;
  /// by data input
  std::vector<Var> operands;
  /// of its images
  ImageLayout layout = ImageLayout::Unknown;
  /// null where no window fits, or it has none
  const Windows* windows = nullptr;
  /// the name of its first result
  std::string result;

  const Row& row() const { return table.rows[at]; }
  const TensorShape& output(std::size_t k = 0) const { return row().outputs[k]; }
  /// One node; the last one of the row takes its name.
  Var call(std::string_view op, const std::vector<Var>& inputs,
           const std::vector<Attr>& attrs = {}) {
    return build.call(op, inputs, attrs);
  }
  Var last(std::string_view op, const std::vector<Var>& inputs,
           const std::vector<Attr>& attrs = {}) {
    return build.call(op, inputs, attrs, result);
  }
};

/// Throws Error where the row does not fit its operator. Results by output.
using ImportRule = std::vector<Var> (*)(ImportNode& node);
/// Null for an operator that is not known.
ImportRule find_import_rule(std::string_view op);
/// Those of convolutions, pools, and normalization.
ImportRule find_image_rule(std::string_view op);

/// States a layout where a value has none.
Var with_layout(Builder& build, Var value, std::string_view layout);
/// A problem of this row.
[[noreturn]] void refuse(const ImportNode& node, std::string_view what);

}  // namespace tenon::tensorscope
