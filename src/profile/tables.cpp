#include "profile/tables.h"

#include "base/error.h"
#include "base/text.h"
#include "profile/summary.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace tenon::profile {
namespace {

constexpr std::size_t kAliveCount = 8;

std::string digits(double value, int count) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", count, value);
  return text;
}
// Truncates: groups with many members have very long lists of shapes.
std::string shortened(const std::string& text) {
  constexpr std::size_t kMost = 200;
  if (text.size() <= kMost) return text;
  std::size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "…";
}
std::string us(double seconds) { return digits(seconds * 1e6, seconds < 1e-4 ? 2 : 1); }
std::string ms(double seconds) { return digits(seconds * 1e3, 4); }
Page::Cell percent(double part, double whole) {
  if (whole <= 0) return "-";
  return {digits(100 * part / whole, 1) + " %", part / whole};
}
Page::Cell bytes(std::uint64_t count) { return {format_bytes(count), static_cast<double>(count)}; }
Page::Cell operations(double count) { return {format_count(count), count}; }
// Shows "-" if MegEngine defines no count.
Page::Cell operations(const std::optional<double>& count) {
  return count ? operations(*count) : Page::Cell("-");
}
std::string rate(double amount, double seconds) {
  return seconds > 0 && amount > 0 ? digits(amount / seconds / 1e9, 2) : "-";
}

