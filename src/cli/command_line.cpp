#include "cli/command_line.h"

#include "base/error.h"
#include "base/internal_report.h"
#include "base/interrupted.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "ops/definition/plugins.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <new>

namespace tenon::cli {
namespace {

class CommandLine {
 public:
  CommandLine()
      : app_(
            "Tenon: reads a neural network, makes it fast and small, runs it, shows where time and "
            "memory go") {
    app_.name("tenon");
    app_.require_subcommand(1);
    app_.set_version_flag("--version", concat("tenon ", kVersion));
    app_.footer("tenon help SUBCOMMAND describes one of them.");
    add_all(commands_);
    hide_empty_defaults();
  }

  int parse_and_run(int argc, char** argv) {
    if (argc > 1 && std::string_view(argv[1]) == "help") return help(argc > 2 ? argv[2] : "");
    if (argc < 2)
      throw Error("no subcommand given", ErrorKind::Usage)
          .expected("tenon SUBCOMMAND …")
          .hint("`tenon help` lists them");
    if (argv[1][0] != '-') find_subcommand(argv[1]);
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& answer) {  // --help, --version
      return app_.exit(answer, out(), err());
    } catch (const CLI::ExtrasError&) {
      refuse_unknown_flag(argc, argv);
    } catch (const CLI::ParseError& error) {
      throw Error(error.what(), ErrorKind::Usage).hint("tenon SUBCOMMAND --help lists the options");
    }
    for (const Subcommand& subcommand : commands_.list()) {
      if (!subcommand.app->parsed()) continue;
      for (const std::string& plugin : commands_.plugins()) load_plugin(plugin);
      return subcommand.action();
    }
    return 0;
  }

 private:
  CLI::App& find_subcommand(const std::string& name) const {
    std::vector<std::string> known = {"help"};
    for (const Subcommand& subcommand : commands_.list()) {
      if (subcommand.app->get_name() == name) return *subcommand.app;
      known.push_back(subcommand.app->get_name());
    }
    throw Error(concat("no subcommand is called '", name, "'"), ErrorKind::Usage)
        .hint(suggest_name(name, known));
  }

  // Hides empty defaults in the help, and 0 if it stands for an unset option.
  void hide_empty_defaults() {
    for (const Subcommand& subcommand : commands_.list()) {
      for (CLI::Option* option : subcommand.app->get_options()) {
        if (option->get_default_str() == "[]" || option->get_default_str() == "0")
          option->default_str("");
      }
    }
  }

  int help(const std::string& name) const {
    out() << (name.empty() || name == "help" ? app_.help() : find_subcommand(name).help("tenon"));
    return 0;
  }

  [[noreturn]] void refuse_unknown_flag(int argc, char** argv) const {
    for (const Subcommand& subcommand : commands_.list()) {
      if (!subcommand.app->parsed() && subcommand.app->get_name() != argv[1]) continue;
      std::vector<std::string> known;
      for (const CLI::Option* option : subcommand.app->get_options()) {
        for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
      }
      for (int k = 2; k < argc; ++k) {
        const std::string word = split(argv[k], '=').front();
        if (word.rfind("--", 0) != 0) continue;
        if (std::find(known.begin(), known.end(), word) != known.end()) continue;
        throw Error(concat("'tenon ", argv[1], "' has no option '", word, "'"), ErrorKind::Usage)
            .hint(suggest_name(word, known));
      }
    }
    throw Error("unexpected arguments", ErrorKind::Usage)
        .hint("tenon SUBCOMMAND --help lists the options");
  }

  CLI::App app_;
  Commands commands_{app_};
};

}  // namespace

int run_command_line(int argc, char** argv) {
  try {
    const int code = CommandLine().parse_and_run(argc, argv);
    finish_output();
    return code;
  } catch (const Interrupted& error) {
    err() << "error: " << error.what() << "\n";
    return Interrupted::kExitCode;
  } catch (const Error& error) {
    err() << "error: " << error.what() << "\n";
    for (const Error& further : error.further()) err() << "error: " << further.what() << "\n";
    return static_cast<int>(error.kind());
  } catch (const std::filesystem::filesystem_error& error) {
    err() << "error: " << error.code().message() << "\n  at        " << error.path1().string()
          << "\n";
    return static_cast<int>(ErrorKind::Usage);
  } catch (const std::bad_alloc&) {
    err() << "error: out of memory\n  hint      `ulimit -v` shows the limit of this process\n";
    return static_cast<int>(ErrorKind::OutOfMemory);
  } catch (const InternalError& error) {
    err() << report(error) << "\n";
    return static_cast<int>(ErrorKind::Internal);
  } catch (const std::exception& error) {
    err() << error.what() << "\n";
    return static_cast<int>(ErrorKind::Internal);
  }
}

}  // namespace tenon::cli
