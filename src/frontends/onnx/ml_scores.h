#pragma once

#include "frontends/onnx/import_node.h"
#include "ir/tensor.h"

#include <string>
#include <vector>

// What the operators of ai.onnx.ml share: rows of features come in, scores of targets or classes go
// out.
namespace tenon::onnx {

/// The first input as rows of features [rows, columns] in `dtype`; a vector is one row.
Var feature_rows(NodeImport& node, DType dtype = DType::F32);

Var constant_of_reals(NodeImport& node, const std::vector<double>& values, Shape shape,
                      DType dtype = DType::F32);

/// A list of numbers that a node gives as floats under `name`, or as a tensor under
/// `name`_as_tensor.
std::vector<double> reals_or_tensor(const NodeImport& node, const std::string& name);

/// `scores` [rows, columns] after what ONNX calls a post transform.
Var transformed_scores(NodeImport& node, Var scores, std::string_view transform);

/// Scores of two classes from one column that speaks for the second. A score that is a share gives
/// the rest to the first class; one that is a margin gives the first class its negative.
enum class OneColumn { Share, Margin };
Var both_classes(Var scores, std::string_view transform, OneColumn kind);

/// The node's class labels (`classlabels_*`), or 0, 1, … where it has none; `count` classes.
Var label_list(NodeImport& node, std::int64_t count);
/// The labels at these positions.
Var labels_at(NodeImport& node, Var positions, std::int64_t count);

}  // namespace tenon::onnx
