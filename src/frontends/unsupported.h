#pragma once

#include <map>
#include <string>
#include <vector>

namespace tenon::frontends {

/// Aborts the import of one node; the import continues, so that all unsupported nodes are reported
/// at once.
struct NotSupported {
  std::string reason;
};

/// Aborts the import of a node that depends on nodes that were already reported.
struct Abandoned {};

/// Unsupported nodes by operator, reported in one Error.
class UnsupportedList {
 public:
  void add(const std::string& op, const std::string& reason, const std::string& node_name);
  bool is_empty() const { return groups_.empty(); }
  /// Throws an Error (Unsupported) with the whole list unless it is empty; `verb` is "import" or
  /// "export".
  void raise(const std::string& verb, const std::string& place) const;

 private:
  struct Group {
    std::size_t node_count = 0;
    std::vector<std::string> first_nodes;
  };
  std::map<std::pair<std::string, std::string>, Group> groups_;  // op and reason
};

}  // namespace tenon::frontends
