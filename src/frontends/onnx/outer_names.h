#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace onnx_schema {
class GraphProto;
}

namespace tenon::frontends::onnx {

/// Finds the outer values that graphs read, in the order of first use.
class OuterNames {
 public:
  /// `names` receives them.
  explicit OuterNames(std::vector<std::string>& names) : names_(names) {}

  void visit(const onnx_schema::GraphProto& graph);

 private:
  void read(const std::string& name);

  std::vector<std::string>& names_;
  std::vector<const std::unordered_set<std::string_view>*> inside_;
  std::unordered_set<std::string_view> seen_;
};

}  // namespace tenon::frontends::onnx
