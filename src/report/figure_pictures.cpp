// The panels of an experiment's figures as PNG: a row a sample, with what the page shows of it.
#include <algorithm>

#include <fmt/format.h>

#include "canvas.h"
#include "holdfast/core/files.h"
#include "holdfast/data/schema.h"
#include "holdfast/report/experiment.h"
#include "worst.h"

namespace holdfast::report {
namespace {

constexpr Colour kPaper{255, 255, 255};
constexpr Colour kInk{29, 39, 48};
constexpr std::int64_t kMargin = 10, kLine = 18, kTextSize = 12;
constexpr std::int64_t kSide = 168;  // of a picture, about

std::string first_line(const SamplePictures& sample) {
  return fmt::format("sample {}, predicted {}: {:.3f}", sample.sample, sample.prediction, sample.value);
}

Image draw_panel(const std::string& title, const std::vector<SamplePictures>& samples) {
  const Image& first = samples.front().pictures.front().second;
  const std::int64_t scale = std::max<std::int64_t>(1, kSide / std::max<std::int64_t>(1, first.width));
  const std::int64_t width = first.width * scale + kMargin, height = first.height * scale + kMargin + 2 * kLine;
  const auto columns = static_cast<std::int64_t>(samples.front().pictures.size());
  Canvas canvas(kMargin + kLine + height * static_cast<std::int64_t>(samples.size()), kMargin + width * columns, kPaper);
  canvas.text(kMargin, kMargin, title, kTextSize, kInk);
  std::int64_t top = kMargin + kLine;
  for (const SamplePictures& sample : samples) {
    canvas.text(top + kLine / 2, kMargin, first_line(sample), kTextSize, kInk);
    std::int64_t left = kMargin;
    for (const auto& [name, image] : sample.pictures) {
      canvas.text(top + kLine + kLine / 2, left, name, kTextSize, kInk);
      canvas.picture(top + 2 * kLine, left, image, scale);
      left += width;
    }
    top += height;
  }
  return canvas.image();
}

}  // namespace

void write_figure_pictures(const std::string& run) {
  const Json results = read_json(run + "/results.json");
  for (const Json& figure : results.at("figures")) {
    int count = 0;
    for (const Json& panel : figure.at("panels")) {
      const std::string arrays = run + "/" + panel.at("arrays").get<std::string>();
      const std::vector<SamplePictures> samples = sample_pictures(arrays, read_schema(arrays + "/schema.json"));
      if (samples.empty()) continue;
      make_folders(run + "/figures");
      write_png(fmt::format("{}/figures/{}_{}.png", run, figure.at("name").get<std::string>(), ++count),
                draw_panel(panel.at("title"), samples));
    }
  }
}

}  // namespace holdfast::report
