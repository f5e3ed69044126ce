#include "app/targets.h"

#include "base/error.h"
#include "driver/targets.h"

namespace tenon::app {
namespace {

constexpr const char* kReference = "reference";

}  // namespace

bool is_compiled_target(const std::string& target) {
  if (target == kReference) return false;
  driver::parse_target(target);  // refuses unknown names
  return true;
}

TargetSpec target_of(const std::string& target, const std::string& cpu,
                     const std::string& precision) {
  if (target == kReference)
    throw Error("the reference is not compiled", ErrorKind::Usage).got("--target=", target);
  return driver::parse_target(target.empty() || target == "cpu" ? cpu : target, precision);
}

bool is_observed_compiled(const std::string& target) {
  const bool is_compiled = is_compiled_target(target);
  if (is_compiled && target != "cpu") {
    throw Error("values inside a run on a device are not looked at", ErrorKind::Unsupported)
        .got(target)
        .hint("cpu or reference");
  }
  return is_compiled;
}

}  // namespace tenon::app
