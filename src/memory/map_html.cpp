#include "memory/map_html.h"

#include "base/error.h"
#include "base/markup.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::memory {
namespace {

constexpr double kWidth = 1200, kHeight = 640, kMargin = 70;

std::string page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n"
      "<style>body{{font:14px sans-serif;margin:24px}}svg{{background:#fafafa}}"
      "rect.v{{stroke:#fff;stroke-width:.5}}rect.v:hover{{stroke:#000;stroke-width:1.5}}"
      "text{{font:12px sans-serif}}td,th{{padding:2px 10px;text-align:right}}</style></head>\n"
      "<body><h1>{0}</h1>\n{1}</body></html>\n",
      in_markup(title), body);
}

// `x` is the start of the label; labels of adjacent lines are placed side by side.
std::string line_at(double y, double x, std::string_view colour, std::string_view label) {
  return fmt::format(
      "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.2f}\" y2=\"{2:.2f}\" stroke=\"{3}\" "
      "stroke-dasharray=\"6 3\"/><text x=\"{4}\" y=\"{5:.2f}\" fill=\"{3}\">{6}</text>\n",
      kMargin, kWidth - 10, y, colour, x, y - 4, in_markup(label));
}

std::string name_of(const ArenaBlock& storage, const Plan& plan, const Problem& problem) {
  std::string names;
  for (const Instance& instance : storage.instances) {
    names += (names.empty() ? "" : ", then ") + problem.values[instance.value].name;
  }
  if (!names.empty()) return names;
  return "workspace of " + problem.items[plan.events[storage.begin].index].name;
}

// Derives a color from the name, so that it is the same in every plan.
unsigned hue_of(std::string_view name) {
  std::uint32_t hash = 2166136261U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash % 360;
}

}  // namespace

std::string memory_map(const Plan& plan, const Problem& problem, std::uint64_t budget_bytes) {
  const double top =
      static_cast<double>(std::max({plan.arena_bytes, budget_bytes, std::uint64_t{1}}));
  const double moments = static_cast<double>(std::max<std::size_t>(plan.events.size(), 1));
  const auto x = [&](double moment) {
    return kMargin + moment / moments * (kWidth - kMargin - 10);
  };
  const auto y = [&](double bytes) { return kHeight - 30 - bytes / top * (kHeight - 60); };
  std::string body = fmt::format(
      "<p>{} events, {} storages. Arena {} ({} bytes), most alive at once {}{}. Time runs to the "
      "right, "
      "addresses upwards; point at a rectangle to see what lies there.</p>\n"
      "<svg viewBox=\"0 0 {} {}\" width=\"100%\" role=\"img\">\n",
      plan.events.size(), plan.blocks.size(), format_bytes(plan.arena_bytes), plan.arena_bytes,
      format_bytes(plan.max_live_bytes),
      budget_bytes > 0 ? ", budget " + format_bytes(budget_bytes) : std::string(), kWidth, kHeight);
  for (const ArenaBlock& storage : plan.blocks) {
    if (storage.bytes == 0) continue;
    const std::string name = name_of(storage, plan, problem);
    const double low = static_cast<double>(storage.offset);
    const double high = low + static_cast<double>(storage.bytes);
    body += fmt::format(
        "<rect class=\"v\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" "
        "fill=\"hsl({},55%,62%)\"><title>{}\n{}, {} bytes at {}, events {} to {}</title></rect>\n",
        x(storage.begin), y(high), x(storage.end) - x(storage.begin), y(low) - y(high),
        hue_of(name), in_markup(name), format_bytes(storage.bytes), storage.bytes, storage.offset,
        storage.begin, storage.end - 1);
  }
  body += line_at(y(static_cast<double>(plan.arena_bytes)), kMargin + 6, "#06c",
                  "arena " + format_bytes(plan.arena_bytes));
  if (budget_bytes > 0) {
    body += line_at(y(static_cast<double>(budget_bytes)), kMargin + 160, "#c00",
                    "budget " + format_bytes(budget_bytes));
  }
  body += "</svg>\n";
  return page("Memory of " + problem.name, body);
}

std::string frontier_page(const std::string& title, const std::vector<FrontierPoint>& points) {
  double most_bytes = 1, most_overhead = 0.01;
  for (const FrontierPoint& point : points) {
    most_bytes = std::max(most_bytes, static_cast<double>(point.budget_bytes));
    if (point.is_possible) most_overhead = std::max(most_overhead, point.overhead);
  }
  const auto x = [&](double bytes) {
    return kMargin + bytes / most_bytes * (kWidth - kMargin - 20);
  };
  const auto y = [&](double overhead) {
    return kHeight - 30 - overhead / most_overhead * (kHeight - 60);
  };
  std::string line, marks, rows;
  for (const FrontierPoint& point : points) {
    const auto budget = static_cast<double>(point.budget_bytes);
    rows += fmt::format("<tr><td>{}</td>", format_bytes(point.budget_bytes));
    if (!point.is_possible) {
      rows += "<td>none found</td><td></td></tr>\n";
      continue;
    }
    rows += fmt::format("<td>{}</td><td>{:.3f} %</td></tr>\n", format_bytes(point.arena_bytes),
                        100 * point.overhead);
    line += fmt::format("{:.2f},{:.2f} ", x(budget), y(point.overhead));
    marks += fmt::format(
        "<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"4\" fill=\"#06c\"><title>{}: {:.3f} "
        "%</title></circle>\n",
        x(budget), y(point.overhead), format_bytes(point.budget_bytes), 100 * point.overhead);
  }
  const std::string body = fmt::format(
      "<svg viewBox=\"0 0 {0} {1}\" width=\"100%\" role=\"img\">\n"
      "<line x1=\"{2}\" x2=\"{3}\" y1=\"{4}\" y2=\"{4}\" stroke=\"#888\"/><line x1=\"{2}\" "
      "x2=\"{2}\" y1=\"20\" "
      "y2=\"{4}\" stroke=\"#888\"/>\n<text x=\"{5}\" y=\"{6}\">budget, to {7}</text><text "
      "x=\"{2}\" "
      "y=\"14\">extra time, to {8:.1f} %</text>\n<polyline points=\"{9}\" fill=\"none\" "
      "stroke=\"#06c\" "
      "stroke-width=\"2\"/>\n{10}</svg>\n<table><tr><th>budget</th><th>arena</th><th>extra "
      "time</th></tr>\n{11}</table>\n",
      kWidth, kHeight, kMargin, kWidth - 10, kHeight - 30, kWidth - 200, kHeight - 8,
      format_bytes(static_cast<std::uint64_t>(most_bytes)), 100 * most_overhead, line, marks, rows);
  return page(title, body);
}

}  // namespace tenon::memory
