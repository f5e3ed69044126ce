#pragma once

#include "driver/training/checkpoint.h"

#include <string>
#include <vector>

namespace tenon {

/// The learning curve as a picture: the loss, of training and validation, and the accuracy where
/// there is one.
std::string curve_svg(const std::vector<CurvePoint>& points, const std::string& title,
                      bool has_accuracy);

}  // namespace tenon
