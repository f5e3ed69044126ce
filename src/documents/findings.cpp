#include "documents/findings.h"

#include <algorithm>

namespace tenon::documents {

// Linear search: a document has few kinds of claims, with thousands of each.
Findings::Kind& Findings::kind(std::string_view name) {
  const auto found = std::find_if(kinds_.begin(), kinds_.end(),
                                  [&](const Kind& each) { return each.name == name; });
  if (found != kinds_.end()) return *found;
  return kinds_.emplace_back(Kind{std::string(name)});
}

void Findings::hold(std::string_view name) {
  Kind& counts = kind(name);
  ++counts.holding;
  ++counts.total;
}

void Findings::add(Mismatch mismatch) {
  ++kind(mismatch.kind).total;
  mismatches_.push_back(std::move(mismatch));
}

}  // namespace tenon::documents
