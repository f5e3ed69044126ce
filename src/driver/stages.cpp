#include "driver/stages.h"

#include "base/error.h"
#include "base/text.h"
#include "codegen/task_writer.h"
#include "expr/node_label.h"
#include "ir/text.h"
#include "models/extract_node.h"
#include "testing/verify/nest_check.h"
#include "testing/verify/reduce.h"
#include "testing/verify/trial_inputs.h"

#include <algorithm>

namespace tenon::driver {
namespace {

// Nests with the names that reports give them.
std::string named_text(const nests::NestWork& work) {
  std::string text;
  for (const nests::NestSequence::NestCall& part : work.sequence.parts) {
    nests::LoopNest nest = part.nest;
    nest.name = work.name + codegen::part_label(part.nest.name);
    text += to_string(nest) + "\n";
  }
  return text;
}

}  // namespace

std::string_view suffix_of(StageText::Kind kind) {
  static constexpr std::string_view kSuffixes[] = {".tenon", ".nest", ".tasks", ".plan",
                                                   ".program"};
  return kSuffixes[static_cast<std::size_t>(kind)];
}

NestPassError::NestPassError(const nests::NestPassRun& run, const std::string& difference)
    : Error(concat("pass '", run.pass.name, "' changes a result"), ErrorKind::ComparisonFailed),
      pass_(run.pass.name),
      node_(run.before.name) {
  at("node '", node_, "'");
  got(difference);
  hint("the nests before it:\n", to_string(run.before), "\nafter it:\n", to_string(run.after));
}

NestObserver::NestObserver(std::span<const nests::NestPassInfo> list, const PassServices& services)
    : list_(list), services_(services), seen_(list.size()) {
  for (std::size_t k = 0; k < list.size(); ++k) seen_[k].report.pass = list[k].name;
}

nests::NestPassOptions NestObserver::options() {
  nests::NestPassOptions options;
  options.without = services_.without;
  if (services_.verify_each || services_.reports_nests || services_.on_stage)
    options.on_pass = [this](const nests::NestPassRun& run) { see(run); };
  return options;
}

void NestObserver::see(const nests::NestPassRun& run) {
  if (services_.verify_each) {
    const testing::NestCheck check = testing::compare_nests(run.before, run.after);
    if (!check.difference.empty()) throw NestPassError(run, check.difference);
  }
  const auto place = std::ranges::find(list_, run.pass.name, &nests::NestPassInfo::name);
  TENON_ASSERT(place != list_.end(), "the target's list has each of its passes");
  Seen& seen = seen_[static_cast<std::size_t>(place - list_.begin())];
  ++seen.runs;
  seen.report.elapsed_ms += run.elapsed_ms;
  seen.report.nodes_before += run.before.sequence.parts.size();
  seen.report.nodes_after += run.after.sequence.parts.size();
  const std::string text = to_string(run.after);
  if (to_string(run.before) != text) ++seen.changes;
  if (services_.on_stage) seen.text += named_text(run.after);
}

std::vector<PassReport> NestObserver::reports() const {
  std::vector<PassReport> reports;
  for (const Seen& seen : seen_) {
    if (seen.runs == 0) continue;
    reports.push_back(seen.report);
    reports.back().change = concat("nests of ", seen.changes, " of ", seen.runs, " nodes");
  }
  return reports;
}

void NestObserver::emit() const {
  if (!services_.on_stage) return;
  for (const Seen& seen : seen_) {
    if (seen.runs > 0) services_.on_stage({StageText::Kind::Nests, seen.report.pass, seen.text});
  }
}

void require_pass(const std::string& name, const PipelineOptions& graph_passes,
                  std::span<const nests::NestPassInfo> nest_passes, std::string_view option) {
  std::vector<std::string> names =
      graph_passes.passes.empty() ? standard_passes() : graph_passes.passes;
  for (const nests::NestPassInfo& pass : nest_passes) names.emplace_back(pass.name);
  if (std::ranges::find(names, name) != names.end()) return;
  throw Error(concat(option, ": no pass of this compilation is called '", name, "'"),
              ErrorKind::Usage)
      .hint(suggest_name(name, names));
}

void serve(PipelineOptions& passes, const PassServices& services,
           std::span<const nests::NestPassInfo> nest_passes) {
  for (const std::string& name : services.without) {
    require_pass(name, passes, nest_passes, "--without");
    const bool is_nest_pass =
        std::ranges::find(nest_passes, name, &nests::NestPassInfo::name) != nest_passes.end();
    if (!is_nest_pass) passes.without.push_back(name);
  }
  passes.verify_each = services.verify_each;
}

codegen::Compiled compile_verified(const Graph& graph, const codegen::CompileOptions& options) {
  try {
    return codegen::compile(graph, options);
  } catch (const NestPassError& error) {
    NodeId node;
    for (const NodeId id : graph.nodes_in_order()) {
      if (!node && node_label(graph, id) == error.node()) node = id;
    }
    if (!node) throw;  // Of a body.
    const auto shows = [&](const testing::Reproducer& tried) {
      try {
        codegen::decide(tried.graph, options);
      } catch (const NestPassError& other) {
        return other.pass() == error.pass();
      }
      return false;
    };
    testing::Reproducer smallest;
    smallest.graph = models::extract_node(graph, node);
    smallest.inputs = testing::trial_inputs(smallest.graph, {});
    if (!shows(smallest)) throw;
    Error reduced = error;
    throw reduced.hint("the smallest graph found that shows it:\n",
                       print(reduce(std::move(smallest), shows).graph));
  }
}

}  // namespace tenon::driver
