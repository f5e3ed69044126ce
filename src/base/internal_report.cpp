#include "base/internal_report.h"

#include "base/new_file.h"
#include "base/user_folder.h"
#include "base/version.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

namespace tenon::inline base {
namespace {

std::optional<std::string> write_details(const std::string& text) {
  std::vector<std::filesystem::path> folders;
  if (const auto user = user_cache_folder())
    folders.push_back(std::filesystem::path(*user) / "internal_errors");
  std::error_code failed;
  if (auto temporary = std::filesystem::temp_directory_path(failed); !failed)
    folders.push_back(std::move(temporary));
  const std::string name = concat("tenon_", std::hash<std::string>()(text), ".txt");
  for (const std::filesystem::path& folder : folders) {
    try {
      std::filesystem::create_directories(folder, failed);
      NewFile file((folder / name).string());
      file.out() << text;
      file.finish();
      return (folder / name).string();
    } catch (const Error&) {  // the folder is not writable
    }
  }
  return std::nullopt;
}

}  // namespace

std::string report(const InternalError& error) noexcept try {
  const auto file =
      write_details(concat("tenon ", kVersion, "\n", error.what(), "\n", error.details()));
  return concat(error.what(), "; please report this", file ? concat(" with ", *file) : "");
} catch (const std::exception&) {  // No memory.
  return "internal error";
}

}  // namespace tenon::inline base
