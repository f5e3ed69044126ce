#include "host/resident.h"

#include <malloc.h>

#include <fstream>
#include <string>

namespace tenon::inline host {

std::uint64_t resident_peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
  }
  return 0;
}

void begin_resident_peak() {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
}

}  // namespace tenon::inline host
