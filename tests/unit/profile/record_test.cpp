#include "base/error.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "models/model.h"
#include "ops/definition/registry.h"
#include "profile/load.h"
#include "profile/record.h"
#include "profile/summary.h"
#include "profile/trace.h"
#include "unit/needs_documents.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace tenon::profile_test {
namespace {

using Json = nlohmann::json;

constexpr const char* kNet = R"(graph net (x: f32[N, 3, 12, 12]) {
  w = constant f32[8, 3, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.2)
  v = constant f32[8, 8, 3, 3] normal(seed = 2, mean = 0.0, deviation = 0.2)
  m = constant f32[8, 10] normal(seed = 3, mean = 0.0, deviation = 0.2)
  a = conv(x, w) {pads = [1, 1, 1, 1]}
  b = relu(a)
  c = conv(b, v) {pads = [1, 1, 1, 1]}
  d = add(c, b)
  e = max_pool(d) {kernel_shape = [2, 2], strides = [2, 2]}
  f = reduce_mean(e) {axes = [2, 3], keep_axes = false}
  g = matmul(f, m)
  y = softmax(g) {axis = -1}
  return y
}
)";

struct Recorded {
  driver::CompileRecord compiled;
  Profile profile;
};

Recorded record(const std::string& text, const std::map<std::string, Shape>& shapes,
                int threads = 2) {
  Recorded made;
  driver::PipelineOptions pipeline;
  pipeline.pass_options.remarks = &made.compiled.remarks;
  pipeline.on_pass = [&](const driver::PassReport& report, const Graph&) {
    made.compiled.passes.push_back(report);
  };
  made.compiled.graph = driver::run_pipeline(parse_graph(text, all_ops()), pipeline);
  codegen::CompileOptions options = driver::cpu_options();
  options.keeps_record = true;
  static_cast<codegen::Compiled&>(made.compiled) = codegen::compile(made.compiled.graph, options);
  CompiledModel model(made.compiled.program, threads);
  profile::RecordOptions settings;
  settings.duration_s = 0;
  settings.least_runs = 5;
  settings.with_ceilings = false;
  const std::vector<Datum> inputs = models::random_inputs(input_ports(model.program()), 1, shapes);
  made.profile = profile::record_profile(model, inputs, &made.compiled, settings);
  return made;
}

const Recorded& net() {
  static const Recorded recorded = record(kNet, {{"x", {2, 3, 12, 12}}});
  return recorded;
}

std::map<std::string, double> step_seconds(const Profile& profile) {
  std::map<std::string, double> seconds;
  for (const Profile::Step& step : profile.steps)
    seconds[step.value + (step.kind == Profile::Kind::Copy ? " copy" : "")] += step.last_seconds();
  return seconds;
}

// Steps do not overlap: their times add up to the run's, except for the time around it.
TEST(RecordProfile, StepsAddUpToTheRun) {
  const Profile& profile = net().profile;
  ASSERT_FALSE(profile.steps.empty());
  EXPECT_EQ(profile.runs, 5);
  double sum = 0, last_end = -1;
  for (const Profile::Step& step : profile.steps) {
    ASSERT_EQ(step.device.size(), 1);
    const Profile::Span& span = step.device.front();
    EXPECT_LE(span.start, span.kern);
    EXPECT_LT(span.kern, span.end);
    EXPECT_GE(span.start, last_end);
    last_end = span.end - 1e-12;
    EXPECT_FALSE(step.host.empty()) << step.name;
    for (const Profile::Span& piece : step.host) {
      EXPECT_GE(piece.kern, span.start);
      EXPECT_LE(piece.end, span.end + 1e-12);
    }
    EXPECT_GT(step.seconds.median, 0);
    EXPECT_LE(step.seconds.p10, step.seconds.p90);
    if (step.kind == Profile::Kind::Kernel) sum += step.last_seconds();
  }
  EXPECT_LE(sum, profile.last_run_seconds);
  EXPECT_EQ(profile.steps.front().kind, Profile::Kind::Copy);
  EXPECT_EQ(profile.steps.back().kind, Profile::Kind::Copy);
}

TEST(RecordProfile, RecordsOperatorsKernelsAndReasons) {
  const Profile& profile = net().profile;
  double flops = 0;
  for (const Profile::Step& step : profile.steps) {
    flops += step.flops;
    if (step.kind != Profile::Kind::Kernel) continue;
    EXPECT_FALSE(step.op.empty());
    EXPECT_FALSE(step.candidate.empty());
    ASSERT_FALSE(step.why.empty()) << step.name;
    EXPECT_NE(step.why.front().text.find("chosen"), std::string::npos);
    EXPECT_FALSE(step.writes.empty()) << step.name;
  }
  // Two convolutions of 2 images, by definition: 2 operations a weight and result.
  const double convolutions = 2.0 * 2 * 8 * 12 * 12 * (27 + 72);
  EXPECT_GT(flops, convolutions);
  EXPECT_LT(flops, 1.2 * convolutions);
  EXPECT_EQ(profile.symbols.size(), 1);
  EXPECT_EQ(profile.symbols.front().value, 2);
  EXPECT_EQ(profile.passes.size(), driver::standard_passes().size());
}

