#include "cli/value_files.h"

#include "base/error.h"
#include "base/text.h"
#include "driver/inputs.h"

namespace tenon::cli {

std::string folder_of(const std::string& text, const char* option) {
  if (text.rfind('@', 0) != 0 || text.size() == 1) {
    throw Error(concat(option, " takes a folder"), ErrorKind::Usage).expected("@DIR").got(text);
  }
  return text.substr(1);
}

void prepare_folder(const std::string& text, const char* option) {
  if (!text.empty()) make_folder(folder_of(text, option));
}

void save_values(const std::vector<std::string>& names, const std::vector<Datum>& values,
                 const std::string& text, const char* option) {
  if (text.empty()) return;
  const std::string folder = folder_of(text, option);
  make_folder(folder);
  for (std::size_t k = 0; k < values.size(); ++k)
    write_value(values[k], folder, file_name_of(names[k]));
}

}  // namespace tenon::cli
