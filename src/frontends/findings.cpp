#include "frontends/findings.h"

#include <algorithm>

namespace tenon {

// A document makes claims of a few kinds, thousands of each: a search over kinds is short.
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

}  // namespace tenon