// Buffers of the plan with offsets and lifetimes; a run writes at most the arena.
TEST(RecordProfile, RecordsBufferOffsets) {
  const Profile& profile = net().profile;
  std::uint64_t end = 0;
  std::size_t count = 0;
  for (const Profile::Buffer& a : profile.buffers) {
    if (a.place != Profile::BufferKind::Arena) continue;
    ++count;
    end = std::max(end, a.offset + a.bytes);
    for (const Profile::Buffer& b : profile.buffers) {
      if (&a == &b || b.place != Profile::BufferKind::Arena || a.bytes == 0 || b.bytes == 0)
        continue;
      const bool share_time = a.first_step <= b.last_step && b.first_step <= a.last_step;
      const bool share_place = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      EXPECT_FALSE(share_time && share_place) << a.name << " and " << b.name;
    }
  }
  EXPECT_GT(count, 0);
  EXPECT_LE(end, profile.arena_bytes);
  EXPECT_GT(profile.touched_bytes, 0);
  EXPECT_LE(profile.touched_bytes, profile.arena_bytes);
}

// The saved file, the trace and MegEngine's document of one run agree about every step.
TEST(RecordProfile, OutputsAgreeOnEveryStep) {
  const Profile& profile = net().profile;
  const std::map<std::string, double> expected = step_seconds(profile);
  EXPECT_EQ(step_seconds(profile::parse_profile(profile::to_json(profile), "saved")), expected);

  std::map<std::string, double> traced;
  const Json trace = Json::parse(profile::chrome_trace(profile));
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["pid"] != 2) continue;
    traced[event["args"]["value"].get<std::string>() + (event["cat"] == "copy" ? " copy" : "")] +=
        event["dur"].get<double>() * 1e-6;
  }
  ASSERT_EQ(traced.size(), expected.size());
  for (const auto& [name, seconds] : expected) EXPECT_NEAR(traced[name], seconds, 1e-9) << name;
}

std::string megengine_document(const Profile& profile, const Graph& graph) {
  return documents::find_document_format("megengine")->print_run(profile, graph);
}

TEST(MegEngineDocument, AgreesOnEveryStep) {
  NEEDS_DOCUMENTS();
  const auto& [compiled, profile] = net();
  const std::map<std::string, double> expected = step_seconds(profile);
  const Json document = Json::parse(megengine_document(profile, compiled.graph));
  std::map<std::string, double> told;
  for (const auto& [id, places] : document["profiler"]["device"].items()) {
    const Json& opr = document["graph_exec"]["operator"][id];
    const std::string type = opr["type"];
    std::string name = opr["name"];
    if (type == "Copy") name = "y copy";
    if (type == "Host2DeviceCopy") name += " copy";
    for (const auto& [place, times] : places.items())
      told[name] += times["end"].get<double>() - times["start"].get<double>();
  }
  ASSERT_EQ(told.size(), expected.size());
  for (const auto& [name, seconds] : expected) EXPECT_NEAR(told[name], seconds, 1e-9) << name;
}

