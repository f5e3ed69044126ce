#include "documents/kernel_choices.h"

#include "base/error.h"
#include "base/text.h"

namespace tenon::documents {
namespace {

std::string note_key(const Graph& graph, ValueId result) {
  return concat("kernels of ", graph.value(result).name);
}

}  // namespace

void note_choices(Graph& graph, ValueId result, const KernelChoices& choices) {
  std::string text = choices.symbol;
  for (const auto& [lo, hi, kernel] : choices.choices)
    text += concat("\n", lo, " ", hi, " ", kernel);
  graph.metadata[note_key(graph, result)] = std::move(text);
}

std::optional<KernelChoices> noted_choices(const Graph& graph, ValueId result) {
  const auto found = graph.metadata.find(note_key(graph, result));
  if (found == graph.metadata.end()) return std::nullopt;
  const std::vector<std::string> lines = split(found->second, '\n');
  KernelChoices choices{lines.front(), {}};
  for (std::size_t k = 1; k < lines.size(); ++k) {
    const std::size_t first = lines[k].find(' '), second = lines[k].find(' ', first + 1);
    if (first == std::string::npos || second == std::string::npos) return std::nullopt;
    const auto lo = parse_integer(lines[k].substr(0, first));
    const auto hi = parse_integer(lines[k].substr(first + 1, second - first - 1));
    if (!lo || !hi) return std::nullopt;  // not written by note_choices
    choices.choices.push_back({*lo, *hi, lines[k].substr(second + 1)});
  }
  if (choices.choices.empty()) return std::nullopt;
  return choices;
}

}  // namespace tenon::documents
