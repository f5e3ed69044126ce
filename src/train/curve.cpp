#include "train/curve.h"

#include "base/error.h"
#include "base/markup.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tenon::train {
namespace {

constexpr double kWidth = 720, kHeight = 300, kLeft = 64, kRight = 16, kTop = 44, kBottom = 40;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string place(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

// One chart, with its upper edge at `top`.
class Chart {
 public:
  Chart(std::string& out, double top, double last_step, double low, double high)
      : out_(out),
        top_(top),
        last_step_(std::max(1.0, last_step)),
        low_(low),
        high_(high > low ? high : low + 1) {}

  void frame(const std::string& label) {
    for (int tick = 0; tick <= 4; ++tick) {
      const double value = low_ + (high_ - low_) * tick / 4;
      line(x(0), y(value), x(last_step_), y(value), "#ddd");
      text(kLeft - 6, y(value) + 4, number(value), "end");
      text(x(last_step_ * tick / 4), top_ + kHeight - kBottom + 16,
           number(std::round(last_step_ * tick / 4)), "middle");
    }
    text(kLeft, top_ + kTop - 10, label, "start");
    text(kWidth - kRight, top_ + kHeight - 6, "step", "end");
  }

  template <class Value>
  void curve(const std::vector<CurvePoint>& points, bool is_validation, const char* colour,
             Value value) {
    std::string path;
    for (const CurvePoint& point : points) {
      if (point.is_validation != is_validation || !std::isfinite(value(point))) continue;
      path += concat(path.empty() ? "" : " ", place(x(static_cast<double>(point.step))), ",",
                     place(y(value(point))));
    }
    if (path.empty()) return;
    out_ += concat("<polyline fill=\"none\" stroke=\"", colour, "\" stroke-width=\"1.6\" points=\"",
                   path, "\"/>\n");
  }

  void legend(double at, const char* colour, const char* name) {
    line(at, top_ + kTop - 14, at + 18, top_ + kTop - 14, colour);
    text(at + 24, top_ + kTop - 10, name, "start");
  }

 private:
  double x(double step) const { return kLeft + (kWidth - kLeft - kRight) * step / last_step_; }
  double y(double value) const {
    const double share = (std::clamp(value, low_, high_) - low_) / (high_ - low_);
    return top_ + kTop + (kHeight - kTop - kBottom) * (1 - share);
  }
  void line(double x1, double y1, double x2, double y2, const char* colour) {
    out_ += concat("<line x1=\"", place(x1), "\" y1=\"", place(y1), "\" x2=\"", place(x2),
                   "\" y2=\"", place(y2), "\" stroke=\"", colour, "\"/>\n");
  }
  void text(double at_x, double at_y, const std::string& words, const char* anchor) {
    out_ += concat("<text x=\"", place(at_x), "\" y=\"", place(at_y), "\" text-anchor=\"", anchor,
                   "\">", in_markup(words), "</text>\n");
  }

  std::string& out_;
  double top_, last_step_, low_, high_;
};

}  // namespace

std::string curve_svg(const std::vector<CurvePoint>& points, const std::string& title,
                      bool has_accuracy) {
  double last_step = 1, low = 0, high = 0;
  for (const CurvePoint& point : points) {
    last_step = std::max(last_step, static_cast<double>(point.step));
    if (std::isfinite(point.loss)) high = std::max(high, point.loss);
    if (std::isfinite(point.loss)) low = std::min(low, point.loss);
  }
  constexpr const char* kTraining = "#1f77b4";
  constexpr const char* kValidation = "#d62728";
  const double height = 24 + kHeight * (has_accuracy ? 2 : 1);
  std::string out = concat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", place(kWidth),
                           "\" height=\"", place(height),
                           "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" "
                           "height=\"100%\" fill=\"white\"/>\n");
  out += concat("<text x=\"", place(kLeft), "\" y=\"20\" font-size=\"15\">", in_markup(title),
                "</text>\n");
  Chart loss(out, 24, last_step, low, high);
  loss.frame("loss");
  loss.legend(kLeft + 120, kTraining, "training");
  loss.legend(kLeft + 230, kValidation, "validation");
  for (const bool is_validation : {false, true}) {
    loss.curve(points, is_validation, is_validation ? kValidation : kTraining,
               [](const CurvePoint& point) { return point.loss; });
  }
  if (has_accuracy) {
    Chart accuracy(out, 24 + kHeight, last_step, 0, 1);
    accuracy.frame("accuracy");
    for (const bool is_validation : {false, true}) {
      accuracy.curve(points, is_validation, is_validation ? kValidation : kTraining,
                     [](const CurvePoint& point) { return point.accuracy; });
    }
  }
  return out + "</svg>\n";
}

}  // namespace tenon::train
