#include "api/handles.h"
#include "app/pass_selection.h"
#include "base/error.h"
#include "base/text.h"
#include "driver/compile.h"
#include "embed/call.h"
#include "embed/options.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "models/model_source.h"
#include "models/shared_object.h"
#include "models/summary.h"
#include "ops/definition/plugins.h"
#include "program/file.h"

#include <nlohmann/json.hpp>

#include <algorithm>

using namespace tenon;       // NOLINT: C functions only
using namespace tenon::api;  // NOLINT
using tenon::embed::call;
using tenon::embed::Options;
using tenon::embed::require;
using tenon::embed::text_for_caller;

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostThreads = 4096;

tenon_model add_model(Graph graph) {
  return model_handles().add(std::make_shared<const Graph>(std::move(graph)));
}

Json to_json(const std::vector<models::GraphSummary::Port>& ports) {
  Json json = Json::array();
  for (const auto& port : ports)
    json.push_back({{"name", port.name}, {"type", to_string(port.type)}});
  return json;
}

Json to_json(const Dim& count) { return count.is_constant() ? Json(count.constant()) : Json(); }

std::string describe(const Graph& graph) {
  const models::GraphSummary summary = models::summarize(graph);
  Json json = {{"name", graph.name},
               {"inputs", to_json(summary.inputs)},
               {"outputs", to_json(summary.outputs)}};
  json["symbols"] = Json::object();
  for (const auto& [name, range] : summary.symbols) json["symbols"][name] = {range.lo, range.hi};
  json["nodes"] = summary.node_count;
  json["parameters"] = summary.parameter_count;
  json["constant_bytes"] = summary.constant_bytes;
  json["flops"] = to_json(summary.total.flops);
  json["ops"] = Json::object();
  for (const auto& count : summary.ops) json["ops"][count.op] = count.nodes;
  json["metadata"] = graph.metadata;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Graph transformed(Graph graph, Options& given) {
  app::PassSelection choice;
  choice.passes = given.texts("passes");
  choice.without = given.texts("without");
  choice.stop_after = given.text("stop_after").value_or("");
  for (const auto& [name, value] : given.settings("set"))
    choice.set.push_back(concat(name, "=", value));
  std::map<std::string, Shape> shapes;
  for (auto& [name, shape] : given.shapes("shapes")) shapes[name] = shape;
  given.finish();
  return app::transform(std::move(graph), choice, shapes);
}

driver::CompileRequest request_of(Options& given) {
  driver::CompileRequest request;
  const std::string target = given.text("target").value_or("native");
  request.target = driver::parse_target(target, given.text("precision").value_or(""));
  request.allow_winograd = given.flag("winograd").value_or(true);
  request.threads = static_cast<int>(given.integer("threads", 0, kMostThreads).value_or(0));
  request.tune_seconds = given.real("tune_seconds");
  request.is_untuned = given.flag("untuned").value_or(false);
  request.preferred = given.texts("prefer");
  request.specialised_shapes = given.texts("specialised_shapes");
  if (given.is_list("swappable_weights")) {
    request.swappable_weights = given.texts("swappable_weights");
  } else if (given.flag("swappable_weights").value_or(false)) {
    request.swappable_weights.emplace();
  }
  given.finish();
  return request;
}

}  // namespace

extern "C" {

tenon_status tenon_model_open(const char* source, tenon_model* model) {
  return call([&] {
    require(source, "source");
    require(model, "model");
    *model = add_model(models::load_model(source));
  });
}

tenon_status tenon_model_parse(const void* bytes, size_t size, tenon_model* model) {
  return call([&] {
    require(bytes, "bytes");
    require(model, "model");
    *model = add_model(
        models::ModelSource::of_bytes(std::string(static_cast<const char*>(bytes), size)).graph());
  });
}

tenon_status tenon_model_describe(tenon_model model, char** json) {
  return call([&] {
    require(json, "json");
    *json = text_for_caller(describe(*model_handles().find(model)));
  });
}

tenon_status tenon_model_save(tenon_model model, const char* format, const char* path) {
  return call([&] {
    require(format, "format");
    require(path, "path");
    models::save_model(*model_handles().find(model), format, path);
  });
}

tenon_status tenon_model_transform(tenon_model model, const char* options, tenon_model* result) {
  return call([&] {
    require(result, "result");
    Options given(options);
    *result = add_model(transformed(*model_handles().find(model), given));
  });
}

tenon_status tenon_model_compile(tenon_model model, const char* options, tenon_program* program) {
  return call([&] {
    require(program, "program");
    Options given(options);
    const driver::CompileRequest request = request_of(given);
    *program = embed::programs().add(
        embed::load(driver::compile_model(*model_handles().find(model), request).program));
  });
}

tenon_status tenon_model_free(tenon_model model) {
  return call([&] { model_handles().remove(model); });
}

tenon_status tenon_program_save(tenon_program program, const char* path, const char* options) {
  return call([&] {
    require(path, "path");
    Options given(options);
    const std::optional<std::string> constants = given.text("constants");
    given.finish();
    const auto found = embed::programs().find(program);
    if (std::string_view(path).ends_with(".so")) {
      models::write_shared_object(found->program(), path, constants.value_or(""));
    } else if (constants) {
      throw Error("only a shared object has its constants in another file", ErrorKind::Usage)
          .got(path);
    } else {
      write_program(found->program(), path);
    }
  });
}

tenon_status tenon_plugin_load(const char* path) {
  return call([&] {
    require(path, "path");
    load_plugin(path);
  });
}
}
