// tenon-verify-passes [--compiled] [--count=N] [--seed=N] [--nodes=N] [--no-zoo] [--filter=TEXT]
//                     [--threads=N] [--target=native|cuda:sm_90a]
//
// Runs every pass over every network of the zoo (small parameters) and over random graphs, and
// compares results before and after each: the standard passes in sequence, every pass separately.
//
// --compiled compares compiled programs with the reference instead. Graphs with an operator or
// element type that cannot be compiled are counted separately from the N compiled ones.

#include "base/error.h"
#include "base/text.h"
#include "compiled_check.h"
#include "driver/pipeline.h"
#include "driver/targets.h"
#include "models/model.h"
#include "strict.h"
#include "testing/random_graph/random_graph.h"
#include "thin.h"
#include "zoo/zoo.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace tenon {
namespace {

struct Settings {
  std::uint64_t count = 2000, seed = 1;
  int nodes = 10;
  bool has_zoo = true;
  std::string filter;
  unsigned thread_count = 2;
  bool is_compiled = false;
  TargetSpec target = {};
};

constexpr std::uint64_t kSeedsPerProgram = 8;  // at most
constexpr std::uint64_t kWideEvery = 25;       // fraction of compiled graphs with many channels

// Every network at a size that the reference runs in a moment: few pixels or tokens, thin layers.
struct Small {
  std::string spec;
  std::int64_t thinned_by;
  bool thins_inputs = false;
};
const std::vector<Small> kSmall = {
    {"resnet18?size=32,classes=10", 8},
    {"resnet18?size=32,classes=10,batch=N,layout=NHWC", 8},
    {"resnet50?size=32,classes=10", 16},
    {"alexnet?size=64", 8},
    {"alexnet?form=torch,size=64,classes=10", 16},
    {"vgg16?size=32,classes=10,batch=N", 16},
    {"mobilenet_v2?size=32,classes=10", 8},
    {"unet572?size=188", 64},
    {"unet256?size=32,width=4,batch=N", 1},
    {"squeezenet?size=32,classes=10,dtype=f16", 8},
    {"densenet121?size=32,classes=10", 8},
    {"bert_base?seq=4,pooler=1", 32},
    {"bert_base?seq=S,batch=N", 32},
    {"gpt2?seq=4", 32},
    {"gpt2?seq=2,past=P", 32, true},
    {"vit_b16?size=32,classes=10", 32},
    {"lstm?seq=4,size=8,hidden=6", 1},
    {"mlp?batch=N,size=20,hidden=16", 1},
};

struct Case {
  std::string name;
  std::function<Graph()> make;
  int trial_count;
  bool is_random;
  bool has_winograd;  // large enough for it
};

std::vector<Case> cases_of(const Settings& settings) {
  std::vector<Case> cases;
  if (settings.has_zoo) {
    std::set<std::string> missing;
    for (const zoo::Network& network : zoo::networks()) missing.insert(network.name);
    for (const Small& small : kSmall) {
      missing.erase(split(small.spec, '?').front());
      cases.push_back({"zoo:" + small.spec,
                       [small] {
                         const Graph graph = zoo::build(small.spec);
                         if (small.thinned_by == 1) return graph;
                         return testing::thinned(graph, small.thinned_by, small.thins_inputs);
                       },
                       3, false, true});
    }
    for (const std::string& name : missing) {
      cases.push_back({"zoo:" + name,
                       []() -> Graph { throw Error("this network has no small size here"); }, 0,
                       false, false});
    }
  }
  // Graphs without a program are replaced by further seeds.
  const std::uint64_t seeds = settings.count * (settings.is_compiled ? kSeedsPerProgram : 1);
  for (std::uint64_t k = 0; k < seeds; ++k) {
    testing::RandomGraphOptions options{settings.seed + k, settings.nodes, false};
    std::string name = concat("random:", options.seed, "?nodes=", options.node_count);
    if (settings.is_compiled && options.seed % kWideEvery == 0) {
      options = {options.seed, 2, true};
      name = concat("random:", options.seed, "?nodes=2,wide=1");
    }
    cases.push_back(
        {name, [options] { return testing::random_graph(options); }, 4, true, options.is_wide});
  }
  std::erase_if(
      cases, [&](const Case& one) { return one.name.find(settings.filter) == std::string::npos; });
  return cases;
}

// On random inputs a loop may not end, and a tensor be larger than any memory.
constexpr std::int64_t kMaxNodeRuns = 2000, kMaxResultBytes = 1 << 20;

// An optional pass may refuse a graph; standard passes may not.
bool refuses(const passes::Pass& pass, const Graph& graph) {
  const std::vector<std::string> standard = driver::standard_passes();
  if (std::find(standard.begin(), standard.end(), pass.name) != standard.end()) return false;
  try {
    pass.run(graph, {});
    return false;
  } catch (const Error&) {
    return true;
  }
}

// A pass that adds outputs, such as differentiation, cannot be compared.
bool adds_outputs(const passes::Pass& pass, const Graph& graph) {
  const std::vector<std::string> standard = driver::standard_passes();
  if (std::find(standard.begin(), standard.end(), pass.name) != standard.end()) return false;
  return pass.run(graph, {}).outputs().size() > graph.outputs().size();
}

struct Outcome {
  std::string failure;               // empty, or the failure
  std::vector<std::string> refused;  // reasons against compilation
};

Outcome outcome_of_passes(const Case& one) {
  const Graph graph = one.make();
  driver::PipelineOptions options;
  options.verify_each = true;
  options.verify_trials = one.trial_count;
  options.thread_count = 1;
  if (one.is_random) {
    options.verify_node_runs = kMaxNodeRuns;
    options.verify_result_bytes = kMaxResultBytes;
  }
  driver::run_pipeline(graph, options);
  for (const passes::Pass& pass : passes::all_passes()) {
    if (pass.name == driver::standard_passes().front() || refuses(pass, graph)) continue;
    // Random weights and values leave the range of a narrow type; the graph must still verify.
    options.verify_each = pass.accuracy != passes::Accuracy::Narrows && !adds_outputs(pass, graph);
    driver::run_passes(graph, std::span(&pass, 1), options);
  }
  return {};
}

Outcome outcome_of_compiled(const Case& one, const TargetSpec& target) {
  testing::PassCheckOptions options;
  options.trial_count = one.trial_count;
  options.thread_count = 1;
  if (one.is_random) {
    options.max_node_runs = kMaxNodeRuns;
    options.max_result_bytes = kMaxResultBytes;
  }
  const Graph graph = one.make();
  const testing::PassChecker checker(graph, options);
  testing::CompiledCheck check = testing::check_compiled(graph, checker, false, target);
  const bool passes = check.failure.empty() && check.refused.empty();
  if (passes && one.has_winograd) check = testing::check_compiled(graph, checker, true, target);
  return {std::move(check.failure), std::move(check.refused)};
}

// A crash of generated code ends the process: the signal handler prints this name.
thread_local const char* current_case = "";
void report_crash(int signal) {
  const char text[] = "crashed in ";
  (void)!write(STDOUT_FILENO, text, sizeof text - 1);
  (void)!write(STDOUT_FILENO, current_case, std::strlen(current_case));
  (void)!write(STDOUT_FILENO, "\n", 1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

Outcome outcome_of(const Case& one, const Settings& settings) {
  current_case = one.name.c_str();
  try {
    return settings.is_compiled ? outcome_of_compiled(one, settings.target)
                                : outcome_of_passes(one);
  } catch (const std::exception& error) {
    return {error.what(), {}};
  }
}

// Prints reasons by frequency, the most frequent first, each with its first case.
void print_refusals(const std::vector<Case>& cases, const std::vector<Outcome>& outcomes) {
  struct Reason {
    std::size_t count = 0, first = 0;
    std::string text;
  };
  std::map<std::string, Reason> reasons;
  std::size_t refused = 0;
  for (std::size_t k = 0; k < outcomes.size(); ++k) {
    refused += outcomes[k].refused.empty() ? 0 : 1;
    for (const std::string& text : outcomes[k].refused) {
      Reason& reason = reasons.try_emplace(text, Reason{0, k, text}).first->second;
      ++reason.count;
    }
  }
  std::cout << refused << " of " << outcomes.size() << " graphs were not compiled\n";
  std::vector<Reason> order;
  for (const auto& [text, reason] : reasons) order.push_back(reason);
  std::stable_sort(order.begin(), order.end(),
                   [](const Reason& a, const Reason& b) { return a.count > b.count; });
  for (const Reason& reason : order) {
    std::cout << "  " << reason.count << " nodes: " << reason.text << " ("
              << cases[reason.first].name << ")\n";
  }
}

int run(const Settings& settings) {
  const std::vector<Case> cases = cases_of(settings);
  std::atomic<std::size_t> next = 0;
  std::atomic<std::uint64_t> random_count = 0;
  std::vector<Outcome> outcomes(cases.size());
  const auto counts = [&](std::size_t k) {
    return cases[k].is_random && outcomes[k].refused.empty();
  };
  const auto work = [&] {
    while (settings.count == 0 || random_count < settings.count) {
      const std::size_t k = next++;
      if (k >= cases.size()) break;
      outcomes[k] = outcome_of(cases[k], settings);
      if (counts(k)) ++random_count;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned k = 0; k < settings.thread_count; ++k) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  // Totals in the order of a single thread, so that two runs print the same.
  std::size_t done = 0;
  for (std::uint64_t seen = 0; done < cases.size() && seen < settings.count; ++done)
    seen += counts(done);
  outcomes.resize(settings.count == 0 ? cases.size() : done);
  std::size_t failed = 0, refused = 0;
  for (std::size_t k = 0; k < outcomes.size(); ++k) {
    refused += outcomes[k].refused.empty() ? 0 : 1;
    if (outcomes[k].failure.empty()) continue;
    ++failed;
    std::cout << "FAILED " << cases[k].name << "\n" << outcomes[k].failure << "\n";
  }
  if (settings.is_compiled) print_refusals(cases, outcomes);
  std::cout << outcomes.size() - failed - refused << " passed, " << failed << " failed";
  if (settings.is_compiled) std::cout << ", " << refused << " not compiled";
  std::cout << "\n";
  return failed == 0 ? 0 : 1;
}

// A faulty pass may allocate without bound: a limit fails it early. Sanitizers need the whole
// address space.
void limit_memory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  constexpr rlim_t bytes = rlim_t{4} << 30;
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    std::signal(signal, tenon::report_crash);
  tenon::testing::be_strict();
  tenon::Settings settings;
  for (int k = 1; k < argc; ++k) {
    const std::vector<std::string> parts = tenon::split(argv[k], '=');
    const std::string value =
        parts.size() > 1 ? std::string(argv[k]).substr(parts[0].size() + 1) : "";
    const auto number = tenon::parse_integer(value);
    if (parts[0] == "--no-zoo")
      settings.has_zoo = false;
    else if (parts[0] == "--compiled")
      settings.is_compiled = true;
    else if (parts[0] == "--target")
      settings.target = tenon::driver::parse_target(value);
    else if (parts[0] == "--filter")
      settings.filter = value;
    else if (parts[0] == "--count" && number && *number >= 0)
      settings.count = static_cast<std::uint64_t>(*number);
    else if (parts[0] == "--seed" && number && *number >= 0)
      settings.seed = static_cast<std::uint64_t>(*number);
    else if (parts[0] == "--nodes" && number && *number > 0)
      settings.nodes = static_cast<int>(*number);
    else if (parts[0] == "--threads" && number && *number > 0)
      settings.thread_count = static_cast<unsigned>(*number);
    else {
      std::cerr << "tenon-verify-passes [--compiled] [--count=N] [--seed=N] [--nodes=N] [--no-zoo] "
                   "[--filter=TEXT] [--threads=N] [--target=cuda:sm_90a]\n";
      return 2;
    }
  }
  if (!settings.target.is_gpu())
    tenon::limit_memory();  // a GPU's driver takes terabytes of addresses
  return tenon::run(settings);
}
