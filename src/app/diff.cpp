#include "app/diff.h"

#include "app/targets.h"
#include "base/error.h"
#include "base/text.h"
#include "diagnose/visit.h"
#include "driver/compile.h"
#include "frontends/numpy/npy.h"
#include "host/compiled.h"
#include "models/inputs.h"
#include "models/model.h"
#include "models/rebatch.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace tenon::app {
namespace {

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

struct Sides {
  std::vector<diagnose::ValueList> lists;
  // of the last side that is a model
  Graph graph;
  std::vector<Datum> inputs;
};

Sides read_sides(const DiffOptions& options, const std::vector<std::string>& names,
                 const std::vector<std::string>& targets) {
  Sides sides;
  for (std::size_t side = 0; side < 2; ++side) {
    if (is_dump(names[side])) {
      sides.lists.push_back(read_dump(names[side]));
      continue;
    }
    const Graph graph =
        models::reshaped(models::load_model(names[side]), models::parse_shapes(options.shapes));
    // Both run on the same inputs.
    if (sides.inputs.empty()) {
      sides.inputs =
          models::read_inputs(graph, options.inputs, models::parse_shapes(options.shapes));
    }
    if (sides.inputs.size() != graph.inputs().size()) {
      throw Error("the models take different inputs", ErrorKind::Usage)
          .at(names[side])
          .expected(sides.inputs.size(), " inputs")
          .got(graph.inputs().size());
    }
    sides.lists.push_back(values_of(graph, names[side], is_observed_compiled(targets[side]),
                                    sides.inputs, options.threads));
    sides.graph = graph;
  }
  return sides;
}

}  // namespace

DiffResult diff(const DiffOptions& options) {
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
  const Sides sides = read_sides(options, {options.a, is_one ? options.a : options.b}, targets);
  const testing::Tolerance tolerance{options.relative, options.absolute};
  diagnose::ValuesDiff found = diagnose::diff_values(sides.lists[0], sides.lists[1], tolerance);
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
    pass = diagnose::first_differing_pass(sides.graph, sides.inputs, driver::chosen_passes({}),
                                          tolerance, options.threads);
    if (pass.empty()) pass = "code generation";
  }
  return {sides.lists[0].what, sides.lists[1].what, std::move(found), std::move(pass)};
}

}  // namespace tenon::app
