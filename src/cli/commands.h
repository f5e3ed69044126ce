#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon::cli {

/// Output format of a subcommand.
enum class OutputFormat { Table, Json };

/// A subcommand, and its action after parsing, which returns the exit code.
struct Subcommand {
  CLI::App* app = nullptr;
  std::function<int()> action;
};

/// The subcommands of an application. Each is declared by the function `add_NAME` of its file, with
/// options of its own and those that all subcommands have: --format, --json and --plugin.
class Commands {
 public:
  explicit Commands(CLI::App& app) : app_(app) {}
  Commands(const Commands&) = delete;

  /// A declared subcommand, and its options, which live as long as this object.
  template <class Options>
  struct Declared {
    CLI::App& app;
    Options& options;
  };
  /// `action` throws Error for a command that fails.
  template <class Options>
  Declared<Options> add(const char* name, const char* summary,
                        int (*action)(const Options&, OutputFormat)) {
    const auto options = std::make_shared<Options>();
    CLI::App& app =
        add(name, summary, [this, options, action] { return action(*options, format()); });
    return {app, *options};
  }
  /// For a subcommand with further formats, which checks them.
  template <class Options>
  Declared<Options> add(const char* name, const char* summary,
                        int (*action)(const Options&, const std::string& format)) {
    const auto options = std::make_shared<Options>();
    CLI::App& app =
        add(name, summary, [this, options, action] { return action(*options, format_); });
    return {app, *options};
  }
  void add(const char* name, const char* summary, int (*action)(OutputFormat)) {
    add(name, summary, [this, action] { return action(format()); });
  }
  CLI::App& add(const char* name, const char* summary, std::function<int()> action);

  const std::vector<Subcommand>& list() const { return list_; }
  const std::vector<std::string>& plugins() const { return plugins_; }

 private:
  // Throws Error (Usage) for an unknown format.
  OutputFormat format() const;

  CLI::App& app_;
  std::vector<Subcommand> list_;
  std::string format_ = "table";
  std::vector<std::string> plugins_;
};

/// Declares every subcommand, in the order of the help text.
void add_all(Commands& commands);

void add_arena(Commands& commands);
void add_bench(Commands& commands);
void add_check(Commands& commands);
void add_compile(Commands& commands);
void add_completions(Commands& commands);
void add_conformance(Commands& commands);
void add_convert(Commands& commands);
void add_demo(Commands& commands);
void add_diff(Commands& commands);
void add_doctor(Commands& commands);
void add_explain(Commands& commands);
void add_ops(Commands& commands);
void add_opt(Commands& commands);
void add_passes(Commands& commands);
void add_plan(Commands& commands);
void add_profile(Commands& commands);
void add_quantize(Commands& commands);
void add_report(Commands& commands);
void add_run(Commands& commands);
void add_show(Commands& commands);
void add_train(Commands& commands);
void add_tune(Commands& commands);

}  // namespace tenon::cli