// Follows MegEngine's analyser: a step on several lanes counts with its longest.
Page::Cell total_seconds(const Profile& profile, std::vector<Profile::Span> Profile::Step::*spans) {
  double total = 0;
  for (const Profile::Step& step : profile.steps) {
    std::map<std::uint32_t, double> by_lane;
    for (const Profile::Span& span : step.*spans) by_lane[span.lane] += span.end - span.start;
    double longest = 0;
    for (const auto& [lane, seconds] : by_lane) longest = std::max(longest, seconds);
    total += longest;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", total);
  return {text, total};
}

Page::Section about(const Profile& profile) {
  const ProfileGroup total = total_of(profile);
  const LiveCurve live = live_curve(profile);
  Page::Section section;
  section.heading = "In total";
  section.columns = {"what", ">value"};
  const auto row = [&](std::string what, Page::Cell value) {
    section.rows.push_back({std::move(what), std::move(value)});
  };
  if (!profile.device.empty()) row("ran on", profile.device);
  if (!profile.target.empty()) row("compiled for", profile.target);
  row("threads", std::to_string(profile.thread_count));
  if (profile.runs > 0) {
    row("runs, after a warm-up", concat(profile.runs, ", ", profile.warm_up_runs));
    row(profile.runs > 1 ? "a run, median ms" : "the run, ms", ms(profile.run_seconds.median));
    if (profile.runs > 1)
      row("a run, p10 to p90 ms",
          concat(ms(profile.run_seconds.p10), " to ", ms(profile.run_seconds.p90)));
    if (profile.first_run_seconds > 0) row("the first run ms", ms(profile.first_run_seconds));
  }
  for (const Profile::Symbol& symbol : profile.symbols)
    row(concat("symbol ", symbol.name), std::to_string(symbol.value));
  row("steps", std::to_string(profile.steps.size()));
  row("all steps ms", ms(total.seconds));
  row("all steps ms, of the last run", ms(total.last_seconds));
  row("total device time s, of the last run", total_seconds(profile, &Profile::Step::device));
  row("total host time s, of the last run", total_seconds(profile, &Profile::Step::host));
  row("operations", operations(total.flops));
  row("bytes moved", bytes(static_cast<std::uint64_t>(total.bytes)));
  row("computation, as MegEngine counts", operations(total.computation));
  row("memory, as MegEngine counts", bytes(static_cast<std::uint64_t>(total.memory)));
  row("GFLOP/s", rate(total.flops, total.seconds));
  row("GB/s", rate(total.bytes, total.seconds));
  if (profile.ceilings.flops_per_s > 0) {
    row("the machine's GFLOP/s", digits(profile.ceilings.flops_per_s / 1e9, 1));
    row("the machine's GB/s, from memory", digits(profile.ceilings.bytes_per_s / 1e9, 1));
    if (profile.ceilings.cache_bytes_per_s > 0)
      row("the machine's GB/s, from caches", digits(profile.ceilings.cache_bytes_per_s / 1e9, 1));
    row("of the roofline", percent(total.least_seconds, total.seconds));
  }
  row("arena, as planned", bytes(profile.arena_bytes));
  if (profile.touched_bytes > 0) row("arena, touched by a run", bytes(profile.touched_bytes));
  row("arena, alive at its peak", bytes(live.peak_bytes()));
  row("scratch", bytes(profile.scratch_bytes));
  row("constants", bytes(profile.constant_bytes));
  if (profile.budget_bytes > 0) row("budget", bytes(profile.budget_bytes));
  section.text = join(profile.notes, "\n");
  return section;
}

Page::Section groups(const Profile& profile, GroupBy by, const std::string& heading,
                     const std::string& key, std::size_t top) {
  const std::vector<ProfileGroup> list = grouped(profile, by);
  const ProfileGroup total = total_of(profile);
  Page::Section section;
  section.heading = heading;
  section.columns = {key,      ">steps",   ">us",   ">share",      ">cumulative",
                     ">GFLOP", ">GFLOP/s", ">GB/s", ">of roofline"};
  double sum = 0;
  for (const ProfileGroup& group : list) {
    if (section.rows.size() == top) {
      section.rows.push_back({concat("… ", list.size() - top, " more"), "", us(total.seconds - sum),
                              percent(total.seconds - sum, total.seconds), "", "", "", "", ""});
      break;
    }
    sum += group.seconds;
    section.rows.push_back(
        {shortened(group.key), std::to_string(group.steps), us(group.seconds),
         percent(group.seconds, total.seconds), percent(sum, total.seconds),
         digits(group.flops / 1e9, 4), rate(group.flops, group.seconds),
         rate(group.bytes, group.seconds),
         group.least_seconds > 0 ? percent(group.least_seconds, group.seconds) : Page::Cell("-")});
  }
  return section;
}

Page::Section steps(const Profile& profile, std::size_t top) {
  std::vector<std::size_t> order(profile.steps.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return typical_seconds(profile.steps[a]) > typical_seconds(profile.steps[b]);
  });
  const double total = total_of(profile).seconds;
  Page::Section section;
  section.heading = "By node";
  section.columns = {">step",        "name",   "kernel",   ">us",   ">p10",         ">p90",
                     ">last",        ">share", ">GFLOP/s", ">GB/s", ">of roofline", ">flops",
                     ">computation", ">bytes", ">memory",  "shapes"};
  const bool has_counters = std::any_of(profile.steps.begin(), profile.steps.end(),
                                        [](const auto& step) { return step.counters.has_value(); });
  if (has_counters)
    section.columns.insert(section.columns.end() - 1, {">instructions a cycle", ">cache misses"});
  for (const std::size_t k : order) {
    if (section.rows.size() == top) break;
    const Profile::Step& step = profile.steps[k];
    const double seconds = typical_seconds(step), least = least_seconds(profile, step);
    std::vector<Page::Cell> row = {std::to_string(k),
                                   step.name,
                                   step.candidate,
                                   us(seconds),
                                   us(step.seconds.p10),
                                   us(step.seconds.p90),
                                   us(step.last_seconds()),
                                   percent(seconds, total),
                                   rate(step.flops, seconds),
                                   rate(step.bytes, seconds),
                                   least > 0 ? percent(least, seconds) : Page::Cell("-"),
                                   operations(step.flops),
                                   operations(step.computation),
                                   operations(step.bytes),
                                   operations(step.memory)};
    if (has_counters) {
      const bool is_counted = step.counters && step.counters->cycles > 0;
      row.push_back(is_counted ? digits(step.counters->instructions / step.counters->cycles, 2)
                               : "-");
      row.push_back(is_counted ? format_count(step.counters->cache_misses) : "-");
    }
    row.push_back(shortened(shapes_text(profile, step)));
    section.rows.push_back(std::move(row));
  }
  return section;
}

Page::Section memory_section(const Profile& profile) {
  const LiveCurve live = live_curve(profile);
  Page::Section section;
  if (live.peak_bytes() == 0) return section;
  section.heading = "Alive at the peak";
  section.text = concat("Step ", live.peak_step, ", '", profile.steps[live.peak_step].name,
                        "': ", format_bytes(live.peak_bytes()),
                        ", results that take the place of operands counted once with them");
  section.columns = {"buffer", "type", ">bytes", ">offset", ">made at step", ">last read at step"};
  const std::vector<std::uint32_t> alive = alive_at(profile, live.peak_step);
  for (const std::uint32_t id : alive) {
    if (section.rows.size() == kAliveCount) {
      section.rows.push_back({concat("… ", alive.size() - kAliveCount, " more")});
      section.rows.back().resize(section.columns.size(), Page::Cell(""));
      break;
    }
    const Profile::Buffer& buffer = profile.buffers[id];
    section.rows.push_back({buffer.name, type_text(buffer), std::to_string(buffer.bytes),
                            std::to_string(buffer.offset), std::to_string(buffer.first_step),
                            std::to_string(buffer.last_step)});
  }
  return section;
}

