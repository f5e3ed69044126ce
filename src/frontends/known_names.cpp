#include "frontends/known_names.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>

namespace tenon::frontends {

void require_attribute(std::string_view owner, std::string_view name, std::string_view known) {
  std::vector<std::string> names;
  if (!known.empty()) names = split(known, ' ');
  if (std::ranges::find(names, name) != names.end()) return;
  Error error(concat(owner, " has no attribute '", name, "'"));
  if (!names.empty()) error.hint(suggest_name(name, names));
  throw error;
}

}  // namespace tenon::frontends
