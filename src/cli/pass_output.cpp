#include "cli/pass_output.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/out.h"
#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace tenon::cli {

void print_table(const std::vector<driver::PassReport>& reports, const std::string& unit) {
  Table table({"pass", ">ms", concat(">", unit, " before"), ">after", "changes"});
  double total_ms = 0;
  for (const driver::PassReport& report : reports) {
    total_ms += report.elapsed_ms;
    table.add({report.pass, fmt::format("{:.2f}", report.elapsed_ms),
               std::to_string(report.nodes_before), std::to_string(report.nodes_after),
               report.change});
  }
  table.add({"all", fmt::format("{:.2f}", total_ms), "", "", ""});
  table.print(err());
}

std::string without_weights(const std::string& text) {
  constexpr std::size_t kMostColumns = 400;
  std::string shown;
  std::size_t left_out = 0;
  std::vector<std::string> lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (const std::string& line : lines) {
    const std::size_t type = line.find(" = constant ");
    const std::size_t end = type == std::string::npos ? type : line.find(']', type);
    if (line.size() <= kMostColumns || end == std::string::npos) {
      shown += concat(line, "\n");
      continue;
    }
    shown += concat(line.substr(0, end + 1), " …\n");
    ++left_out;
  }
  if (left_out > 0)
    shown +=
        concat("# the elements of ", left_out, " constants are left out: --weights prints them\n");
  return shown;
}

StageOutput::StageOutput(const StageOptions& options) : options_(options) {
  if (options.dump_dir.empty()) return;
  std::error_code failure;
  std::filesystem::create_directories(options.dump_dir, failure);
  if (failure)
    throw Error("cannot create the folder", ErrorKind::Usage)
        .at("--dump-dir=", options.dump_dir)
        .got(failure.message());
}

bool StageOutput::is_wanted() const {
  return options_.print_after_all || !options_.print_after.empty() || !options_.dump_dir.empty() ||
         !options_.stop_after.empty();
}

void StageOutput::take(const driver::StageText& stage) {
  if (!options_.dump_dir.empty()) {
    const auto path =
        std::filesystem::path(options_.dump_dir) /
        fmt::format("{:02}_{}{}", ++count_, stage.name, driver::suffix_of(stage.kind));
    std::ofstream file(path);
    file << stage.text;
    if (!file.flush()) throw Error("cannot write a stage").at(path.string());
  }
  const bool is_named =
      std::ranges::find(options_.print_after, stage.name) != options_.print_after.end();
  if (options_.print_after_all || is_named || stage.name == options_.stop_after)
    out() << "# after " << stage.name << "\n" << without_weights(stage.text) << "\n";
}

}  // namespace tenon::cli
