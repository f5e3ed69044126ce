#pragma once

#include "frontends/onnx/import_node.h"
#include "ir/tensor.h"

#include <string>
#include <vector>

// Shared parts of ai.onnx.ml's operators: rows of features to scores of targets or classes.
namespace tenon::frontends::onnx {

/// Returns the first input as rows of features [rows, columns] in `dtype`; a vector is one row.
Var feature_rows(NodeImport& node, DType dtype = DType::F32);

Var constant_of_reals(NodeImport& node, const std::vector<double>& values, Shape shape,
                      DType dtype = DType::F32);

/// Reads a list of numbers from the floats `name` or the tensor `name`_as_tensor.
std::vector<double> reals_or_tensor(const NodeImport& node, const std::string& name);

/// Applies ONNX's post transform to `scores` [rows, columns].
Var transformed_scores(NodeImport& node, Var scores, std::string_view transform);

/// Expands one column of scores of the second class to two classes. The first class gets one minus
/// a probability (Share), or the negative of a margin.
enum class OneColumn { Share, Margin };
Var both_classes(Var scores, std::string_view transform, OneColumn kind);

/// Returns the node's class labels (`classlabels_*`), by default 0, 1, …; `count` classes.
Var label_list(NodeImport& node, std::int64_t count);
/// Returns the labels at these positions.
Var labels_at(NodeImport& node, Var positions, std::int64_t count);

}  // namespace tenon::frontends::onnx
