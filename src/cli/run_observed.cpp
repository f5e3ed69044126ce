#include "app/targets.h"
#include "base/error.h"
#include "base/pattern.h"
#include "base/text.h"
#include "cli/out.h"
#include "cli/run.h"
#include "cli/table.h"
#include "diagnose/find_fault.h"
#include "diagnose/visit.h"
#include "driver/compile.h"
#include "frontends/numpy/npy.h"
#include "models/inputs.h"
#include "models/model_source.h"
#include "models/rebatch.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

// Writes values with matching names into a folder; repeated values get distinct names: "y", "y.2".
class ValueDump {
 public:
  explicit ValueDump(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    folder_ = text.substr(0, colon);
    if (colon != std::string::npos) pattern_.emplace(text.substr(colon + 1));
    if (folder_.empty())
      throw Error("--dump-values takes a folder", ErrorKind::Usage)
          .expected("DIR or DIR:PATTERN")
          .got(text);
    std::filesystem::create_directories(folder_);
  }
  void add(const std::string& name, const Tensor& value) {
    if (pattern_ && !pattern_->matches(name)) return;
    const int times = ++times_[name];
    const std::string file =
        models::file_name_of(name) + (times > 1 ? concat(".", times) : "") + ".npy";
    frontends::numpy::write_npy_file(value, (folder_ / file).string());
    ++count_;
  }
  std::size_t count() const { return count_; }
  std::string folder() const { return folder_.string(); }

 private:
  std::filesystem::path folder_;
  std::optional<Pattern> pattern_;
  std::map<std::string, int> times_;
  std::size_t count_ = 0;
};

int dump(const app::RunOptions& options, const Graph& graph, bool is_compiled,
         const std::vector<Datum>& inputs, OutputFormat format) {
  ValueDump target(options.dump_values);
  const diagnose::OnValue on_value = [&](const std::string& name, const Tensor& value) {
    target.add(name, value);
  };
  if (is_compiled) {
    const Graph made = driver::run_pipeline(graph, {});
    CompiledModel model(codegen::compile(made, driver::cpu_options()).program, options.threads);
    diagnose::visit_compiled(model, made, inputs, on_value);
  } else {
    diagnose::visit_reference(graph, inputs, options.threads, on_value);
  }
  if (format == OutputFormat::Json) {
    out() << Json{{"model", options.model}, {"folder", target.folder()}, {"values", target.count()}}
                 .dump(2)
          << "\n";
  } else {
    out() << target.count() << " values in " << target.folder() << "\n";
  }
  return 0;
}

std::string folder_for(const app::RunOptions& options) {
  return options.check_nan.empty() || options.check_nan == "true" ? "" : options.check_nan;
}

int check(const app::RunOptions& options, const Graph& graph, bool is_compiled,
          const std::vector<Datum>& inputs, OutputFormat format) {
  if (options.check_range < 0)
    throw Error("no magnitude is negative", ErrorKind::Usage)
        .expected("--check-range=1e5")
        .got(options.check_range);
  diagnose::FaultSearch search;
  search.rule.allows_non_finite = options.check_nan.empty();
  if (options.check_range > 0) search.rule.most = options.check_range;
  search.is_compiled = is_compiled;
  search.threads = options.threads;
  if (is_compiled) search.passes = driver::chosen_passes({});
  const std::optional<diagnose::FoundFault> found = diagnose::find_fault(graph, inputs, search);
  if (!found) {
    if (format == OutputFormat::Json) {
      out() << Json{{"model", options.model}, {"found", nullptr}}.dump(2) << "\n";
    } else {
      out() << "all values pass\n";
    }
    return 0;
  }
  // Saves the node's operands for inspection.
  const std::filesystem::path folder =
      folder_for(options).empty()
          ? std::filesystem::path("check_" + models::file_name_of(found->value))
          : std::filesystem::path(folder_for(options));
  Json saved = Json::array();
  if (!found->inputs.empty()) std::filesystem::create_directories(folder);
  for (const auto& [name, value] : found->inputs) {
    if (value.bytes().data() == nullptr) continue;
    const std::string path = (folder / (models::file_name_of(name) + ".npy")).string();
    frontends::numpy::write_npy_file(value, path);
    saved.push_back(path);
  }
  if (format == OutputFormat::Json) {
    out() << Json{{"model", options.model},
                  {"found",
                   {{"value", found->value},
                    {"op", found->op},
                    {"what", found->what},
                    {"inside", found->inside},
                    {"pass", found->pass},
                    {"input", found->at_input},
                    {"saved", saved}}}}
                 .dump(2, ' ', false, Json::error_handler_t::replace)
          << "\n";
    return static_cast<int>(ErrorKind::ComparisonFailed);
  }
  Table table({"", "fault"});
  if (!found->at_input.empty()) {
    table.add({"input", found->at_input});
  } else {
    table.add({"node", concat(found->value, " (", found->op, ")")});
  }
  table.add({"value", found->what});
  if (!found->inside.empty()) table.add({"inside the group", found->inside});
  if (found->at_input.empty())
    table.add({"cause", found->pass.empty()
                            ? "the model: it occurs without passes"
                            : concat("pass ", found->pass, ": it does not occur before")});
  for (const Json& path : saved) table.add({"operand", path.get<std::string>()});
  table.print(out());
  return static_cast<int>(ErrorKind::ComparisonFailed);
}

}  // namespace

int run_observed(const app::RunOptions& options, OutputFormat format) {
  const models::ModelSource source(options.model);
  if (source.program(options.trust_program)) {
    throw Error("a program file does not say which values its kernels store", ErrorKind::Usage)
        .hint("give the model itself");
  }
  if (!options.dump_values.empty() && (!options.check_nan.empty() || options.check_range != 0)) {
    throw Error("--dump-values is a run of its own", ErrorKind::Usage)
        .hint("leave out --check-nan and --check-range");
  }
  Graph graph = models::reshaped(models::rebatched(source.graph(), options.batch),
                                 models::parse_shapes(options.shapes));
  const bool is_compiled = options.target.empty() || app::is_observed_compiled(options.target);
  const std::vector<Datum> inputs =
      models::read_inputs(graph, options.inputs, models::parse_shapes(options.shapes));
  return options.dump_values.empty() ? check(options, graph, is_compiled, inputs, format)
                                     : dump(options, graph, is_compiled, inputs, format);
}

}  // namespace tenon::cli
