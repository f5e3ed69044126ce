#include "cli/commands.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/examples.h"

namespace tenon::cli {

CLI::App& Commands::add(const char* name, const char* summary, std::function<int()> action) {
  CLI::App* app = app_.add_subcommand(name, summary);
  app->option_defaults()->always_capture_default();
  if (const std::string_view example = example_of(name); !example.empty())
    app->footer(concat("Example: ", example));
  app->add_option("--format", format_, "table or json");
  app->add_option("--plugin", plugins_, "FILE.so: operators of your own (include/tenon/plugin.h)");
  app->add_flag_callback(
      "--json", [this] { format_ = "json"; }, "the same as --format=json");
  list_.push_back({app, std::move(action)});
  return *app;
}

OutputFormat Commands::format() const {
  if (format_ == "table") return OutputFormat::Table;
  if (format_ == "json") return OutputFormat::Json;
  throw Error(concat("no output format is called '", format_, "'"), ErrorKind::Usage)
      .hint(suggest_name(format_, std::vector<std::string>{"table", "json"}));
}

void add_all(Commands& commands) {
  for (const auto& add :
       {add_demo,  add_show,        add_check,  add_convert,    add_run,     add_diff,
        add_opt,   add_compile,     add_passes, add_bench,      add_profile, add_report,
        add_train, add_quantize,    add_tune,   add_explain,    add_plan,    add_arena,
        add_ops,   add_completions, add_doctor, add_conformance})
    add(commands);
}

}  // namespace tenon::cli
