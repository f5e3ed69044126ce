#include "base/new_file.h"

#include <filesystem>

#include "base/error.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

std::string place_to_write(const std::string& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  const bool is_special = fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
  return is_special ? path : path + ".part";
}

}  // namespace

NewFile::NewFile(std::string path)
    : path_(std::move(path)), part_(place_to_write(path_)), out_(part_, std::ios::binary) {}

NewFile::~NewFile() {
  std::error_code ignored;
  if (!is_done_ && part_ != path_) fs::remove(part_, ignored);
}

void NewFile::finish() {
  out_.close();
  std::error_code reason;
  if (out_ && part_ != path_) fs::rename(part_, path_, reason);
  if (!out_ || reason) {
    throw Error(concat("cannot write '", path_, "'"), ErrorKind::Usage)
        .got(reason ? reason.message() : "the file system refused");
  }
  is_done_ = true;
}

}  // namespace tenon
