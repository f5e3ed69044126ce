#include "diagnose/diff.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/table.h"
#include "diagnose/visit.h"
#include "driver/compile.h"
#include "frontends/numpy/npy.h"
#include "host/compiled.h"
#include "models/inputs.h"
#include "models/model.h"
#include "models/rebatch.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

bool is_dump(const std::string& text) { return fs::is_directory(text); }

diagnose::ValueList read_dump(const std::string& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".npy") files.push_back(entry.path());
  }
  if (files.empty())
    throw Error("the folder has no values", ErrorKind::Usage).at(folder).expected("files NAME.npy");
  std::sort(files.begin(), files.end());
  diagnose::ValueList list{folder, {}};
  for (const fs::path& file : files)
    list.values.emplace_back(file.stem().string(), frontends::numpy::read_npy_file(file.string()));
  return list;
}

diagnose::ValueList values_of(const Graph& graph, const std::string& name, bool is_compiled,
                              const std::vector<Datum>& inputs, int threads) {
  diagnose::ValueList list{concat(name, is_compiled ? ", compiled" : ", by definition"), {}};
  const diagnose::OnValue on_value = [&](const std::string& value_name, const Tensor& value) {
    list.values.emplace_back(value_name, value);
  };
  if (is_compiled) {
    const Graph made = driver::run_pipeline(graph, {});
    CompiledModel model(codegen::compile(made, driver::cpu_options()).program, threads);
    diagnose::visit_compiled(model, made, inputs, on_value);
  } else {
    diagnose::visit_reference(graph, inputs, threads, on_value);
  }
  return list;
}

std::string number(double value) { return format_real(static_cast<float>(value)); }

}  // namespace

int diff(const DiffOptions& options, OutputFormat format) {
  const bool is_one = options.b.empty() || options.b == options.a;
  if (is_one && is_dump(options.a))
    throw Error("a folder is compared with something else", ErrorKind::Usage)
        .hint("tenon diff DIR MODEL");
  std::vector<std::string> targets =
      options.targets.empty() ? std::vector<std::string>{"reference", is_one ? "cpu" : "reference"}
                              : split(options.targets, ',');
  if (targets.size() != 2)
    throw Error("two targets are compared", ErrorKind::Usage)
        .expected("--targets=reference,cpu")
        .got(options.targets);
  const std::string names[2] = {options.a, is_one ? options.a : options.b};
  std::vector<Datum> inputs;
  std::vector<diagnose::ValueList> lists;
  Graph first;
  for (std::size_t side = 0; side < 2; ++side) {
    if (is_dump(names[side])) {
      lists.push_back(read_dump(names[side]));
      continue;
    }
    const Graph graph =
        models::reshaped(models::load_model(names[side]), models::parse_shapes(options.shapes));
    // Both run on the same inputs.
    if (inputs.empty())
      inputs = models::read_inputs(graph, options.inputs, models::parse_shapes(options.shapes));
    if (inputs.size() != graph.inputs().size()) {
      throw Error("the models take different inputs", ErrorKind::Usage)
          .at(names[side])
          .expected(inputs.size(), " inputs")
          .got(graph.inputs().size());
    }
    lists.push_back(values_of(graph, names[side], is_observed_compiled(targets[side]), inputs,
                              options.threads));
    first = graph;
  }
  const testing::Tolerance tolerance{options.relative, options.absolute};
  const diagnose::ValuesDiff found = diagnose::diff_values(lists[0], lists[1], tolerance);
  if (found.values.empty()) {
    throw Error("nothing to compare: no value has the same name on both sides", ErrorKind::Usage)
        .got("for example '", found.only_a.empty() ? "" : found.only_a.front(), "' and '",
             found.only_b.empty() ? "" : found.only_b.front(), "'");
  }
  const diagnose::ValueDifference* bad = found.first();
  // For one model in the reference and compiled: looks for the responsible pass.
  std::string pass;
  const bool asks_passes = bad != nullptr && is_one && targets[0] != targets[1];
  if (asks_passes) {
    pass = diagnose::first_differing_pass(first, inputs, driver::chosen_passes({}), tolerance,
                                          options.threads);
    if (pass.empty()) pass = "code generation";
  }
  std::vector<const diagnose::ValueDifference*> rows;
  for (const diagnose::ValueDifference& value : found.values) rows.push_back(&value);
  if (!options.all) {
    std::stable_sort(
        rows.begin(), rows.end(),
        [](const diagnose::ValueDifference* a, const diagnose::ValueDifference* b) {
          return std::make_pair(!a->comparison.is_equal, a->comparison.largest_relative) >
                 std::make_pair(!b->comparison.is_equal, b->comparison.largest_relative);
        });
    if (options.top > 0 && rows.size() > static_cast<std::size_t>(options.top))
      rows.resize(static_cast<std::size_t>(options.top));
  }
  if (format == OutputFormat::Json) {
    Json json = {{"a", lists[0].what},
                 {"b", lists[1].what},
                 {"compared", found.values.size()},
                 {"first", bad ? Json(bad->name) : Json()},
                 {"pass", pass}};
    json["values"] = Json::array();
    for (const diagnose::ValueDifference* value : rows) {
      json["values"].push_back({{"name", value->name},
                                {"type", value->type},
                                {"equal", value->comparison.is_equal},
                                {"largest_error", value->comparison.largest_error},
                                {"largest_relative", value->comparison.largest_relative},
                                {"differing", value->comparison.differing},
                                {"what", value->comparison.what}});
    }
    json["only_a"] = found.only_a;
    json["only_b"] = found.only_b;
    out() << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    out() << "A: " << lists[0].what << "\nB: " << lists[1].what << "\n"
          << found.values.size() << " values compared, " << found.only_a.size() << " only in A, "
          << found.only_b.size() << " only in B\n\n";
    Table table({"value", "type", ">largest error", ">relative", "verdict"});
    for (const diagnose::ValueDifference* value : rows) {
      table.add({value->name, value->type, number(value->comparison.largest_error),
                 number(value->comparison.largest_relative),
                 value->comparison.is_equal ? "equal" : value->comparison.what});
    }
    table.print(out());
    if (bad != nullptr) {
      out() << "\nthe first value that differs: " << bad->name << " (" << bad->type
            << "): " << bad->comparison.what << "\n";
      if (!pass.empty())
        out() << "to blame: " << (pass == "code generation" ? pass : "pass " + pass) << "\n";
    }
  }
  return bad == nullptr ? 0 : static_cast<int>(ErrorKind::ComparisonFailed);
}

}  // namespace tenon::cli
