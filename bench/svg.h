// SPDX-License-Identifier: Apache-2.0
//
// A small SVG writer: shapes, text, and one style sheet that follows the reader's light or dark preference.
//
// Shapes take class names, never colours, so that a plot looks right on both backgrounds. Text is escaped here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace coffer::bench {

class Svg {
 public:
  Svg(double width, double height, std::string_view title, std::string_view description);

  void Line(double x1, double y1, double x2, double y2, std::string_view css);
  void Rect(double x, double y, double width, double height, std::string_view css,
            double radius = 0);
  void Circle(double x, double y, double radius, std::string_view css);
  // `css` may hold the anchors "mid" or "end"; the default is the start.
  void Text(double x, double y, std::string_view text, std::string_view css);

  std::string Finish() const;

 private:
  std::string body_;
  double width_;
  double height_;
};

// A horizontal logarithmic axis in milliseconds from samples in microseconds.
class LogAxis {
 public:
  // The smallest range of "nice" values that holds both, drawn from `left` to `right`.
  LogAxis(double min, double max, double left, double right);
  double At(double value) const;
  std::vector<double> ticks() const;  // 1, 2, 5 per decade

 private:
  double low_;
  double high_;
  double left_;
  double right_;
};

// Round steps for a linear axis from 0 to `max`, at most seven of them; the last is not below `max`.
std::vector<double> LinearTicks(double max);

}  // namespace coffer::bench
