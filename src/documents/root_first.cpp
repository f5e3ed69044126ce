#include "documents/root_first.h"

#include "base/text.h"
#include "frontends/json.h"

#include <algorithm>
#include <map>

namespace tenon::documents {
namespace {

constexpr std::size_t kMostRepairs = 10, kMostBytes = 1 << 20;

// Returns the number after a word of a position: "graph.txt, line 34, column 3, tensor 'x'".
std::optional<std::size_t> number_after(std::string_view place, std::string_view word) {
  const std::size_t at = place.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = place.substr(at + word.size());
  const auto number = parse_integer(rest.substr(0, rest.find_first_not_of("0123456789")));
  return number && *number > 0 ? std::optional(static_cast<std::size_t>(*number)) : std::nullopt;
}

void append_text(std::string& to, std::string_view text) { to += quote(text); }
void append_real(std::string& to, double number) { to += format_real(number); }
constexpr frontends::JsonStyle kStyle{"{", "[", append_text, append_real};

// Returns the value at a path like "$.graph_exec.var.12.size" or "….out_shapes[0]", or null.
frontends::JsonValue* value_at(frontends::JsonValue& root, std::string_view path) {
  frontends::JsonValue* at = &root;
  while (!path.empty() && at != nullptr) {
    const bool is_index = path.front() == '[';
    const std::size_t end =
        is_index ? path.find(']') : std::min(path.find_first_of(".[", 1), path.size());
    if (end == std::string_view::npos) return nullptr;
    const std::string_view name = path.substr(1, end - 1);
    path.remove_prefix(std::min(path.size(), end + (is_index ? 1 : 0)));
    frontends::JsonValue* next = nullptr;
    if (auto* list = std::get_if<frontends::JsonValue::Array>(&at->value);
        list != nullptr && is_index) {
      const auto index = parse_integer(name);
      if (index && *index >= 0 && static_cast<std::size_t>(*index) < list->size())
        next = &(*list)[static_cast<std::size_t>(*index)];
    } else if (auto* members = std::get_if<frontends::JsonValue::Object>(&at->value)) {
      for (frontends::JsonValue::Member& each : *members) {
        if (each.first == name) next = &each.second;
      }
    }
    at = next;
  }
  return at;
}

// Repairs a JSON text, in which positions are paths.
std::optional<std::string> repaired_json(const frontends::JsonValue& root,
                                         const Findings::Mismatch& mismatch) {
  const std::size_t start = mismatch.place.find("$.");
  if (start == std::string::npos) return std::nullopt;
  frontends::JsonValue changed = root;
  const std::string_view place = std::string_view(mismatch.place).substr(start + 1);
  frontends::JsonValue* value = value_at(changed, place.substr(0, place.find(' ')));
  if (value == nullptr) return std::nullopt;
  try {
    *value = frontends::parse_json(mismatch.should_be, "repair");
  } catch (const Error&) {
    value->value = mismatch.should_be;
  }
  std::string text;
  frontends::print_json(text, changed, kStyle);
  return text;
}

// Returns the text with the stated value of a finding replaced by the expected one; nullopt if its
// line does not contain it.
std::optional<std::string> repaired(const std::string& text, const Findings::Mismatch& mismatch) {
  const auto line = number_after(mismatch.place, "line ");
  if (!line || mismatch.says.empty()) return std::nullopt;
  std::size_t begin = 0;
  for (std::size_t k = 1; k < *line && begin != std::string::npos; ++k) {
    begin = text.find('\n', begin);
    if (begin != std::string::npos) ++begin;
  }
  if (begin == std::string::npos) return std::nullopt;
  const std::size_t end = std::min(text.find('\n', begin), text.size());
  const std::size_t column = number_after(mismatch.place, "column ").value_or(1) - 1;
  std::size_t at = text.find(mismatch.says, begin + column);
  if (at == std::string::npos || at + mismatch.says.size() > end)
    at = text.find(mismatch.says, begin);
  if (at == std::string::npos || at + mismatch.says.size() > end) return std::nullopt;
  std::string changed = text;
  changed.replace(at, mismatch.says.size(), mismatch.should_be);
  return changed;
}

// Fallback without a successful repair: returns a finding of the line or row with the most
// findings.
std::size_t most_about(const std::vector<Findings::Mismatch>& mismatches) {
  std::map<std::size_t, std::size_t> counts;
  for (const Findings::Mismatch& each : mismatches) {
    if (const auto line = number_after(each.place, "line ")) ++counts[*line];
  }
  std::size_t best = 0, most = 0;
  for (std::size_t k = 0; k < mismatches.size(); ++k) {
    const auto line = number_after(mismatches[k].place, "line ");
    if (!line || counts[*line] <= most) continue;
    most = counts[*line];
    best = k;
  }
  return best;
}

Findings with_first(const Findings& findings, std::size_t first) {
  Findings ordered;
  for (const Findings::Kind& kind : findings.kinds()) {
    for (std::size_t k = 0; k < kind.holding; ++k) ordered.hold(kind.name);
  }
  const auto add = [&](const Findings::Mismatch& each) {
    ordered.miss(each.kind, each.place, each.says, each.should_be);
  };
  add(findings.mismatches()[first]);
  for (std::size_t k = 0; k < findings.mismatches().size(); ++k) {
    if (k != first) add(findings.mismatches()[k]);
  }
  return ordered;
}

}  // namespace

Findings check_root_first(const DocumentFormat& format, const Document& document) {
  Findings findings = document.check();
  const auto& mismatches = findings.mismatches();
  if (mismatches.size() < 2) return findings;
  const std::string text = document.text("");
  if (text.size() > kMostBytes) return findings;
  std::optional<frontends::JsonValue> json;
  if (text.starts_with("{")) {
    try {
      json = frontends::parse_json(text, "document");
    } catch (const Error&) {
      return findings;
    }
  }
  std::size_t best = 0, fewest = mismatches.size();
  for (std::size_t k = 0; k < std::min(mismatches.size(), kMostRepairs); ++k) {
    const std::optional<std::string> changed =
        json ? repaired_json(*json, mismatches[k]) : repaired(text, mismatches[k]);
    if (!changed) continue;
    try {
      const std::size_t left = format.read(*changed, "repaired")->check().mismatches().size();
      if (left < fewest) {
        fewest = left;
        best = k;
      }
    } catch (const Error&) {
      continue;  // not a repair
    }
  }
  if (fewest == mismatches.size()) best = most_about(mismatches);
  return with_first(findings, best);
}

}  // namespace tenon::documents
