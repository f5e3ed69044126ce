// tenon-mutate-onnx [--count=N] [--seed=N] [--jobs=N] [--limit=SECONDS] [--keep=DIR] [--one=N]
//                   [--symbolic] [FOLDER...]
//
// Mutation fuzzer of ONNX models. Changes the structure of models at random and checks each mutant:
// either it is refused with an Error, or the reference and the compiled program accept the same
// inputs and give the same results. Mutants run in worker processes, so that a crash or a hang is
// one line of the report. Failing mutants are kept in DIR (build/mutants) as N.onnx; N.txt lists
// the changes and the failure.
//
// Models come from `FOLDER/*/model.onnx`, from the zoo and from random graphs. --one runs one
// mutant in this process, for a debugger. Named extents of a model get numbers unless --symbolic is
// given.

#include "base/error.h"
#include "base/text.h"
#include "judge.h"
#include "strict.h"
#include "workers.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

namespace tenon::testing {
namespace {

struct Settings {
  WorkerOptions workers{};
  std::string keep = "build/mutants";
  std::uint64_t one = 0;
  bool keeps_symbols = false;
  std::vector<std::string> folders;
};

const std::map<Verdict::Kind, std::string> kWords = {
    {Verdict::Kind::NotImported, "not imported"},
    {Verdict::Kind::Refused, "refused when run"},
    {Verdict::Kind::Agreed, "run and equal"},
    {Verdict::Kind::NotCompiled, "not compiled"},
    {Verdict::Kind::Failed, "failed"},
};

std::string change_list(const Mutant& mutant) {
  std::string text = mutant.name + "\n";
  for (const std::string& change : mutant.changes) text += concat("  ", change, "\n");
  return text;
}

void keep(const Settings& settings, const Mutant& mutant, std::uint64_t number,
          const std::string& what) {
  std::filesystem::create_directories(settings.keep);
  const std::string stem = concat(settings.keep, "/", number);
  std::ofstream(stem + ".onnx", std::ios::binary) << mutant.bytes;
  std::ofstream(stem + ".txt") << change_list(mutant) << what << "\n";
}

int run_one(const Settings& settings, const Seeds& seeds) {
  const Mutant mutant = make_mutant(seeds, settings.one);
  std::cout << change_list(mutant) << std::flush;
  keep(settings, mutant, settings.one, "");
  const Verdict verdict = judge(mutant.bytes, settings.one);
  std::cout << kWords.at(verdict.kind) << "\n" << verdict.what << "\n";
  return verdict.kind == Verdict::Kind::Failed ? 1 : 0;
}

int run(Settings settings) {
  Seeds seeds(settings.folders);
  seeds.keeps_symbols = settings.keeps_symbols;
  if (settings.one != 0) return run_one(settings, seeds);
  settings.workers.log_folder = settings.keep;
  std::map<std::string, std::uint64_t> counts;
  std::uint64_t failed = 0;
  const auto report = [&](std::uint64_t number, const std::string& what) {
    ++failed;
    std::cout << "FAILED mutant " << number << " of " << change_list(make_mutant(seeds, number))
              << "  " << what << std::endl;
  };
  const auto work = [&](std::uint64_t number) {
    const Mutant mutant = make_mutant(seeds, number);
    const Verdict verdict = judge(mutant.bytes, number);
    if (verdict.kind == Verdict::Kind::Failed) keep(settings, mutant, number, verdict.what);
    std::string line = concat(kWords.at(verdict.kind), "|", verdict.what);
    for (char& c : line) c = c == '\n' ? '\r' : c;
    return line;
  };
  const auto on_done = [&](std::uint64_t number, const std::string& line) {
    const std::size_t bar = line.find('|');
    ++counts[line.substr(0, bar)];
    if (line.substr(0, bar) != kWords.at(Verdict::Kind::Failed)) return;
    std::string what = line.substr(bar + 1);
    for (std::size_t at; (at = what.find('\r')) != std::string::npos;) what.replace(at, 1, "\n  ");
    report(number, what);
  };
  const auto on_accident = [&](const Accident& accident) {
    keep(settings, make_mutant(seeds, accident.number), accident.number,
         concat(accident.what, "\n", accident.log));
    report(accident.number, concat(accident.what, "\n", accident.log.substr(0, 4000)));
  };
  run_in_workers(settings.workers, work, on_done, on_accident);
  for (const auto& [word, count] : counts) std::cout << count << " " << word << "\n";
  std::cout << settings.workers.count - failed << " passed, " << failed << " failed\n";
  return failed == 0 ? 0 : 1;
}

int usage() {
  std::cerr << "tenon-mutate-onnx [--count=N] [--seed=N] [--jobs=N] [--limit=SECONDS] [--keep=DIR] "
               "[--one=N] "
               "[--symbolic] [FOLDER...]\n";
  return 2;
}

int main_with(int argc, char** argv) {
  Settings settings;
  for (int k = 1; k < argc; ++k) {
    const std::string text = argv[k];
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
    const auto number = parse_integer(value);
    const bool is_count = number && *number > 0;
    if (!name.starts_with("--")) {
      settings.folders.push_back(text);
    } else if (name == "--count" && is_count) {
      settings.workers.count = static_cast<std::uint64_t>(*number);
    } else if (name == "--seed" && is_count) {
      settings.workers.first = static_cast<std::uint64_t>(*number);
    } else if (name == "--jobs" && is_count && *number <= 64) {
      settings.workers.jobs = static_cast<unsigned>(*number);
    } else if (name == "--limit" && is_count) {
      settings.workers.limit_s = static_cast<double>(*number);
    } else if (name == "--one" && is_count) {
      settings.one = static_cast<std::uint64_t>(*number);
    } else if (text == "--symbolic") {
      settings.keeps_symbols = true;
    } else if (name == "--keep" && !value.empty()) {
      settings.keep = value;
    } else {
      return usage();
    }
  }
  return run(std::move(settings));
}

}  // namespace
}  // namespace tenon::testing

int main(int argc, char** argv) {
  tenon::testing::be_strict();
  try {
    return tenon::testing::main_with(argc, argv);
  } catch (const tenon::Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return static_cast<int>(error.kind());
  }
}
