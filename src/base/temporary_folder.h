#pragma once

#include <string>

namespace tenon::inline base {

/// A private temporary folder, removed by the destructor. Creation also removes abandoned folders
/// of the same purpose.
class TemporaryFolder {
 public:
  /// Throws Error (Device) if it cannot be created.
  explicit TemporaryFolder(const std::string& purpose);
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  /// Lock held during the lifetime of this object.
  int lock_ = -1;
};

}  // namespace tenon::inline base
