#include "base/error.h"
#include "profile/profile.h"
#include "profile/report.h"
#include "profile/summary.h"
#include "profile/tables.h"
#include "profile/trace.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace tenon::profile_test {
namespace {

using Json = nlohmann::json;

Profile::Step step(std::string name, std::string op, double start, double end, double flops,
                   double bytes) {
  Profile::Step made;
  made.name = made.value = std::move(name);
  made.op = std::move(op);
  made.kernel = "k";
  made.candidate = "loops";
  made.flops = flops;
  made.bytes = bytes;
  made.device = {{0, start, start, end}};
  made.host = {{1, start, start, end}};
  made.seconds = {end - start, end - start, end - start, end - start};
  return made;
}

// x -> a -> b -> c: a is live until b, b until c; c reads both.
Profile small() {
  Profile profile;
  profile.name = "net";
  profile.origin = "tenon";
  profile.runs = 3;
  profile.run_seconds = {6e-3, 5e-3, 7e-3, 5e-3};
  profile.lanes = {{"cpu0:0", true}, {"thread 0", false}};
  profile.steps = {step("a", "conv+relu", 0, 3e-3, 6e6, 1e3),
                   step("b", "add", 3e-3, 4e-3, 1e3, 2e6), step("c", "add", 4e-3, 6e-3, 1e3, 4e6)};
  profile.steps[1].after = {0};
  profile.steps[2].after = {0, 1};
  profile.steps[0].writes = {1};
  profile.steps[1].reads = {1};
  profile.steps[1].writes = {2};
  profile.steps[2].reads = {1, 2};
  profile.steps[2].writes = {3};
  profile.buffers = {{"x", "f32", {4}, 16, Profile::BufferKind::Input, 0, 0, 0, 2},
                     {"a", "f32", {100}, 400, Profile::BufferKind::Arena, 0, 0, 0, 2},
                     {"b", "f32", {50}, 200, Profile::BufferKind::Arena, 448, 0, 1, 2},
                     {"c", "f32", {50}, 200, Profile::BufferKind::Output, 0, 0, 2, 2}};
  profile.buffers[2].making = Profile::Making::Again;
  profile.arena_bytes = 648;
  profile.symbols = {{"N", 4}};
  profile.passes = {{"fuse", "conv -1, fused +1", 0.5, 4, 3, {{"a", "joined"}}}};
  profile.ceilings = {4e9, 1e10, 4e10, 1 << 20};
  profile.steps[0].why = {{"tiles", "chosen: cheapest"}};
  profile.steps[0].computation = 5e6;
  profile.steps[0].counters = Profile::Counters{10, 20, 3};
  return profile;
}

TEST(Profile, RoundTrip) {
  const std::string text = profile::to_json(small());
  EXPECT_TRUE(profile::is_profile(text));
  EXPECT_EQ(profile::to_json(profile::parse_profile(text, "test")), text);
}

// Files are untrusted: an inconsistency is reported with its position.
TEST(Profile, RefusesInconsistentFiles) {
  const auto refusal = [](const std::string& text) {
    try {
      profile::parse_profile(text, "file.json");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::InvalidModel);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(refusal("{").find("file.json"), std::string::npos);
  EXPECT_NE(refusal("{}").find("'format'"), std::string::npos);
  Json json = Json::parse(profile::to_json(small()));
  Json other = json;
  other["version"] = 99;
  EXPECT_NE(refusal(other.dump()).find("$.version"), std::string::npos);
  other = json;
  other["steps"][1]["device"][0][0] = 7;
  EXPECT_NE(refusal(other.dump()).find("step 1 ('b'), lane"), std::string::npos);
  other = json;
  other["steps"][2]["after"] = {3};
  EXPECT_NE(refusal(other.dump()).find("step 2 ('c'), after"), std::string::npos);
  other = json;
  other["steps"][0]["reads"] = {4};
  EXPECT_NE(refusal(other.dump()).find("step 0 ('a'), buffers"), std::string::npos);
  other = json;
  other["buffers"][1]["last_step"] = 3;
  EXPECT_NE(refusal(other.dump()).find("buffer 1, last_step"), std::string::npos);
  other = json;
  other["buffers"][0]["place"] = "heap";
  EXPECT_NE(refusal(other.dump()).find("$.buffers[0].place"), std::string::npos);
  other = json;
  other["steps"][0]["flops"] = "many";
  EXPECT_NE(refusal(other.dump()).find("$.steps[0].flops"), std::string::npos);
}

TEST(Profile, SpreadSortsSamples) {
  const Profile::Spread spread = spread_of({5, 1, 4, 2, 3, 6, 7, 8, 9, 10, 11});
  EXPECT_EQ(spread.median, 6);
  EXPECT_EQ(spread.p10, 2);
  EXPECT_EQ(spread.p90, 10);
  EXPECT_EQ(spread.least, 1);
}

TEST(Profile, GroupTotals) {
  const Profile profile = small();
  const std::vector<profile::ProfileGroup> groups = profile::grouped(profile, profile::GroupBy::Op);
  ASSERT_EQ(groups.size(), 2);
  EXPECT_EQ(groups[0].key, "conv+relu");
  EXPECT_EQ(groups[1].key, "add");
  EXPECT_EQ(groups[1].steps, 2);
  EXPECT_NEAR(groups[1].seconds, 3e-3, 1e-12);
  EXPECT_NEAR(profile::total_of(profile).seconds, 6e-3, 1e-12);
}

// Compute bounds the first step; the second fits the cache, the third does not.
TEST(Profile, RooflineSeconds) {
  const Profile profile = small();
  EXPECT_DOUBLE_EQ(profile::least_seconds(profile, profile.steps[0]), 6e6 / 4e9);
  EXPECT_DOUBLE_EQ(profile::least_seconds(profile, profile.steps[2]), 4e6 / 1e10);
  Profile::Step cached = profile.steps[1];
  cached.bytes = 1e6;
  EXPECT_DOUBLE_EQ(profile::least_seconds(profile, cached), 1e6 / 4e10);
}

TEST(Profile, LiveCurvePeak) {
  const profile::LiveCurve live = profile::live_curve(small());
  EXPECT_EQ(live.bytes, (std::vector<std::uint64_t>{400, 600, 600}));
  EXPECT_EQ(live.peak_step, 1);
  EXPECT_EQ(profile::alive_at(small(), 1), (std::vector<std::uint32_t>{1, 2}));
}

// An in-place result does not add memory at its step.
TEST(Profile, LiveCurveCountsInPlaceOnce) {
  Profile profile = small();
  profile.buffers[1].last_step = 1;
  profile.buffers[2].offset = 100;
  EXPECT_EQ(profile::live_curve(profile).bytes, (std::vector<std::uint64_t>{400, 400, 200}));
  profile.buffers[2].arena = 1;
  EXPECT_EQ(profile::live_curve(profile).bytes, (std::vector<std::uint64_t>{400, 600, 200}));
}

// A lane per thread and stream, every work item with its time, arrows from producer to consumer, a
// memory track.
TEST(Profile, TraceMatchesTheProfile) {
  const Profile profile = small();
  const Json trace = Json::parse(profile::chrome_trace(profile));
  std::map<std::string, double> device_us;
  int arrows = 0, ends = 0, counters = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["pid"] == 2)
      device_us[event["name"]] += event["dur"].get<double>();
    arrows += event["ph"] == "s";
    ends += event["ph"] == "f";
    counters += event["ph"] == "C";
  }
  for (const Profile::Step& each : profile.steps)
    EXPECT_NEAR(device_us[each.name], each.last_seconds() * 1e6, 1e-9);
  EXPECT_EQ(arrows, 3);
  EXPECT_EQ(ends, 3);
  EXPECT_EQ(counters, 2);
}

