#pragma once

#include <memory>
#include <ostream>
#include <string>

namespace tenon {

/// A file that appears only when it is complete: written under a fresh name beside its place and
/// moved there, so that an interrupted run loses nothing and several that write the same file do
/// not meet. A link in its place is replaced, never followed. What is no plain file (a device, a
/// pipe) is written as it is.
class NewFile {
 public:
  /// Removes what killed processes left of earlier tries. Throws Error (Usage) where nothing can be
  /// written.
  explicit NewFile(std::string path);
  NewFile(const NewFile&) = delete;
  ~NewFile();

  std::ostream& out() { return out_; }
  /// Throws Error with the system's reason if anything could not be written.
  void finish();

 private:
  class Buffer;

  std::string path_;
  /// where it is written until it is complete; empty: in its place
  std::string part_;
  std::unique_ptr<Buffer> buffer_;
  std::ostream out_;
};

}  // namespace tenon
