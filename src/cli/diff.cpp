#include "app/diff.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/table.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<const diagnose::ValueDifference*>;

struct DiffCommandOptions : app::DiffOptions {
  int top = 30;
  bool all = false;
};

std::string number(double value) { return format_real(static_cast<float>(value)); }

// The values to show: all, or the largest differences first.
Rows rows_of(const diagnose::ValuesDiff& found, const DiffCommandOptions& options) {
  Rows rows;
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
  return rows;
}

Json to_json(const app::DiffResult& result, const Rows& rows) {
  const diagnose::ValueDifference* bad = result.values.first();
  Json json = {{"a", result.a},
               {"b", result.b},
               {"compared", result.values.values.size()},
               {"first", bad ? Json(bad->name) : Json()},
               {"pass", result.pass}};
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
  json["only_a"] = result.values.only_a;
  json["only_b"] = result.values.only_b;
  return json;
}

void print_result(const app::DiffResult& result, const Rows& rows) {
  const diagnose::ValueDifference* bad = result.values.first();
  out() << "A: " << result.a << "\nB: " << result.b << "\n"
        << result.values.values.size() << " values compared, " << result.values.only_a.size()
        << " only in A, " << result.values.only_b.size() << " only in B\n\n";
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
    if (!result.pass.empty())
      out() << "to blame: "
            << (result.pass == "code generation" ? result.pass : "pass " + result.pass) << "\n";
  }
}

int diff(const DiffCommandOptions& options, OutputFormat format) {
  const app::DiffResult result = app::diff(options);
  const Rows rows = rows_of(result.values, options);
  if (format == OutputFormat::Json) {
    out() << to_json(result, rows).dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    print_result(result, rows);
  }
  const bool is_equal = result.values.first() == nullptr;
  return is_equal ? 0 : static_cast<int>(ErrorKind::ComparisonFailed);
}

}  // namespace

void add_diff(Commands& commands) {
  const auto [app, options] = commands.add<DiffCommandOptions>(
      "diff", "Compare intermediate values of two models, two targets or two dumps", diff);
  app.add_option("a", options.a, "a model, or a folder of .npy files")->required();
  app.add_option("b", options.b, "the same (default: the same model; reference against compiled)");
  app.add_option(
      "--targets", options.targets,
      "A,B: reference or cpu for each (default: reference,cpu for one model, else reference)");
  app.add_option("--input", options.inputs, "as for run");
  add_shapes(app, options.shapes);
  app.add_option("--atol", options.absolute, "absolute tolerance (default: 1e-5)");
  app.add_option("--rtol", options.relative, "relative tolerance (default: 1e-3)");
  add_threads(app, options.threads);
  app.add_option("--top", options.top, "rows of the table (default: 30)")
      ->check(whole_number(1, kMostRuns));
  app.add_flag("--all", options.all, "list every value, not only the largest differences");
}

}  // namespace tenon::cli
