// tenon-sweep-sizes [--count=N] [--seed=N] [--begin=N] [--filter=FAMILY] [--jobs=N]
//                   [--limit=SECONDS] [--seconds=N] [--resume=FILE] [--keep=DIR] [--one=N]
//                   [FOLDER...]
//
// Compiles layers and networks of random sizes: the zoo, chains of layers, training steps and the
// ONNX files in folders, with fixed and symbolic extents. An internal error, a crash or a hang is a
// failure; a refusal is not. Compiles only; nothing runs. Cases compile in worker processes.
//
// Case N of a seed is the same in every run. --resume continues at the number in FILE and updates
// it; --seconds ends after that time; --one compiles one case in this process, for a debugger, and
// prints its graph. DIR (build/sweep_sizes) has the logs of workers.

#include "base/error.h"
#include "base/text.h"
#include "case.h"
#include "mutate_onnx/workers.h"
#include "strict.h"

#include <chrono>
#include <fstream>
#include <iostream>
#include <map>

namespace tenon::testing {
namespace {

struct Settings {
  WorkerOptions workers{.first = 1, .limit_s = 120, .log_folder = "build/sweep_sizes"};
  std::uint64_t seed = 1, one = 0;
  double seconds = 0;
  std::string filter, resume;
  std::vector<std::string> folders;
};

// Cases that run between two updates of the file to resume from.
constexpr std::uint64_t kChunk = 500;

// Returns "compiled FAMILY", "refused FAMILY" or "failed FAMILY|ERROR".
std::string judge(const CaseMaker& maker, std::uint64_t number) {
  std::string family = "sizes";
  try {
    SizeCase sized = maker.make(number);
    family = sized.family;
    compile_case(std::move(sized), maker.seed_of(number));
    return "compiled " + family;
  } catch (const Error& error) {
    std::cout << error.what() << "\n";
    return "refused " + family;
  } catch (const std::exception& error) {
    std::string what = error.what();
    what.resize(std::min(what.find('\n'), what.size()));
    return concat("failed ", family, "|", what);
  }
}

int run_one(const CaseMaker& maker, std::uint64_t number) {
  SizeCase sized = maker.make(number);
  std::cout << sized.title << std::endl;
  try {
    compile_case(std::move(sized), maker.seed_of(number));
  } catch (const InternalError& error) {
    std::cout << error.what() << "\n" << error.details();
    return 1;
  }
  std::cout << "compiled\n";
  return 0;
}

class Sweep {
 public:
  Sweep(const Settings& settings, const CaseMaker& maker) : settings_(settings), maker_(maker) {}

  int run() {
    const auto begin = std::chrono::steady_clock::now();
    const auto elapsed = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    WorkerOptions chunk = settings_.workers;
    const std::uint64_t end = chunk.first + chunk.count;
    while (chunk.first < end && (settings_.seconds == 0 || elapsed() < settings_.seconds)) {
      chunk.count = std::min(kChunk, end - chunk.first);
      run_in_workers(
          chunk, [&](std::uint64_t number) { return judge(maker_, number); },
          [&](std::uint64_t number, const std::string& line) { note(number, line); },
          [&](const Accident& accident) {
            fail(accident.number, concat(accident.what, "\n  ", accident.log.substr(0, 2000)));
          });
      chunk.first += chunk.count;
      if (!settings_.resume.empty()) std::ofstream(settings_.resume) << chunk.first << "\n";
    }
    for (const auto& [word, count] : counts_) std::cout << count << " " << word << "\n";
    std::cout << compiled_ << " compiled in " << static_cast<int>(elapsed()) << " s; next case "
              << chunk.first << "\n"
              << passed_ << " passed, " << failed_ << " failed\n";
    return failed_ == 0 ? 0 : 1;
  }

 private:
  void note(std::uint64_t number, const std::string& line) {
    const std::size_t bar = line.find('|');
    ++counts_[line.substr(0, bar)];
    if (bar != std::string::npos) return fail(number, line.substr(bar + 1));
    ++passed_;
    compiled_ += line.starts_with("compiled") ? 1 : 0;
  }

  void fail(std::uint64_t number, const std::string& what) {
    ++failed_;
    std::cout << "FAILED case " << number << " of seed " << settings_.seed << ": " << what
              << std::endl;
  }

  const Settings& settings_;
  const CaseMaker& maker_;
  std::map<std::string, std::uint64_t> counts_;
  std::uint64_t compiled_ = 0, passed_ = 0, failed_ = 0;
};

int usage() {
  std::cerr << "tenon-sweep-sizes [--count=N] [--seed=N] [--begin=N] [--filter=FAMILY] [--jobs=N] "
               "[--limit=SECONDS] [--seconds=N] [--resume=FILE] [--keep=DIR] [--one=N] "
               "[FOLDER...]\n";
  return 2;
}

int main_with(int argc, char** argv) {
  Settings settings;
  std::uint64_t begin = 0;
  const std::map<std::string, std::uint64_t*> numbers = {{"--count", &settings.workers.count},
                                                         {"--seed", &settings.seed},
                                                         {"--begin", &begin},
                                                         {"--one", &settings.one}};
  const std::map<std::string, std::string*> texts = {{"--filter", &settings.filter},
                                                     {"--resume", &settings.resume},
                                                     {"--keep", &settings.workers.log_folder}};
  for (int k = 1; k < argc; ++k) {
    const std::string text = argv[k];
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
    const auto number = parse_integer(value);
    const bool is_count = number && *number > 0;
    if (!name.starts_with("--")) {
      settings.folders.push_back(text);
    } else if (numbers.contains(name) && is_count) {
      *numbers.at(name) = static_cast<std::uint64_t>(*number);
    } else if (texts.contains(name) && !value.empty()) {
      *texts.at(name) = value;
    } else if (name == "--jobs" && is_count && *number <= 64) {
      settings.workers.jobs = static_cast<unsigned>(*number);
    } else if (name == "--limit" && is_count) {
      settings.workers.limit_s = static_cast<double>(*number);
    } else if (name == "--seconds" && is_count) {
      settings.seconds = static_cast<double>(*number);
    } else {
      return usage();
    }
  }
  if (begin > 0) {
    settings.workers.first = begin;
  } else if (std::ifstream file(settings.resume); file) {
    file >> settings.workers.first;
  }
  const CaseMaker maker(settings.folders, settings.seed, settings.filter);
  if (settings.one != 0) return run_one(maker, settings.one);
  return Sweep(settings, maker).run();
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
