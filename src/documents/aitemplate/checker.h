#pragma once

#include "documents/aitemplate/dim_table.h"
#include "documents/aitemplate/read_dump.h"
#include "documents/aitemplate/vocabulary.h"
#include "documents/findings.h"

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace tenon::documents::aitemplate {

/// Walks a dump and recomputes its claims.
class DumpChecker {
 public:
  DumpChecker(const Dump& dump, const SourceMap& places);
  Findings run();

 private:
  // ---- places ----
  /// Path of attributes below a tensor or operator: "operators/3/exec_path/0".
  struct Path {
    std::string text;
    Path operator/(std::string_view step) const { return {text + "/" + std::string(step)}; }
    Path operator/(std::size_t index) const { return {text + "/" + std::to_string(index)}; }
  };
  Path tensor_path(std::size_t index) const { return {"tensors/" + std::to_string(index)}; }
  Path operator_path(std::size_t index) const { return {"operators/" + std::to_string(index)}; }
  std::string place(const Path& path) const;
  template <class T, class U>
  void compare(std::string_view kind, const Path& path, const T& says, const U& should_be) {
    findings_.compare(
        kind, [&] { return place(path); }, says, should_be);
  }
  void compare_lists(std::string_view kind, const Path& path, const std::vector<std::string>& says,
                     const std::vector<std::string>& should_be);
  void compare_numbers(std::string_view kind, const Path& path,
                       const std::vector<std::int64_t>& says,
                       const std::vector<std::int64_t>& should_be);
  /// Compares values leaf by leaf, so that the finding names the difference.
  void compare_values(std::string_view kind, const Path& path, const PythonValue& says,
                      const PythonValue& should_be);
  void compare_attribute(std::string_view kind, const OperatorRow& row, const Path& path,
                         std::string_view name, const PythonValue& should_be);

  // ---- tensors ----
  void check_tensor(std::size_t index);
  void check_dims(const std::vector<DimRow>& dims, const Path& path);
  void check_dim(const DimRow& dim, const Path& path);
  void check_dim_name(const TensorRow& row, std::size_t axis, const Path& path);
  void check_views(std::size_t index);
  void check_nested(const TensorRow& nested, const Path& path);
  std::vector<std::string> writers(std::size_t tensor) const;
  std::vector<std::string> readers(std::size_t tensor) const;
  static bool is_moved(const std::optional<std::vector<AccessorRow>>& accessors, std::size_t k);
  std::int64_t depth_after(const OperatorRow& row, std::size_t output) const;
  std::vector<std::size_t> listed_outputs() const;
  bool is_listed_in_order() const;
  void check_presence();
  void find_stale_depths();
  void compare_depth(const Path& path, std::int64_t says, std::int64_t should_be);
  const std::vector<DimRow>& shape_seen(const std::optional<std::vector<AccessorRow>>& accessors,
                                        std::size_t k, const TensorRow& row) const;
  void check_members(const OperatorRow& row, const Path& path,
                     std::initializer_list<std::string_view> names);
  void check_order();

  // ---- operators ----
  void check_operator(std::size_t index);
  void check_names(const OperatorRow& row, const Path& path);
  void check_group(const OperatorRow& row, const Path& path);
  void check_group_dims(const OperatorRow& row, const Path& path);
  void check_func(const OperatorRow& row, const Path& path);
  void check_shapes(const OperatorRow& row, const Path& path);
  void check_tenon_shapes();
  void check_convolution(const OperatorRow& row, const Composite& composite, const Path& path);
  void check_gemm(const OperatorRow& row, const Composite& composite, const Path& path);
  void check_pool(const OperatorRow& row, const Path& path);
  void check_other(const OperatorRow& row, const Path& path);
  void check_conditions(const OperatorRow& row, const std::vector<DimRow>& image, const Path& path);
  void check_workspace(const OperatorRow& row, const Path& path);

  // ---- accessors ----
  void check_accessors(const OperatorRow& row, const Path& path);
  void check_accessor(const AccessorRow& accessor, const TensorRow& tensor, const Path& path);
  void check_mapping(const AccessorRow& accessor, const Path& path);
  void check_parts();

  const TensorRow& tensor(const std::string& name) const {
    return dump_.tensors[tensors_.at(name)];
  }
  /// Shapes as the operator sees them.
  const std::vector<DimRow>& input_shape(const OperatorRow& row, std::size_t k) const;
  const std::vector<DimRow>& output_shape(const OperatorRow& row, std::size_t k) const;
  std::string dim_text(const DimRow& row) const;

  const Dump& dump_;
  const SourceMap& places_;
  DimTable dims_;
  bool is_late_ = false;  // operators were fused or profiled
  bool are_depths_stale_ = false;
  Findings findings_;
  std::unordered_map<std::string, std::size_t> tensors_;
  std::vector<std::vector<std::size_t>> written_by_, read_by_;     // operators, by tensor
  std::vector<std::vector<std::size_t>> written_at_;               // output positions, by tensor
  std::unordered_map<std::string, std::size_t> by_original_name_;  // operators
  std::unordered_map<std::string, const DimRow*> first_dims_;      // by name
  std::unordered_map<std::string, std::pair<std::size_t, std::size_t>>
      first_owners_;  // tensor, axis
};

}  // namespace tenon::documents::aitemplate
