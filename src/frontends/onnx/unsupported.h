#pragma once

#include <map>
#include <string>
#include <vector>

namespace tenon::onnx {

/// Ends the import of one node; everything else goes on, so that all is reported at once.
struct NotSupported {
  std::string reason;
};

/// Ends the import of a node because of others that were reported already.
struct Abandoned {};

/// What could not be translated, by operator; becomes one Error.
class UnsupportedList {
 public:
  void add(const std::string& op, const std::string& reason, const std::string& node_name);
  bool is_empty() const { return groups_.empty(); }
  /// Throws an Error (Unsupported) that lists all, if there is anything; `verb` is "import" or
  /// "export".
  void raise(const std::string& verb, const std::string& place) const;

 private:
  struct Group {
    std::size_t node_count = 0;
    std::vector<std::string> first_nodes;
  };
  std::map<std::pair<std::string, std::string>, Group> groups_;  // op and reason
};

}  // namespace tenon::onnx
