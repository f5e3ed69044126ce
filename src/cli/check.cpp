#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "driver/model.h"
#include "ir/verify.h"

namespace tenon::cli {

int check(const CheckOptions& options, OutputFormat format) {
  std::vector<std::string> problems;
  std::size_t node_count = 0, unknown_types = 0;
  try {
    const Graph graph = load_model(options.model);
    problems = problems_of(graph);
    node_count = graph.node_count();
    for (NodeId id : graph.nodes_in_order()) {
      for (ValueId result : graph.node(id).results) {
        unknown_types += result && !graph.value(result).type.is_known();
      }
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Usage || format == OutputFormat::Table) throw;
    problems.push_back(error.what());
  }
  if (format == OutputFormat::Json) {
    std::cout << nlohmann::ordered_json{{"model", options.model},
                                        {"nodes", node_count},
                                        {"types_known_only_at_run_time", unknown_types},
                                        {"problems", problems}}
                     .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
              << "\n";
  } else {
    for (const std::string& problem : problems) std::cout << problem << "\n";
    std::cout << options.model << ": " << node_count << " nodes, " << problems.size() << " problems";
    if (unknown_types > 0) std::cout << ", " << unknown_types << " types known only at run time";
    std::cout << "\n";
  }
  return problems.empty() ? 0 : static_cast<int>(ErrorKind::InvalidModel);
}

}  // namespace tenon::cli
