#include "app/targets.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/table.h"
#include "driver/compile.h"

#include <nlohmann/json.hpp>

namespace tenon::cli {

namespace {

struct PassesCommandOptions {
  std::string cpu = "native", target, precision;
};

int passes(const PassesCommandOptions& options, OutputFormat format) {
  using Json = nlohmann::ordered_json;
  driver::CompileRequest request;
  request.target = app::target_of(options.target, options.cpu, options.precision);
  Json json = Json::array();
  Table table({"pass", "over", "reason for its position"});
  for (const driver::ListedPass& pass : driver::list_passes(request)) {
    const char* over = pass.is_over_nests ? "nests" : "graph";
    table.add({pass.name, over, pass.reason});
    json.push_back({{"pass", pass.name}, {"over", over}, {"reason", pass.reason}});
  }
  if (format == OutputFormat::Json) {
    out() << json.dump(2) << "\n";
  } else {
    table.print(out());
  }
  return 0;
}

}  // namespace

void add_passes(Commands& commands) {
  const auto [app, options] = commands.add<PassesCommandOptions>(
      "passes", "List the passes of a compilation in order", passes);
  app.add_option("--cpu", options.cpu, "native, x86-64-v3 or x86-64-v4");
  app.add_option("--target", options.target, "cpu (default) or cuda[:sm_90a]");
  add_precision(app, options.precision);
}

}  // namespace tenon::cli
