#include "profile/report.h"

#include "base/error.h"
#include "base/markup.h"
#include "profile/report_files.h"

namespace tenon::profile {
namespace {

// Escapes JSON inside a script element: no character may end the script or start a comment.
std::string as_script(const std::string& json) {
  std::string text;
  text.reserve(json.size() + 64);
  for (const char c : json) {
    if (c == '<') {
      text += "\\u003c";
    } else if (c == '>') {
      text += "\\u003e";
    } else if (c == '&') {
      text += "\\u0026";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

std::string_view report_style() { return report_files::style; }

std::string html_report(const std::vector<Profile>& profiles) {
  TENON_ASSERT(!profiles.empty(), "there is something to show");
  std::string data = "[";
  for (std::size_t k = 0; k < profiles.size(); ++k)
    data += (k > 0 ? ",\n" : "") + as_script(to_json(profiles[k]));
  data += "]";
  std::string page(report_files::page);
  // Each placeholder occurs once in the template.
  const auto put = [&](const std::string& mark, const std::string& text) {
    const std::size_t at = page.find(mark);
    TENON_ASSERT(at != std::string::npos, "the page has a place for each of its parts");
    page.replace(at, mark.size(), text);
  };
  put("{{title}}", in_markup(profiles.front().name.empty() ? "a profile" : profiles.front().name));
  put("{{style}}", std::string(report_files::style));
  put("{{script}}", std::string(report_files::script));
  put("{{data}}", data);  // last, so that no placeholder is searched for in the profile's data
  return page;
}

}  // namespace tenon::profile
