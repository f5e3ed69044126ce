#include "quantize/report.h"

#include "base/error.h"
#include "base/markup.h"
#include "base/text.h"
#include "profile/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tenon::quantize {
namespace {

std::string number_text(double value) {
  char text[48];
  std::snprintf(text, sizeof text, "%.5g", value);
  return text;
}

std::string card(const std::string& title, const std::string& value) {
  return concat("<div class=\"card\">", in_markup(title), "<b>", in_markup(value), "</b></div>\n");
}

// Bar chart of the signal-to-noise ratio of each product.
std::string error_plot(const QuantizeResult& result) {
  constexpr double kBar = 12, kWidth = 640, kMostDb = 60, kText = 300;
  std::string bars;
  double y = 0;
  for (const QuantizedNode& node : result.nodes) {
    const double length =
        node.skipped.empty() ? std::clamp(node.signal_db, 0.0, kMostDb) / kMostDb * kWidth : 0;
    bars += concat("<text x=\"", number_text(kText - 6), "\" y=\"", number_text(y + kBar - 3),
                   "\" text-anchor=\"end\">", in_markup(node.name), "</text>");
    if (node.skipped.empty()) {
      bars += concat("<rect x=\"", number_text(kText), "\" y=\"", number_text(y), "\" width=\"",
                     number_text(length), "\" height=\"", number_text(kBar - 2), "\" fill=\"var(",
                     node.signal_db < 20 ? "--hot" : "--mark", ")\"><title>", in_markup(node.name),
                     ": ", number_text(node.signal_db), " dB</title></rect>");
    } else {
      bars += concat("<text x=\"", number_text(kText + 4), "\" y=\"", number_text(y + kBar - 3),
                     "\">", in_markup(node.skipped), "</text>");
    }
    y += kBar;
  }
  std::string grid;
  for (int db = 0; db <= int(kMostDb); db += 10) {
    const double x = kText + db / kMostDb * kWidth;
    grid += concat("<line x1=\"", number_text(x), "\" x2=\"", number_text(x), "\" y1=\"0\" y2=\"",
                   number_text(y), "\" stroke=\"var(--grid)\"/>", "<text x=\"", number_text(x),
                   "\" y=\"", number_text(y + 14), "\" text-anchor=\"middle\">", db, " dB</text>");
  }
  return concat("<svg viewBox=\"0 0 960 ", number_text(y + 20),
                "\" font-size=\"10\" fill=\"var(--soft)\" width=\"100%\">", grid, bars, "</svg>\n");
}

// Histogram of a value on a logarithmic scale, with the chosen range shaded.
std::string histogram_plot(const Histogram& histogram, const ValueRange& range) {
  constexpr std::size_t kColumns = 128;
  constexpr double kWidth = 256, kHeight = 64;
  const double low = std::min(histogram.least(), range.low),
               high = std::max(histogram.greatest(), range.high);
  if (!(high > low)) return "";
  std::vector<double> columns(kColumns, 0);
  for (std::size_t k = 0; k < Histogram::kBins; ++k) {
    const double value =
        (static_cast<double>(k) + 0.5) * histogram.bin_width() - histogram.radius();
    const double place = (value - low) / (high - low) * kColumns;
    if (place < 0 || place >= kColumns) continue;
    columns[static_cast<std::size_t>(place)] += static_cast<double>(histogram.bins()[k]);
  }
  double most = 1;
  for (const double count : columns) most = std::max(most, std::log1p(count));
  const auto x_of = [&](double value) { return (value - low) / (high - low) * kWidth; };
  std::string text = concat(
      "<svg viewBox=\"0 0 256 84\" font-size=\"15\" fill=\"var(--soft)\" width=\"100%\"><rect x=\"",
      number_text(x_of(range.low)), "\" y=\"0\" width=\"",
      number_text(x_of(range.high) - x_of(range.low)), "\" height=\"64\" fill=\"var(--grid)\"/>");
  for (std::size_t k = 0; k < kColumns; ++k) {
    const double height = std::log1p(columns[k]) / most * kHeight;
    if (height == 0) continue;
    text += concat("<rect x=\"", number_text(static_cast<double>(k) * kWidth / kColumns), "\" y=\"",
                   number_text(kHeight - height), "\" width=\"1.6\" height=\"", number_text(height),
                   "\" fill=\"var(--mark)\"/>");
  }
  return concat(text, "<text x=\"0\" y=\"80\">", number_text(low),
                "</text><text x=\"256\" y=\"80\" text-anchor=\"end\">", number_text(high),
                "</text></svg>");
}

}  // namespace

std::string quantization_report(const std::string& model, const QuantizeResult& result) {
  const auto quantized = std::ranges::count_if(
      result.nodes, [](const QuantizedNode& node) { return node.skipped.empty(); });
  std::string page = concat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>",
      in_markup(model), " · Tenon quantization</title>\n<style>", profile::report_style(),
      "</style>\n</head>\n<body>\n<header><h1>", in_markup(model),
      "</h1></header>\n<main>\n<div class=\"cards\">\n");
  page += card("products quantized", concat(quantized, " of ", result.nodes.size()));
  page += card("samples", std::to_string(result.samples));
  page += card("outputs differ by", concat(number_text(100 * result.output_error), " %"));
  page +=
      card("constants", concat(number_text(static_cast<double>(result.bytes_before) / 1e6), " → ",
                               number_text(static_cast<double>(result.bytes_after) / 1e6), " MB"));
  page += "</div>\n<h2>Signal to noise of each product by itself</h2>\n" + error_plot(result);
  if (!result.histograms.empty())
    page +=
        "<h2>What was seen of each value, and the range that is kept</h2>\n<div class=\"cards\">\n";
  for (const auto& [name, histogram] : result.histograms) {
    const auto range = result.ranges.find(name);
    if (range == result.ranges.end()) continue;
    page += concat("<div class=\"card\">", in_markup(name), "<br>[", number_text(range->second.low),
                   ", ", number_text(range->second.high), "]",
                   histogram_plot(histogram, range->second), "</div>\n");
  }
  if (!result.histograms.empty()) page += "</div>\n";
  return page + "</main>\n</body>\n</html>\n";
}

}  // namespace tenon::quantize
