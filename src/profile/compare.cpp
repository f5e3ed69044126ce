#include "base/error.h"
#include "base/text.h"
#include "profile/summary.h"
#include "profile/tables.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace tenon::profile {
namespace {

std::string us(double seconds) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f", seconds * 1e6);
  return text;
}
std::string signed_us(double seconds) { return (seconds > 0 ? "+" : "") + us(seconds); }
std::string ratio(double before, double after) {
  if (before <= 0) return after > 0 ? "new" : "-";
  if (after <= 0) return "gone";
  char text[64];
  std::snprintf(text, sizeof text, "%.3f", after / before);
  return text;
}

struct StepPair {
  std::string key, what;
  double before = 0, after = 0;
  double change() const { return after - before; }
};

Page::Section section_of(std::string heading, std::vector<StepPair> pairs, std::size_t top,
                         const std::string& key_title, const std::string& what_title) {
  std::stable_sort(pairs.begin(), pairs.end(), [](const StepPair& a, const StepPair& b) {
    return std::fabs(a.change()) > std::fabs(b.change());
  });
  Page::Section section;
  section.heading = std::move(heading);
  section.columns = {key_title,    ">before us",      ">after us",
                     ">change us", ">after / before", what_title};
  for (const StepPair& pair : pairs) {
    if (section.rows.size() == top) break;
    section.rows.push_back({pair.key, us(pair.before), us(pair.after), signed_us(pair.change()),
                            ratio(pair.before, pair.after), pair.what});
  }
  return section;
}

// Steps by value in execution order, with display names: "conv y", "conv y #2".
struct NamedStep {
  std::pair<std::string, int> key;
  std::string name;
  const Profile::Step* step;
};
std::vector<NamedStep> named_steps(const Profile& profile) {
  std::map<std::string, int> seen;
  std::vector<NamedStep> list;
  for (const Profile::Step& step : profile.steps) {
    const int number = ++seen[step.value];
    list.push_back(
        {{step.value, number}, number == 1 ? step.name : concat(step.name, " #", number), &step});
  }
  return list;
}

std::vector<StepPair> step_pairs(const Profile& before, const Profile& after) {
  std::vector<StepPair> pairs;
  std::map<std::pair<std::string, int>, std::size_t> known;
  for (const auto& [key, name, step] : named_steps(before)) {
    known[key] = pairs.size();
    pairs.push_back({name, concat(step->candidate, " -> (none)"), typical_seconds(*step), 0});
  }
  for (const auto& [key, name, step] : named_steps(after)) {
    const auto [found, is_new] = known.try_emplace(key, pairs.size());
    if (is_new) {
      pairs.push_back({name, concat("(none) -> ", step->candidate), 0, typical_seconds(*step)});
      continue;
    }
    StepPair& pair = pairs[found->second];
    pair.after = typical_seconds(*step);
    const std::string was = pair.what.substr(0, pair.what.rfind(" -> "));
    pair.what = was == step->candidate ? was : concat(was, " -> ", step->candidate);
  }
  return pairs;
}

std::vector<StepPair> group_pairs(const Profile& before, const Profile& after, GroupBy by) {
  std::vector<StepPair> pairs;
  std::map<std::string, std::size_t> known;
  std::map<std::string, std::size_t> counts;
  for (const ProfileGroup& group : grouped(before, by)) {
    known[group.key] = pairs.size();
    counts[group.key] = group.steps;
    pairs.push_back({group.key, concat(group.steps, " -> 0 steps"), group.seconds, 0});
  }
  for (const ProfileGroup& group : grouped(after, by)) {
    const auto [found, is_new] = known.try_emplace(group.key, pairs.size());
    if (is_new) pairs.push_back({group.key, "", 0, 0});
    StepPair& pair = pairs[found->second];
    pair.after = group.seconds;
    const std::size_t was = counts[group.key];
    pair.what =
        was == group.steps ? concat(was, " steps") : concat(was, " -> ", group.steps, " steps");
  }
  return pairs;
}

}  // namespace

Page compare_profiles(const Profile& before, const Profile& after, std::size_t top) {
  const ProfileGroup was = total_of(before), is = total_of(after);
  Page page;
  page.title = concat("From ", before.name, " to ", after.name);
  std::vector<StepPair> totals = {
      {"all steps", concat(before.steps.size(), " -> ", after.steps.size(), " steps"), was.seconds,
       is.seconds}};
  if (before.runs > 0 && after.runs > 0)
    totals.push_back({"a run, median", "", before.run_seconds.median, after.run_seconds.median});
  page.sections.push_back(section_of("In total", std::move(totals), top, "what", "steps"));
  page.sections.back().rows.push_back(
      {"arena bytes", std::to_string(before.arena_bytes), std::to_string(after.arena_bytes),
       std::to_string(static_cast<std::int64_t>(after.arena_bytes) -
                      static_cast<std::int64_t>(before.arena_bytes)),
       ratio(static_cast<double>(before.arena_bytes), static_cast<double>(after.arena_bytes)), ""});
  page.sections.push_back(
      section_of("By operator", group_pairs(before, after, GroupBy::Op), top, "op", "steps"));
  page.sections.push_back(section_of("By node", step_pairs(before, after), top, "step", "kernel"));
  return page;
}

}  // namespace tenon::profile
