#include "passes/definition/remarks.h"

namespace tenon::passes {

void Remarks::say(std::string_view value, std::string_view pass, std::string text) {
  auto found = entries_.find(value);
  if (found == entries_.end())
    found = entries_.emplace(std::string(value), std::vector<Entry>()).first;
  found->second.push_back({std::string(pass), std::move(text)});
}

const std::vector<Remarks::Entry>& Remarks::about(std::string_view value) const {
  static const std::vector<Entry> nothing;
  const auto found = entries_.find(value);
  return found == entries_.end() ? nothing : found->second;
}

}  // namespace tenon::passes