std::string read_fixture(const std::string& name) {
  std::ifstream in("tests/fixtures/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Keys, types and nullability by path; members of maps keyed by numbers count as one.
using Schema = std::map<std::string, std::set<std::string>>;
void add_schema(const Json& json, const std::string& path, Schema& schema) {
  schema[path].insert(json.is_number() ? "number" : json.type_name());
  if (json.is_array()) {
    for (const Json& item : json) add_schema(item, path + "[]", schema);
  } else if (json.is_object()) {
    static const std::set<std::string> maps = {
        "$.profiler.host",     "$.profiler.device",        "$.profiler.host.*",
        "$.profiler.device.*", "$.profiler.opr_footprint", "$.graph_exec.operator",
        "$.graph_exec.var",    "$.graph_exec.mem_chunk"};
    const bool is_free = path.ends_with(".param") || path.ends_with(".waiting_spec");
    for (const auto& [key, value] : json.items()) {
      if (!is_free) add_schema(value, path + "." + (maps.contains(path) ? "*" : key), schema);
    }
  }
}

// The document has every member of MegEngine's original with the same type, and null only where the
// original permits it. Additional members, such as a layout's format, are Tenon's.
TEST(MegEngineDocument, HasTheSchemaOfTheOriginal) {
  NEEDS_DOCUMENTS();
  const auto& [compiled, profile] = net();
  Schema original, ours;
  add_schema(Json::parse(read_fixture("megengine_resnet50.profile.json")), "$", original);
  add_schema(Json::parse(megengine_document(profile, compiled.graph)), "$", ours);
  for (const auto& [path, types] : ours) {
    const bool is_own = path.ends_with(".layout.format");
    if (is_own) continue;
    ASSERT_TRUE(original.contains(path)) << path;
    for (const std::string& type : types)
      EXPECT_TRUE(original[path].contains(type)) << path << " is a " << type;
  }
  for (const auto& [path, types] : original) {
    const bool is_seeds_own = path.find(".deps[]") != std::string::npos ||
                              path.find("inferred_result[]") != std::string::npos;
    EXPECT_TRUE(ours.contains(path) || is_seeds_own) << path;
  }
}

// Requirements of MegEngine's analyser: each operator with a time has non-null bytes and
// operations, waits before its kernel, and inputs with plans; at least one operator is a copy.
TEST(MegEngineDocument, HasWhatTheAnalyserNeeds) {
  NEEDS_DOCUMENTS();
  const auto& [compiled, profile] = net();
  const Json document = Json::parse(megengine_document(profile, compiled.graph));
  const Json& vars = document["graph_exec"]["var"];
  int copies = 0;
  for (const auto& [id, opr] : document["graph_exec"]["operator"].items()) {
    EXPECT_EQ(opr["id"], id);
    for (const Json& input : opr["input"])
      EXPECT_TRUE(vars.at(input.get<std::string>())["mem_plan"]["layout"]["dtype"].is_string())
          << opr["name"];
    copies += opr["type"] == "Copy";
  }
  EXPECT_GT(copies, 0);
  for (const char* side : {"device", "host"}) {
    EXPECT_FALSE(document["profiler"][side].empty());
    for (const auto& [id, places] : document["profiler"][side].items()) {
      const Json& footprint = document["profiler"]["opr_footprint"].at(id);
      EXPECT_GT(footprint["computation"].get<double>(), 0) << id;
      EXPECT_GT(footprint["memory"].get<double>(), 0) << id;
      for (const auto& [place, times] : places.items()) {
        EXPECT_LT(times["start"], times["kern"]) << id;
        EXPECT_LT(times["kern"], times["end"]) << id;
      }
    }
  }
}

// Recomputes every claim of the document.
TEST(MegEngineDocument, PassesItsCheck) {
  NEEDS_DOCUMENTS();
  const auto& [compiled, profile] = net();
  const auto document = documents::find_document_format("megengine")
                            ->read(megengine_document(profile, compiled.graph), "made");
  std::string misses;
  for (const documents::Findings::Mismatch& finding : document->check().mismatches())
    misses += finding.place + ": " + finding.says + ", not " + finding.should_be + "\n";
  EXPECT_EQ(misses, "");
}

TEST(MegEngineProfile, SummarizesTheDocument) {
  NEEDS_DOCUMENTS();
  const Profile profile = profile::load_profile("tests/fixtures/megengine_resnet50.profile.json");
  EXPECT_EQ(profile.steps.size(), 234);
  const profile::ProfileGroup total = profile::total_of(profile);
  EXPECT_NEAR(total.seconds, 0.0224301, 5e-8);
  const std::vector<profile::ProfileGroup> types = profile::grouped(profile, profile::GroupBy::Op);
  EXPECT_EQ(types.front().key, "ConvolutionForward");
  EXPECT_NEAR(types.front().seconds / total.seconds, 0.690, 5e-4);
  EXPECT_NEAR(types.front().flops / types.front().seconds, 5.28e12, 5e9);
  EXPECT_EQ(profile::live_curve(profile).peak_bytes(), 96337920);
}

// Loops and branches: the steps of a body are reported once, and not as part of the step that runs
// the body.
TEST(RecordProfile, ProgramsWithControlFlow) {
  const Recorded recorded = record(R"(graph net (x: f32[S, 1, 4]) {
  zeros = constant f32[1, 4] splat 0
  last, ys = scan(zeros, x) {state_count = 1} body = graph step (h: f32[1, 4], part: f32[1, 4]) {
    s = add(h, part)
    next = tanh(s)
    y = neg(next)
    return next, y
  }
  places = nonzero(ys)
  doubled = add(places, places)
  return last, doubled
}
)",
                                   {{"x", {5, 1, 4}}});
  const Profile& profile = recorded.profile;
  double sum = 0;
  std::size_t in_scan = 0, operators = 0;
  for (const Profile::Step& step : profile.steps) {
    operators += step.kind == Profile::Kind::Operators;
    if (step.kind == Profile::Kind::Copy) continue;
    sum += step.last_seconds();
    if (step.kind == Profile::Kind::Kernel) in_scan = std::max(in_scan, step.device.size());
  }
  EXPECT_EQ(in_scan, 5);
  EXPECT_GE(operators, 1);
  EXPECT_LE(sum, profile.last_run_seconds);
}

}  // namespace
}  // namespace tenon::profile_test
