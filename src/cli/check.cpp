#include "base/error.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/show_program.h"
#include "cli/table.h"
#include "documents/root_first.h"
#include "ir/verify.h"
#include "models/model_source.h"
#include "program/totals.h"

#include <nlohmann/json.hpp>

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CheckOptions {
  std::string model;
};

// Problems of a model, from reading it to the last claim of its document.
struct CheckReport {
  std::vector<std::string> problems, warnings;
  documents::Findings findings;
  std::size_t node_count = 0, unknown_types = 0;
  bool is_program = false;

  bool is_clean() const { return problems.empty() && findings.mismatches().empty(); }
};

void add_graph(const Graph& graph, CheckReport& report) {
  report.problems = problems_of(graph);
  report.node_count = graph.node_count();
  for (NodeId id : graph.nodes_in_order()) {
    for (ValueId result : graph.node(id).results) {
      report.unknown_types += result && !graph.value(result).type.is_known();
    }
  }
}

void add_error(const Error& error, CheckReport& report) {
  report.problems.emplace_back(error.what());
  for (const Error& further : error.further()) report.problems.emplace_back(further.what());
}

// A document with failing claims may not have a graph; its claims are reported in any case.
void add_document(const documents::DocumentFormat& format, const documents::Document& document,
                  CheckReport& report) {
  report.findings = documents::check_root_first(format, document);
  try {
    add_graph(document.graph(), report);
  } catch (const Error& error) {
    add_error(error, report);
  }
}

Json to_json(const std::string& model, const CheckReport& report) {
  Json claims = Json::array(), mismatches = Json::array();
  for (const auto& kind : report.findings.kinds()) {
    claims.push_back({{"claim", kind.name}, {"holding", kind.holding}, {"total", kind.total}});
  }
  for (const auto& mismatch : report.findings.mismatches()) {
    mismatches.push_back({{"claim", mismatch.kind},
                          {"place", mismatch.place},
                          {"says", mismatch.says},
                          {"should_be", mismatch.should_be}});
  }
  return {{"model", model},
          {"nodes", report.node_count},
          {"types_known_only_at_run_time", report.unknown_types},
          {"problems", report.problems},
          {"warnings", report.warnings},
          {"claims", claims},
          {"mismatches", mismatches}};
}

void print_report(const std::string& model, const CheckReport& report) {
  for (const std::string& warning : report.warnings) out() << "warning: " << warning << "\n";
  for (const std::string& problem : report.problems) out() << problem << "\n";
  for (const auto& mismatch : report.findings.mismatches()) {
    out() << mismatch.kind << " at " << mismatch.place << "\n  says      " << mismatch.says
          << "\n  should be " << mismatch.should_be << "\n";
  }
  if (!report.findings.kinds().empty()) {
    if (!report.is_clean()) out() << "\n";
    Table table({"claim", ">holding", ">of"});
    for (const auto& kind : report.findings.kinds()) {
      table.add({kind.name, std::to_string(kind.holding), std::to_string(kind.total)});
    }
    table.print(out());
    out() << "\n";
  }
  out() << model << ": " << report.node_count << (report.is_program ? " steps, " : " nodes, ")
        << report.problems.size() + report.findings.mismatches().size() << " problems";
  if (report.unknown_types > 0) {
    out() << ", " << report.unknown_types << " types known only at run time";
  }
  out() << "\n";
}

int check(const CheckOptions& options, OutputFormat format) {
  CheckReport report;
  std::string name = options.model;
  try {
    const models::ModelSource source(options.model);
    name = source.name();
    if (const std::optional<Program> program = source.program(true)) {  // only read, not run
      report.problems = problems_of(*program);
      report.node_count = totals_of(*program).steps;
      report.is_program = true;
    } else if (const models::LoadedDocument loaded = source.document(); loaded.document) {
      add_document(*loaded.format, *loaded.document, report);
    } else {
      add_graph(source.graph(&report.warnings), report);
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Usage || format == OutputFormat::Table) throw;
    add_error(error, report);
  }
  if (format == OutputFormat::Json) {
    out() << to_json(name, report).dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    print_report(name, report);
  }
  return report.is_clean() ? 0 : static_cast<int>(ErrorKind::InvalidModel);
}

}  // namespace

void add_check(Commands& commands) {
  const auto [app, options] =
      commands.add<CheckOptions>("check", "Find every problem in a model at once", check);
  app.add_option("model", options.model, kModelHelp)->required();
}

}  // namespace tenon::cli
