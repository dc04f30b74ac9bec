// SPDX-License-Identifier: Apache-2.0
#include "svg.h"

#include <fmt/format.h>

#include <cmath>

namespace coffer::bench {
namespace {

// Plain classes and no CSS variables: every viewer that knows style sheets knows these.
constexpr const char* kStyle = R"(
  text { font-family: system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; font-size: 13px; }
  .title { font-size: 16px; font-weight: 600; } .soft { font-size: 12px; } .strong { font-weight: 600; }
  .mid { text-anchor: middle; } .end { text-anchor: end; }
  .grid, .axis { stroke-width: 1; } .mine-line, .other-line { stroke-width: 1.5; } .median { stroke-width: 2.5; }
  .dot { fill-opacity: 0.35; }
  text { fill: #1f2328; } .soft { fill: #59636e; } .back { fill: #ffffff; }
  .mine { fill: #0b62d6; } .mine-soft { fill: #9cc3f7; } .other { fill: #6e7781; } .other-soft { fill: #c4cbd2; }
  .grid { stroke: #d8dee4; } .axis { stroke: #59636e; } .median { stroke: #1f2328; }
  .mine-line { stroke: #0b62d6; } .other-line { stroke: #6e7781; }
  .s0 { fill: #0b62d6; } .s1 { fill: #d9730d; } .s2 { fill: #2e8b57; } .s3 { fill: #b3347c; }
  .s4 { fill: #7a5cd1; } .s5 { fill: #9a7d0a; } .s6 { fill: #0f8a94; } .s7 { fill: #c23b3b; }
  .s8 { fill: #5b7083; } .s9 { fill: #86a62b; } .s10 { fill: #a0583c; } .s11 { fill: #3d4fb5; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .soft { fill: #9198a1; } .back { fill: #0d1117; }
    .mine { fill: #58a6ff; } .mine-soft { fill: #1f4a80; } .other { fill: #9198a1; } .other-soft { fill: #3d444d; }
    .grid { stroke: #2d343c; } .axis { stroke: #9198a1; } .median { stroke: #e6edf3; }
    .mine-line { stroke: #58a6ff; } .other-line { stroke: #9198a1; }
    .s0 { fill: #58a6ff; } .s1 { fill: #f0a35e; } .s2 { fill: #56c785; } .s3 { fill: #e57fb8; }
    .s4 { fill: #ab93f0; } .s5 { fill: #d8bd4a; } .s6 { fill: #45c4ce; } .s7 { fill: #f07f7f; }
    .s8 { fill: #9fb3c4; } .s9 { fill: #b9d65c; } .s10 { fill: #d59a80; } .s11 { fill: #8d9bf0; }
  }
)";

std::string Escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace

Svg::Svg(double width, double height, std::string_view title, std::string_view description)
    : width_(width), height_(height) {
  body_ += fmt::format("<title>{}</title>\n<desc>{}</desc>\n<style>{}</style>\n", Escape(title),
                       Escape(description), kStyle);
  Rect(0, 0, width, height, "back");
  Text(20, 28, title, "title");
  Text(20, 48, description, "soft");
}

void Svg::Line(double x1, double y1, double x2, double y2, std::string_view css) {
  body_ +=
      fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n",
                  x1, y1, x2, y2, css);
}

void Svg::Rect(double x, double y, double width, double height, std::string_view css,
               double radius) {
  body_ += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{:.1f}\" "
      "class=\"{}\"/>\n",
      x, y, width, height, radius, css);
}

void Svg::Circle(double x, double y, double radius, std::string_view css) {
  body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" class=\"{}\"/>\n", x, y,
                       radius, css);
}

void Svg::Text(double x, double y, std::string_view text, std::string_view css) {
  body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, css,
                       Escape(text));
}

std::string Svg::Finish() const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n{2}</svg>\n",
      width_, height_, body_);
}

LogAxis::LogAxis(double min, double max, double left, double right)
    : low_(std::log10(min) - 0.05), high_(std::log10(max) + 0.05), left_(left), right_(right) {}

double LogAxis::At(double value) const {
  return left_ + (right_ - left_) * (std::log10(value) - low_) / (high_ - low_);
}

std::vector<double> LogAxis::ticks() const {
  std::vector<double> values;
  for (int decade = static_cast<int>(std::floor(low_));
       decade <= static_cast<int>(std::ceil(high_)); ++decade) {
    for (const double step : {1.0, 2.0, 5.0}) {
      const double value = step * std::pow(10.0, decade);
      if (std::log10(value) >= low_ && std::log10(value) <= high_) {
        values.push_back(value);
      }
    }
  }
  return values;
}

std::vector<double> LinearTicks(double max) {
  const double rough = max / 6;
  const double decade = std::pow(10.0, std::floor(std::log10(rough)));
  double step = decade * 10;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (decade * factor >= rough) {
      step = decade * factor;
      break;
    }
  }
  std::vector<double> values = {0};
  while (values.back() < max) {
    values.push_back(values.back() + step);
  }
  return values;
}

}  // namespace coffer::bench
