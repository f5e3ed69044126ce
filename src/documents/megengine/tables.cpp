#include "documents/megengine/tables.h"

#include <algorithm>

namespace tenon::documents::megengine {

std::uint32_t MemberOrders::intern(std::vector<std::string> names) {
  const auto [found, is_new] = known_.try_emplace(names, static_cast<std::uint32_t>(lists_.size()));
  if (is_new) lists_.push_back(std::move(names));
  return found->second;
}

bool MegEngineProfile::has(const Object& object, std::string_view member) const {
  const auto names = orders.names(object.order);
  return std::find(names.begin(), names.end(), member) != names.end();
}

}  // namespace tenon::documents::megengine
