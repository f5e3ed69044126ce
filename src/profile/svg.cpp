#include "base/error.h"
#include "base/markup.h"
#include "base/text.h"
#include "profile/summary.h"
#include "profile/trace.h"

#include <algorithm>
#include <cstdio>

namespace tenon::profile {
namespace {

constexpr double kWide = 210, kTall = 52, kGapX = 22, kGapY = 36, kKey = 30, kLeast = 440;
constexpr std::size_t kLetters = 31;  // maximum line length in a box

std::string cut(const std::string& text) {
  std::size_t letters = 0, at = 0;
  for (; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) continue;
    if (++letters > kLetters) return text.substr(0, at) + "…";
  }
  return text;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

// Color scale from white to red by the share of the longest step.
std::string colour(double share) {
  const auto paler = [&](double at_full) {
    return 255 - (255 - at_full) * std::clamp(share, 0.0, 1.0);
  };
  char text[16];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", static_cast<unsigned>(paler(236)),
                static_cast<unsigned>(paler(84)), static_cast<unsigned>(paler(68)));
  return text;
}

struct NodeBox {
  double x = 0, y = 0;  // upper left corner
};

// Layered layout: a step is below all producers of its operands; steps of one layer are in
// execution order.
std::vector<NodeBox> placed(const Profile& profile, double& width, double& height) {
  std::vector<std::size_t> row(profile.steps.size(), 0);
  std::vector<std::size_t> in_row;
  std::vector<std::size_t> place(profile.steps.size(), 0);
  for (std::size_t k = 0; k < profile.steps.size(); ++k) {
    for (const std::uint32_t maker : profile.steps[k].after) {
      if (maker < k) row[k] = std::max(row[k], row[maker] + 1);
    }
    if (in_row.size() <= row[k]) in_row.resize(row[k] + 1, 0);
    place[k] = in_row[row[k]]++;
  }
  std::size_t most = 1;
  for (const std::size_t count : in_row) most = std::max(most, count);
  width = std::max(kLeast, static_cast<double>(most) * (kWide + kGapX) + kGapX);
  height = kKey + static_cast<double>(in_row.size()) * (kTall + kGapY) + kGapY;
  std::vector<NodeBox> boxes;
  for (std::size_t k = 0; k < profile.steps.size(); ++k) {
    const double all = static_cast<double>(in_row[row[k]]) * (kWide + kGapX) - kGapX;
    boxes.push_back({(width - all) / 2 + static_cast<double>(place[k]) * (kWide + kGapX),
                     kKey + kGapY + static_cast<double>(row[k]) * (kTall + kGapY)});
  }
  return boxes;
}

}  // namespace

std::string svg_graph(const Profile& profile) {
  double width = 0, height = 0;
  const std::vector<NodeBox> boxes = placed(profile, width, height);
  const double total = total_of(profile).seconds;
  double longest = 0;
  for (const Profile::Step& step : profile.steps)
    longest = std::max(longest, typical_seconds(step));
  std::string text =
      concat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", number(width), "\" height=\"",
             number(height), "\" viewBox=\"0 0 ", number(width), " ", number(height),
             "\" font-family=\"sans-serif\" font-size=\"11\" fill=\"#1d2327\">\n<title>",
             in_markup(profile.name),
             "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n", "<text x=\"",
             number(kGapX), "\" y=\"20\">", in_markup(cut(profile.name)), ": ", number(total * 1e6),
             " us in ", profile.steps.size(), " steps; the redder the longer</text>\n");
  for (std::size_t k = 0; k < profile.steps.size(); ++k) {
    for (const std::uint32_t maker : profile.steps[k].after) {
      const double x0 = boxes[maker].x + kWide / 2, y0 = boxes[maker].y + kTall,
                   x1 = boxes[k].x + kWide / 2, y1 = boxes[k].y;
      const double bend = std::max(16.0, (y1 - y0) / 3);
      text += concat("<path d=\"M", number(x0), " ", number(y0), " C", number(x0), " ",
                     number(y0 + bend), " ", number(x1), " ", number(y1 - bend), " ", number(x1),
                     " ", number(y1), "\" fill=\"none\" stroke=\"#9aa7b0\"/>\n");
    }
  }
  for (std::size_t k = 0; k < profile.steps.size(); ++k) {
    const Profile::Step& step = profile.steps[k];
    const double seconds = typical_seconds(step);
    const std::string time =
        concat(number(seconds * 1e6), " us, ", number(total > 0 ? 100 * seconds / total : 0), " %");
    text += concat("<g transform=\"translate(", number(boxes[k].x), " ", number(boxes[k].y),
                   ")\"><title>", in_markup(step.name), "\n", time, "\n", in_markup(step.candidate),
                   "\n", in_markup(shapes_text(profile, step)), "</title><rect width=\"",
                   number(kWide), "\" height=\"", number(kTall), "\" rx=\"5\" fill=\"",
                   colour(longest > 0 ? seconds / longest : 0),
                   "\" stroke=\"#5d6a72\"/><text x=\"8\" y=\"16\" font-weight=\"bold\">",
                   in_markup(cut(step.source.empty() ? step.value : step.source)),
                   "</text><text x=\"8\" y=\"31\">", in_markup(cut(step.op)),
                   "</text><text x=\"8\" y=\"45\">", time, "</text></g>\n");
  }
  return text + "</svg>\n";
}

}  // namespace tenon::profile
