#include <cpuid.h>
#include <dlfcn.h>
#include <sys/sysinfo.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "driver/model.h"
#include "ops/registry.h"

namespace tenon::cli {
namespace {

struct Finding {
  std::string what, found;
};

std::string vector_extensions() {
  std::string list;
  const auto note = [&](bool has, const char* name) {
    if (has) list += (list.empty() ? "" : ", ") + std::string(name);
  };
  note(__builtin_cpu_supports("avx2"), "AVX2");
  note(__builtin_cpu_supports("fma"), "FMA");
  note(__builtin_cpu_supports("avx512f"), "AVX-512");
  note(__builtin_cpu_supports("avx512vnni"), "AVX-512 VNNI");
  return list.empty() ? "none that Tenon looks for" : list;
}

std::string memory_text() {
  struct sysinfo info {};
  if (sysinfo(&info) != 0) return "unknown";
  return format_bytes(static_cast<std::uint64_t>(info.totalram) * info.mem_unit);
}

std::string library_text(const char* name, const char* without) {
  void* handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (!handle) return std::string("not found: ") + without;
  dlclose(handle);
  return "found";
}

}  // namespace

int doctor(OutputFormat format) {
  const std::vector<Finding> findings = {
      {"processor threads", std::to_string(std::thread::hardware_concurrency())},
      {"vector extensions", vector_extensions()},
      {"memory", memory_text()},
      {"operators", std::to_string(all_ops().all().size())},
      {"CUDA driver (libcuda.so.1)", library_text("libcuda.so.1", "models run on the processor only")},
  };
  if (format == OutputFormat::Json) {
    nlohmann::ordered_json json;
    for (const Finding& finding : findings) json[finding.what] = finding.found;
    for (const Format& entry : formats()) json["formats"].push_back(entry.name);
    std::cout << json.dump(2) << "\n";
    return 0;
  }
  Table table({"what", "found"});
  for (const Finding& finding : findings) table.add({finding.what, finding.found});
  for (const Format& entry : formats()) table.add({"format " + entry.name, entry.summary});
  table.print(std::cout);
  return 0;
}

}  // namespace tenon::cli
