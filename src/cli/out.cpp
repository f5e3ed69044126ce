#include "cli/out.h"

#include <iostream>
#include <utility>

namespace tenon::cli {
namespace {

thread_local std::ostream *kept_out = nullptr, *kept_err = nullptr;

}  // namespace

std::ostream& out() { return kept_out != nullptr ? *kept_out : std::cout; }
std::ostream& err() { return kept_err != nullptr ? *kept_err : std::cerr; }

KeptOutput::KeptOutput()
    : out_before_(std::exchange(kept_out, &out_)), err_before_(std::exchange(kept_err, &err_)) {}

KeptOutput::~KeptOutput() {
  kept_out = out_before_;
  kept_err = err_before_;
}

}  // namespace tenon::cli
