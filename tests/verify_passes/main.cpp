// tenon-verify-passes [--count=N] [--seed=N] [--nodes=N] [--no-zoo] [--filter=TEXT] [--threads=N]
//
// Runs every pass over every network of the zoo (small parameters) and over random graphs, and
// compares what they compute before and after each: the standard passes one after another, every
// pass by itself.

#include "base/error.h"
#include "base/text.h"
#include "driver/model.h"
#include "driver/pipeline.h"
#include "driver/random_graph/random_graph.h"
#include "driver/zoo/zoo.h"
#include "thin.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
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
};

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
                       3, false});
    }
    for (const std::string& name : missing) {
      cases.push_back({"zoo:" + name,
                       []() -> Graph { throw Error("this network has no small size here"); }, 0,
                       false});
    }
  }
  for (std::uint64_t k = 0; k < settings.count; ++k) {
    const RandomGraphOptions options{settings.seed + k, settings.nodes};
    cases.push_back({concat("random:", options.seed, "?nodes=", options.node_count),
                     [options] { return random_graph(options); }, 4, true});
  }
  std::erase_if(
      cases, [&](const Case& one) { return one.name.find(settings.filter) == std::string::npos; });
  return cases;
}

// A pass that only some ask for may say that a graph is not for it; the standard ones may not.
bool refuses(const Pass& pass, const Graph& graph) {
  const std::vector<std::string> standard = standard_passes();
  if (std::find(standard.begin(), standard.end(), pass.name) != standard.end()) return false;
  try {
    pass.run(graph, {});
    return false;
  } catch (const Error&) {
    return true;
  }
}

// Empty, or what went wrong.
std::string failure_of(const Case& one) {
  try {
    const Graph graph = one.make();
    PipelineOptions options;
    options.verify_each = true;
    options.verify_trials = one.trial_count;
    options.thread_count = 1;
    if (one.is_random) {
      options.verify_node_runs = 2000;
      options.verify_result_bytes = 1 << 20;
    }
    run_pipeline(graph, options);
    for (const Pass& pass : all_passes()) {
      if (pass.name == standard_passes().front() || refuses(pass, graph)) continue;
      // Random weights and values leave the range of a narrow type; the graph must still be sound.
      options.verify_each = pass.accuracy != Accuracy::Narrows;
      run_passes(graph, std::span(&pass, 1), options);
    }
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

int run(const Settings& settings) {
  const std::vector<Case> cases = cases_of(settings);
  std::atomic<std::size_t> next = 0;
  std::mutex printing;
  std::map<std::size_t, std::string> failures;  // by case, so that two runs print the same
  const auto work = [&] {
    for (std::size_t k = next++; k < cases.size(); k = next++) {
      const std::string failure = failure_of(cases[k]);
      if (failure.empty()) continue;
      const std::lock_guard guard(printing);
      failures.emplace(k, failure);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned k = 0; k < settings.thread_count; ++k) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  for (const auto& [k, failure] : failures)
    std::cout << "FAILED " << cases[k].name << "\n" << failure << "\n";
  std::cout << cases.size() - failures.size() << " passed, " << failures.size() << " failed\n";
  return failures.empty() ? 0 : 1;
}

// A pass that goes wrong may ask for more than any machine has: it is refused early.
// Sanitizers need all addresses for themselves.
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
  tenon::limit_memory();
  tenon::Settings settings;
  for (int k = 1; k < argc; ++k) {
    const std::vector<std::string> parts = tenon::split(argv[k], '=');
    const std::string value =
        parts.size() > 1 ? std::string(argv[k]).substr(parts[0].size() + 1) : "";
    const auto number = tenon::parse_integer(value);
    if (parts[0] == "--no-zoo")
      settings.has_zoo = false;
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
      std::cerr << "tenon-verify-passes [--count=N] [--seed=N] [--nodes=N] [--no-zoo] "
                   "[--filter=TEXT] [--threads=N]\n";
      return 2;
    }
  }
  return tenon::run(settings);
}