TEST(Profile, CompareRanksChanges) {
  Profile after = small();
  after.steps[2].seconds.median = 9e-3;
  after.steps[2].candidate = "tiles";
  after.steps[0].seconds.median = 2e-3;
  const Page page = profile::compare_profiles(small(), after);
  const auto& rows = page.sections.back().rows;
  ASSERT_EQ(rows.size(), 3);
  EXPECT_EQ(rows[0][0].text, "c");
  EXPECT_EQ(rows[0][3].text, "+7000.0");
  EXPECT_EQ(rows[0][4].text, "4.500");
  EXPECT_EQ(rows[0][5].text, "loops -> tiles");
  EXPECT_EQ(rows[1][0].text, "a");
  EXPECT_EQ(rows[1][3].text, "-1000.0");
}

TEST(Profile, TablesAreEscaped) {
  Page page;
  page.title = "t";
  page.sections = {{"h", "", {"a|b", ">n"}, {{"x,\"y\"|", "1"}}}};
  EXPECT_EQ(profile::page_as(page, "csv"), "h,a|b,n\nh,\"x,\"\"y\"\"|\",1\n");
  EXPECT_NE(profile::page_as(page, "md").find("| x,\"y\"\\| | 1 |"), std::string::npos);
  EXPECT_EQ(Json::parse(profile::page_as(page, "json"))["sections"][0]["rows"][0]["a|b"],
            "x,\"y\"|");
  EXPECT_THROW(profile::page_as(page, "pdf"), Error);
}

