#include "app/value_files.h"

#include "base/error.h"
#include "base/text.h"
#include "frontends/numpy/npz.h"
#include "models/inputs.h"

namespace tenon::app {

std::string folder_of(const std::string& text, const char* option) {
  if (text.rfind('@', 0) != 0 || text.size() == 1) {
    throw Error(concat(option, " takes a folder"), ErrorKind::Usage)
        .expected("@DIR or @FILE.npz")
        .got(text);
  }
  return text.substr(1);
}

void prepare_folder(const std::string& text, const char* option) {
  if (!text.empty() && !text.ends_with(".npz")) models::make_folder(folder_of(text, option));
}

void save_values(const std::vector<std::string>& names, const std::vector<Datum>& values,
                 const std::string& text, const char* option) {
  if (text.empty()) return;
  const std::string folder = folder_of(text, option);
  if (folder.ends_with(".npz")) {
    std::vector<std::pair<std::string, Tensor>> arrays;
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (!values[k].is_tensor()) {
        throw Error(concat("'", names[k], "' is no array, which is all that a .npz file holds"),
                    ErrorKind::Usage)
            .got(values[k].type())
            .hint("give a folder: ", option, "=@DIR");
      }
      arrays.emplace_back(names[k], values[k].tensor());
    }
    frontends::numpy::write_npz_file(arrays, folder);
    return;
  }
  models::make_folder(folder);
  for (std::size_t k = 0; k < values.size(); ++k)
    models::write_value(values[k], folder, models::file_name_of(names[k]));
}

}  // namespace tenon::app
