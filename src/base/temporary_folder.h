#pragma once

#include <string>

namespace tenon {

/// A folder of a fresh name for this user alone, which goes with this object; so do, when the next
/// one is made, those of the same purpose that killed processes left.
class TemporaryFolder {
 public:
  /// Throws Error (Device) where none can be made.
  explicit TemporaryFolder(const std::string& purpose);
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  /// held as long as somebody uses it
  int lock_ = -1;
};

}  // namespace tenon