Page::Section passes(const Profile& profile) {
  Page::Section section;
  if (profile.passes.empty()) return section;
  section.heading = "What passes changed";
  section.columns = {"pass", ">ms", ">nodes before", ">after", "change"};
  for (const Profile::PassChange& pass : profile.passes) {
    section.rows.push_back({pass.pass, digits(pass.milliseconds, 2),
                            std::to_string(pass.nodes_before), std::to_string(pass.nodes_after),
                            pass.change});
  }
  return section;
}

}  // namespace

Page describe_profile(const Profile& profile, std::size_t top) {
  Page page;
  page.title = concat("Profile of ", profile.name.empty() ? "a network" : profile.name);
  page.sections = {
      about(profile),
      groups(profile, GroupBy::Op, "By operator", "op", top),
      groups(profile, GroupBy::OpAndShapes, "By operator and shapes", "op and shapes", top),
      groups(profile, GroupBy::Kernel, "By kernel", "op and kernel", top),
      steps(profile, top),
      memory_section(profile),
      passes(profile)};
  std::erase_if(page.sections,
                [](const Page::Section& section) { return section.heading.empty(); });
  return page;
}

namespace {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}
std::string md_field(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|' || c == '\\') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}
std::string json_text(const std::string& text) {
  std::string escaped = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      escaped += '\\';
      escaped += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      escaped += code;
    } else {
      escaped += c;
    }
  }
  return escaped + "\"";
}
std::string title_of(const std::string& column) {
  return column.starts_with('>') ? column.substr(1) : column;
}

// Numeric columns contain full-precision numbers; shares are fractions.
std::string json_value(const std::string& column, const Page::Cell& cell) {
  if (cell.number && std::isfinite(*cell.number)) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", *cell.number);
    return text;
  }
  if (!column.starts_with('>')) return json_text(cell.text);
  if (cell.text == "-" || cell.text.empty()) return "null";
  const std::string_view digits(cell.text);
  return parse_real(digits.substr(digits.starts_with('+') ? 1 : 0))
             ? std::string(digits.substr(digits.starts_with('+') ? 1 : 0))
             : json_text(cell.text);
}

std::string as_csv(const Page& page) {
  std::string text;
  for (const Page::Section& section : page.sections) {
    const auto line = [&](const std::vector<std::string>& fields) {
      text += csv_field(section.heading);
      for (const std::string& field : fields) text += "," + csv_field(field);
      text += "\n";
    };
    std::vector<std::string> titles;
    for (const std::string& column : section.columns) titles.push_back(title_of(column));
    line(titles);
    for (const auto& row : section.rows) {
      std::vector<std::string> texts;
      for (const Page::Cell& cell : row) texts.push_back(cell.text);
      line(texts);
    }
  }
  return text;
}

std::string as_markdown(const Page& page) {
  std::string text = concat("# ", page.title, "\n");
  for (const Page::Section& section : page.sections) {
    text += concat("\n## ", section.heading, "\n\n");
    if (!section.text.empty()) text += section.text + "\n\n";
    std::string rule = "|";
    text += "|";
    for (const std::string& column : section.columns) {
      text += concat(" ", md_field(title_of(column)), " |");
      rule += column.starts_with('>') ? "---:|" : "---|";
    }
    text += "\n" + rule + "\n";
    for (const auto& row : section.rows) {
      text += "|";
      for (const Page::Cell& cell : row) text += concat(" ", md_field(cell.text), " |");
      text += "\n";
    }
  }
  return text;
}

std::string as_json(const Page& page) {
  std::string text = concat("{\"title\": ", json_text(page.title), ", \"sections\": [");
  for (std::size_t k = 0; k < page.sections.size(); ++k) {
    const Page::Section& section = page.sections[k];
    text += concat(k > 0 ? ",\n" : "\n", "{\"heading\": ", json_text(section.heading),
                   ", \"text\": ", json_text(section.text), ", \"rows\": [");
    for (std::size_t r = 0; r < section.rows.size(); ++r) {
      text += r > 0 ? ",\n  {" : "\n  {";
      for (std::size_t c = 0; c < section.columns.size() && c < section.rows[r].size(); ++c) {
        text += concat(c > 0 ? ", " : "", json_text(title_of(section.columns[c])), ": ",
                       json_value(section.columns[c], section.rows[r][c]));
      }
      text += "}";
    }
    text += "]}";
  }
  return text + "\n]}\n";
}

}  // namespace

std::string page_as(const Page& page, const std::string& format) {
  if (format == "csv") return as_csv(page);
  if (format == "md") return as_markdown(page);
  if (format == "json") return as_json(page);
  throw Error(concat("no format of tables is called '", format, "'"), ErrorKind::Usage)
      .hint(suggest_name(format, std::vector<std::string>{"csv", "md", "json"}));
}

}  // namespace tenon::profile
