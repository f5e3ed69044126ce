#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::passes {

/// Remarks of passes about single nodes: why one was fused or not, folded, given a layout. A node
/// is identified by the name of its first result, which survives rewrites.
class Remarks {
 public:
  struct Entry {
    std::string pass, text;
  };
  void say(std::string_view value, std::string_view pass, std::string text);
  /// Returns all remarks about that value, in order.
  const std::vector<Entry>& about(std::string_view value) const;
  const std::map<std::string, std::vector<Entry>, std::less<>>& all() const { return entries_; }

 private:
  std::map<std::string, std::vector<Entry>, std::less<>> entries_;
};

}  // namespace tenon::passes
