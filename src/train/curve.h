#pragma once

#include "train/checkpoint.h"

#include <string>
#include <vector>

namespace tenon::train {

/// Draws the learning curve: training and validation loss, and the accuracy if there is one.
std::string curve_svg(const std::vector<CurvePoint>& points, const std::string& title,
                      bool has_accuracy);

}  // namespace tenon::train