// JSON tables contain numbers; shares are fractions of one, unknown values are null.
TEST(Profile, JsonTables) {
  const Json page = Json::parse(profile::page_as(profile::describe_profile(small()), "json"));
  const auto section = [&](const std::string& heading) {
    for (const Json& each : page["sections"])
      if (each["heading"] == heading) return each["rows"];
    return Json();
  };
  const Json step = section("By node").at(0);
  EXPECT_EQ(step["name"], "a");
  EXPECT_EQ(step["us"], 3000);
  EXPECT_EQ(step["share"], 0.5);
  EXPECT_EQ(step["flops"], 6e6);
  EXPECT_EQ(step["computation"], 5e6);
  EXPECT_TRUE(step["memory"].is_null());
  EXPECT_EQ(section("By operator").at(0)["op"], "conv+relu");
  bool has_arena = false, has_device_time = false;
  for (const Json& row : section("In total")) {
    has_arena = has_arena || (row["what"] == "arena, as planned" && row["value"] == 648);
    has_device_time = has_device_time || (row["what"] == "total device time s, of the last run" &&
                                          std::fabs(row["value"].get<double>() - 6e-3) < 1e-12);
  }
  EXPECT_TRUE(has_arena);
  EXPECT_TRUE(has_device_time);
  const Json change =
      Json::parse(profile::page_as(profile::compare_profiles(small(), small()), "json"));
  EXPECT_EQ(change["sections"][0]["rows"][0]["what"], "all steps");
}

// A box per step, the slowest in red; an arrow per value; names are text.
TEST(Profile, SvgColoursByTime) {
  Profile profile = small();
  profile.steps[1].name = profile.steps[1].source = "<script>\"&";
  const std::string svg = profile::svg_graph(profile);
  const auto count = [&](const std::string& word) {
    std::size_t found = 0;
    for (std::size_t at = svg.find(word); at != std::string::npos; at = svg.find(word, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count("<g "), 3);
  EXPECT_EQ(count("<path "), 3);
  EXPECT_EQ(count("#ec5444"), 1);  // the longest
  EXPECT_EQ(count("<script>"), 0);
  EXPECT_EQ(count("&lt;script&gt;&quot;&amp;"), 2);
}

TEST(Profile, DotQuotesNames) {
  Profile profile = small();
  profile.steps[0].name = "a\"]; evil [";
  const std::string dot = profile::dot_graph(profile);
  EXPECT_NE(dot.find("s0 [label=\"a\\\"]; evil [\\n"), std::string::npos);
  EXPECT_NE(dot.find("s0 -> s2;"), std::string::npos);
}

// Names of nodes are escaped: they cannot end a script or begin an element.
TEST(Profile, ReportEscapesNames) {
  Profile profile = small();
  profile.name = profile.steps[0].name = "</script><script>pwned()</script><!--{{data}}";
  const std::string page = profile::html_report({profile});
  EXPECT_EQ(page.find("pwned()</script>"), std::string::npos);
  EXPECT_EQ(page.find("<script>pwned"), std::string::npos);
  EXPECT_EQ(page.find("http://") == std::string::npos ||
                page.find("http://www.w3.org/2000/svg") != std::string::npos,
            true);
  EXPECT_EQ(page.find("src="), std::string::npos);  // self-contained page
}

}  // namespace
}  // namespace tenon::profile_test
