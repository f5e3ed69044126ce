#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// What passes have to say about single nodes: why one was fused or not, folded, given a layout. A
/// node goes by the name of its first result, which survives where the node does.
class Remarks {
 public:
  struct Entry {
    std::string pass, text;
  };
  void say(std::string_view value, std::string_view pass, std::string text);
  /// Everything about that value, in the order it was said.
  const std::vector<Entry>& about(std::string_view value) const;
  const std::map<std::string, std::vector<Entry>, std::less<>>& all() const { return entries_; }

 private:
  std::map<std::string, std::vector<Entry>, std::less<>> entries_;
};

}  // namespace tenon
