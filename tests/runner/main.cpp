// tenon-test [--filter=X] [--update] [--round-trip] [--compiled] PATH
//   Runs a `.test` file, or all in a folder.
// tenon-test --random-gradients=COUNT [--compiled] [--seed=N]
//   Compares gradients of random graphs with finite differences, and those of every tenth (with
//   --compiled: of every) compiled graph with the reference.

#include "base/error.h"
#include "base/text.h"
#include "compiled.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "random_gradients.h"
#include "strict.h"
#include "test_file.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>

namespace tenon::testing {
namespace {

// A case above this is listed: it is probably larger than its idea needs.
constexpr double kSlowSeconds = 2;

struct Settings {
  std::string path = "tests", filter;
  bool update = false, round_trip = false, compiled = false;
  std::uint64_t random_gradients = 0, seed = 1;
};

std::vector<std::string> test_files(const Settings& settings) {
  if (std::filesystem::is_regular_file(settings.path)) return {settings.path};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(settings.path)) {
    const std::string path = entry.path().string();
    if (entry.path().extension() == ".test" && path.find(settings.filter) != std::string::npos) {
      files.push_back(path);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Prints and parses a graph until it no longer changes; the first printing must be the last.
std::string round_trip(const std::string& text) {
  const std::string first = print(parse_graph(text, all_ops()));
  const std::string second = print(parse_graph(first, all_ops()));
  return first == second ? "" : "printed\n" + first + "and then\n" + second;
}

void rewrite(const std::string& path, const std::vector<std::pair<TestCase, Outcome>>& changed) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  for (auto it = changed.rbegin(); it != changed.rend(); ++it) {
    const auto& [test, outcome] = *it;
    lines.erase(lines.begin() + test.expected_begin, lines.begin() + test.expected_end);
    lines.insert(lines.begin() + test.expected_begin, outcome.actual.begin(), outcome.actual.end());
  }
  std::ofstream(path) << text_of(lines);
}

int run(const Settings& settings) {
  int passed = 0, failed = 0;
  const auto report = [&](const std::string& where, const std::string& comment,
                          const std::string& failure) {
    ++(failure.empty() ? passed : failed);
    if (!failure.empty())
      std::cout << "FAILED " << where << "  " << comment << "\n" << failure << "\n";
  };
  for (const std::string& path : test_files(settings)) {
    std::vector<TestCase> cases;
    try {
      cases = read_test_file(path);
    } catch (const std::exception& error) {
      report(path, "", error.what());
      continue;
    }
    std::vector<std::pair<TestCase, Outcome>> changed;
    for (const TestCase& test : cases) {
      if (settings.round_trip) {
        for (const std::string& text : graphs_in(test)) {
          try {
            report(test.where(), "round trip", round_trip(text));
          } catch (const std::exception& error) {
            report(test.where(), "round trip", error.what());
          }
        }
        continue;
      }
      if (settings.compiled) {
        const std::size_t before = compiled_count();
        const std::string failure = run_compiled_case(test);
        if (!failure.empty() || compiled_count() > before)
          report(test.where(), test.comment, failure);
        continue;
      }
      const auto begin = std::chrono::steady_clock::now();
      const Outcome outcome = run_case(test);
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
      if (elapsed.count() > kSlowSeconds) {
        std::cout << "slow: " << test.where() << " took " << elapsed.count() << " s" << std::endl;
      }
      if (!outcome.failure.empty() && settings.update && !outcome.actual.empty()) {
        changed.emplace_back(test, outcome);
      }
      report(test.where(), test.comment, outcome.failure);
    }
    if (!changed.empty()) rewrite(path, changed);
  }
  std::cout << passed << " passed, " << failed << " failed\n";
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace
}  // namespace tenon::testing

namespace {

// Value of the option `name` in `--name=number`; nullopt for another word.
std::optional<std::uint64_t> number_after(const std::string& word, const std::string& option) {
  if (word.rfind(option, 0) != 0) return std::nullopt;
  const auto number = tenon::parse_integer(word.substr(option.size()));
  if (!number || *number < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

}  // namespace

int main(int argc, char** argv) {
  tenon::testing::be_strict();
  tenon::testing::Settings settings;
  for (int k = 1; k < argc; ++k) {
    const std::string word = argv[k];
    if (word == "--update")
      settings.update = true;
    else if (word == "--round-trip")
      settings.round_trip = true;
    else if (word == "--compiled")
      settings.compiled = true;
    else if (const auto count = number_after(word, "--random-gradients="))
      settings.random_gradients = *count;
    else if (const auto seed = number_after(word, "--seed="))
      settings.seed = *seed;
    else if (word.rfind("--filter=", 0) == 0)
      settings.filter = word.substr(9);
    else if (word.rfind("--", 0) == 0) {
      std::cerr << "tenon-test [--filter=X] [--update] [--round-trip] [--compiled] PATH\n"
                   "tenon-test --random-gradients=COUNT [--compiled] [--seed=N]\n";
      return 2;
    } else
      settings.path = word;
  }
  if (settings.random_gradients > 0)
    return tenon::testing::check_random_gradients(settings.seed, settings.random_gradients,
                                                  settings.compiled);
  if (std::error_code unreadable; !std::filesystem::exists(settings.path, unreadable)) {
    std::cerr << "tenon-test: there is no file or folder '" << settings.path << "'\n";
    return 2;
  }
  return tenon::testing::run(settings);
}
