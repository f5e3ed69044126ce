#include "base/error.h"
#include "base/text.h"
#include "profile/summary.h"
#include "profile/trace.h"

#include <algorithm>
#include <cstdio>

namespace tenon::profile {
namespace {

// Escapes text for a quoted string in Graphviz.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

}  // namespace

std::string dot_graph(const Profile& profile) {
  const double total = total_of(profile).seconds;
  double longest = 0;
  for (const Profile::Step& step : profile.steps)
    longest = std::max(longest, typical_seconds(step));
  std::string text = concat("digraph \"", escaped(profile.name),
                            "\" {\n  rankdir=TB;\n  node [shape=box, style=filled, "
                            "fontname=\"sans-serif\", fontsize=10];\n");
  for (std::size_t k = 0; k < profile.steps.size(); ++k) {
    const Profile::Step& step = profile.steps[k];
    const double seconds = typical_seconds(step);
    char line[128];
    std::snprintf(line, sizeof line, "%.1f us, %.1f %%", seconds * 1e6,
                  total > 0 ? 100 * seconds / total : 0);
    char colour[32];
    std::snprintf(colour, sizeof colour, "0.02 %.3f 1.0",
                  longest > 0 ? 0.85 * seconds / longest : 0);
    text += concat("  s", k, " [label=\"", escaped(step.name), "\\n", line, "\", fillcolor=\"",
                   colour, "\", tooltip=\"",
                   escaped(concat(step.candidate, "; ", shapes_text(profile, step))), "\"];\n");
  }
  for (std::size_t k = 0; k < profile.steps.size(); ++k) {
    for (const std::uint32_t maker : profile.steps[k].after)
      text += concat("  s", maker, " -> s", k, ";\n");
  }
  return text + "}\n";
}

}  // namespace tenon::profile
