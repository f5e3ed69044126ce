#include "unit/cli/called.h"
#include "unit/needs_documents.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace tenon::cli::profile_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class ProfileFiles : public WithFolder {
 protected:
  std::string text(const std::string& name) const {
    std::ifstream in(file(name));
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
  }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(file(name)) << content;
  }
};

constexpr const char* kNet = "tests/fixtures/report_net.tenon";

// One run in every output format; all agree about every step.
TEST_F(ProfileFiles, WritesEveryFormat) {
  NEEDS_DOCUMENTS();
  ASSERT_EQ(call({"profile", kNet, "--iterations=3", "--no-counters", "--untuned",
                  "--save=" + file("a.json"), "--report=" + file("a.html"),
                  "--trace=" + file("a.trace.json"), "--megengine=" + file("a.profile.json"),
                  "--dot=" + file("a.dot")})
                .code,
            0);
  const Json saved = Json::parse(text("a.json")), trace = Json::parse(text("a.trace.json")),
             document = Json::parse(text("a.profile.json"));
  std::map<std::string, double> steps, traced, told;
  for (const Json& step : saved["steps"]) {
    for (const Json& span : step["device"]) {
      steps[step["kind"] == "copy" ? "copy" : step["value"].get<std::string>()] +=
          span[3].get<double>() - span[1].get<double>();
    }
  }
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["pid"] == 2)
      traced[event["cat"] == "copy" ? "copy" : event["args"]["value"].get<std::string>()] +=
          event["dur"].get<double>() * 1e-6;
  }
  for (const auto& [id, places] : document["profiler"]["device"].items()) {
    const Json& opr = document["graph_exec"]["operator"][id];
    const bool is_copy = opr["type"] == "Copy" || opr["type"] == "Host2DeviceCopy";
    for (const Json& times : places)
      told[is_copy ? "copy" : opr["name"].get<std::string>()] +=
          times["end"].get<double>() - times["start"].get<double>();
  }
  ASSERT_GT(steps.size(), 3);
  ASSERT_EQ(traced.size(), steps.size());
  ASSERT_EQ(told.size(), steps.size());
  for (const auto& [name, seconds] : steps) {
    EXPECT_NEAR(traced[name], seconds, 1e-9) << name;
    EXPECT_NEAR(told[name], seconds, 1e-9) << name;
  }
  // The page holds the same numbers: it is the saved file with a script around it.
  EXPECT_NE(text("a.html").find(saved["steps"][1]["device"][0].dump()), std::string::npos);
  EXPECT_EQ(call({"check", file("a.profile.json")}).code, 0);
  EXPECT_EQ(call({"report", file("a.json"), file("a.json"), "-o", file("two.html")}).code, 0);
  const auto [code, changes, errors] =
      call({"profile", "--compare=" + file("a.json") + "," + file("a.json"), "--format=csv"});
  EXPECT_EQ(code, 0);
  EXPECT_NE(changes.find("In total,all steps,"), std::string::npos);
}

TEST_F(ProfileFiles, ReportsMegEngineDocuments) {
  NEEDS_DOCUMENTS();
  const auto [code, page, errors] =
      call({"report", "tests/fixtures/megengine_resnet50.profile.json", "--format=csv"});
  EXPECT_EQ(code, 0);
  EXPECT_NE(page.find("In total,all steps ms,22.4301"), std::string::npos);
  EXPECT_NE(page.find("By operator,ConvolutionForward,53,15487.4,69.0 %,69.0 %,81.7427,5278.0"),
            std::string::npos);
}

TEST_F(ProfileFiles, RefusesUnsupportedOptions) {
  EXPECT_EQ(call({"profile"}).code, 2);
  EXPECT_EQ(call({"profile", kNet, "--format=pdf"}).code, 2);
  EXPECT_EQ(call({"profile", "--compare=one.json"}).code, 2);
  EXPECT_EQ(call({"report", kNet}).code, 3);
}

constexpr const char* kLogs = R"(graph net (x: f32[2, 3]) {
  shifted = abs(x)
  logs = log(shifted)
  y = reduce_sum(logs) {axes = [1], keep_axes = false}
  return y
}
)";

// A logarithm of zero: the report names the node, and its operands are saved.
TEST_F(ProfileFiles, CheckNanNamesTheNode) {
  write("logs.tenon", kLogs);
  for (const char* target : {"cpu", "reference"}) {
    const auto [code, found, errors] =
        call({"run", file("logs.tenon"), "--input=x:zeros", "--check-nan=" + file("inputs"),
              std::string("--target=") + target, "--json"});
    EXPECT_EQ(code, 1);
    const Json fault = Json::parse(found)["found"];
    EXPECT_TRUE(fault["op"] == "log" || fault["inside"] == "logs (log)") << found;
    EXPECT_EQ(fault["pass"], "");
    ASSERT_FALSE(fault["saved"].empty());
    EXPECT_TRUE(fs::exists(fault["saved"][0].get<std::string>()));
  }
  EXPECT_EQ(call({"run", file("logs.tenon"), "--input=x:random:1", "--check-nan"}).code, 0);
  EXPECT_EQ(call({"run", file("logs.tenon"), "--input=x:random:1", "--check-range=1e-3"}).code, 1);
}

TEST_F(ProfileFiles, DumpsAndDiffs) {
  write("logs.tenon", kLogs);
  write("other.tenon", std::string(kLogs).replace(std::string(kLogs).find("abs(x)"), 6, "neg(x)"));
  ASSERT_EQ(call({"run", file("logs.tenon"), "--input=x:random:7", "--target=reference",
                  "--dump-values=" + file("dump")})
                .code,
            0);
  EXPECT_TRUE(fs::exists(file("dump") + "/logs.npy"));
  ASSERT_EQ(call({"run", file("logs.tenon"), "--input=x:random:7", "--target=reference",
                  "--dump-values=" + file("some") + ":l.*"})
                .code,
            0);
  EXPECT_FALSE(fs::exists(file("some") + "/y.npy"));
  EXPECT_EQ(call({"diff", file("dump"), file("logs.tenon"), "--input=x:random:7"}).code, 0);
  EXPECT_EQ(call({"diff", file("logs.tenon"), "--input=x:random:7"}).code, 0);
  const auto [code, found, errors] =
      call({"diff", file("logs.tenon"), file("other.tenon"), "--input=x:random:7", "--json"});
  EXPECT_EQ(code, 1);
  EXPECT_EQ(Json::parse(found)["first"], "shifted");
}

}  // namespace
}  // namespace tenon::cli::profile_test
