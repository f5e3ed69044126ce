#pragma once

#include "base/error.h"

#include <memory>
#include <ostream>
#include <string>

namespace tenon::inline base {

/// Returns the error of a failed write, for the system's reason (`errno`).
Error cannot_write(const std::string& path, int reason);

/// Atomic file creation: writes to a temporary name in the same folder and renames at the end. An
/// interrupted run keeps the old file, and concurrent writers do not collide. An existing symbolic
/// link is replaced, not followed. Devices and pipes are written directly.
class NewFile {
 public:
  /// Removes abandoned temporary files of killed processes. Throws Error (Usage) if the path is not
  /// writable.
  explicit NewFile(std::string path);
  NewFile(const NewFile&) = delete;
  ~NewFile();

  std::ostream& out() { return out_; }
  /// Throws Error with the system's reason if anything could not be written.
  void finish();

 private:
  class Buffer;

  std::string path_;
  /// Temporary path; empty if written directly.
  std::string part_;
  std::unique_ptr<Buffer> buffer_;
  std::ostream out_;
};

}  // namespace tenon::inline base
