#include "frontends/unsupported.h"

#include "base/error.h"
#include "base/text.h"

namespace tenon::frontends {
namespace {
constexpr std::size_t kShownNodes = 3;
constexpr std::size_t kShownGroups = 50;
}  // namespace

void UnsupportedList::add(const std::string& op, const std::string& reason,
                          const std::string& node_name) {
  Group& group = groups_[{op, reason}];
  ++group.node_count;
  if (!node_name.empty() && group.first_nodes.size() < kShownNodes) {
    group.first_nodes.push_back(concat("'", node_name, "'"));
  }
}

void UnsupportedList::raise(const std::string& verb, const std::string& place) const {
  if (groups_.empty()) return;
  std::string text = concat("cannot ", verb, " the model: ", groups_.size(),
                            groups_.size() == 1 ? " thing is" : " things are", " not supported");
  std::size_t shown = 0;
  for (const auto& [key, group] : groups_) {
    if (shown++ == kShownGroups) {
      text += concat("\n  - … ", groups_.size() - kShownGroups, " more");
      break;
    }
    const auto& [op, reason] = key;
    text += concat("\n  - ", op);
    if (!reason.empty()) text += concat(": ", reason);
    if (group.node_count == 0 || group.first_nodes.empty()) continue;
    const bool is_cut = group.node_count > group.first_nodes.size();
    text += concat(" (", group.node_count == 1 ? "node " : concat(group.node_count, " nodes: "),
                   join(group.first_nodes, ", "), is_cut ? ", …" : "", ")");
  }
  throw Error(std::move(text), ErrorKind::Unsupported).at(place);
}

}  // namespace tenon::frontends
