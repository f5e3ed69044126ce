#pragma once

#include <string_view>

namespace onnx_schema {
class NodeProto;
}

namespace tenon::frontends::onnx {

/// Returns the attributes of an operator in an opset, separated by spaces; "" for an operator
/// without a schema.
std::string_view attribute_names(std::string_view domain, std::string_view op_type, int opset);

/// Throws Error for an attribute outside `known` and for one that is given twice. Names that start
/// with two underscores are private to their writers, as in ONNX's own checker.
void require_known_attributes(const onnx_schema::NodeProto& node, std::string_view known);

}  // namespace tenon::frontends::onnx
