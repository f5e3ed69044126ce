#include "cli/commands.h"
#include "cli/out.h"
#include "cli/table.h"
#include "driver/compile.h"

#include <nlohmann/json.hpp>

namespace tenon::cli {

int passes(const PassesCommandOptions& options, OutputFormat format) {
  using Json = nlohmann::ordered_json;
  driver::CompileRequest request;
  request.target = target_of(options.target, options.cpu, options.precision);
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

}  // namespace tenon::cli
