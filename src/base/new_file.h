#pragma once

#include <fstream>
#include <string>

namespace tenon {

/// A file that appears only when it is complete: written beside its place and moved there, so that
/// an interrupted run loses nothing. What is no plain file (a device, a pipe) is written as it is.
class NewFile {
 public:
  explicit NewFile(std::string path);
  NewFile(const NewFile&) = delete;
  ~NewFile();

  std::ostream& out() { return out_; }
  /// Throws Error (Usage) if anything could not be written.
  void finish();

 private:
  std::string path_, part_;
  std::ofstream out_;
  bool is_done_ = false;
};

}  // namespace tenon
