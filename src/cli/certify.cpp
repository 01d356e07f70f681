// holdfast certify: what is proven about explanations in a ball, and how far an attack comes down to it.
#include <algorithm>
#include <cstdio>
#include <memory>

#include <fmt/ranges.h>

#include "command.h"
#include "common.h"
#include "holdfast/core/log.h"
#include "holdfast/core/torch.h"
#include "holdfast/core/words.h"
#include "holdfast/experiment/certify.h"
#include "holdfast/report/text_table.h"

namespace holdfast::cli {
namespace {

struct CertifyCommand {
  CommonFlags common;
  SubjectFlags subject;
  AttackFlags attack;
  bool json = false;
};

// What does not apply, once for all epsilons where the reason is the same.
void print_inapplicable(const Json& curve) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const Json& point : curve) {
    for (const Json& other : point.at("inapplicable")) {
      const std::string text =
          fmt::format("{} does not apply: {}", other.at("name").get<std::string>(), other.at("why").get<std::string>());
      auto known = std::ranges::find(reasons, text, &std::pair<std::string, std::vector<std::string>>::first);
      if (known == reasons.end()) known = reasons.insert(reasons.end(), {text, {}});
      known->second.push_back(fmt::format("{:g}", point.at("epsilon").get<double>()));
    }
  }
  for (const auto& [text, epsilons] : reasons) {
    if (epsilons.size() == curve.size()) {
      fmt::print("{}\n", text);
    } else {
      fmt::print("at epsilon {}, {}\n", fmt::join(epsilons, ", "), text);
    }
  }
}

void print(const Json& result) {
  const Json curve = result.contains("curve") ? result.at("curve") : Json::array({result});
  const auto name = [](const Json& part) { return part.at("name").get<std::string>(); };
  const auto mean = [](const Json& part) { return fixed(part.at("mean").get<double>(), 4); };
  std::vector<std::vector<std::string>> rows;
  for (const Json& point : curve) {
    const std::string epsilon = fmt::format("{:g}", point.at("epsilon").get<double>());
    for (const Json& certificate : point.at("certificates"))
      rows.push_back({epsilon, "at least", name(certificate), mean(certificate)});
    if (point.at("certificates").size() > 1)
      rows.push_back({epsilon, "at least", "the best of them, sample by sample", mean(point.at("best"))});
    if (point.at("best").is_null()) rows.push_back({epsilon, "at least", "nothing is proven", "-"});
    rows.push_back({epsilon, "at most", name(point.at("attacked")), mean(point.at("attacked"))});
  }
  fmt::print("{} of {}, {}, in {} balls\n", counted(result.at("samples").get<std::int64_t>(), "sample"),
             result.at("model").get<std::string>(), result.at("explainer").get<std::string>(),
             result.at("norm").get<std::string>());
  std::fputs(text_table({"epsilon", "lowest value", "by", result.at("metric").get<std::string>()}, rows).c_str(), stdout);
  const auto has_radius = [&](const Json& certificate) { return name(certificate) != "exact"; };
  if (result.at("norm") == "linf" &&
      std::ranges::any_of(curve, [&](const Json& point) { return std::ranges::any_of(point.at("certificates"), has_radius); }))
    fmt::print("radius: of the l2 ball that holds the linf ball\n");
  print_inapplicable(curve);
}

void run_certify(CertifyCommand& flags) {
  flags.common.apply();
  const Trial trial = flags.attack.trial();
  const Subject subject = load_subject(flags.subject, flags.common.torch_device());
  const Json result = certify_subject(subject, trial, static_cast<std::uint64_t>(flags.common.seed), flags.common.tiles());
  if (flags.json) {
    std::fputs(dump_json(result).c_str(), stdout);
  } else {
    print(result);
  }
}

}  // namespace

void add_certify(CLI::App& app, Outcome&) {
  auto flags = std::make_shared<CertifyCommand>();
  CLI::App* command = add_command(
      app, "certify", "Proves how much of an explanation no small change can break, and attacks it for comparison",
      "holdfast certify --model mlp:examples/model.safetensors --inputs examples/inputs.npy --explainer saliency --metric "
      "'top_k(k=4)' --norm l2 --epsilon 0.1");
  flags->subject.add_to(*command, true);
  flags->attack.add_to(*command, true, false);
  command->add_flag("--json", flags->json, "Print the certificates as JSON, with a value for every sample");
  flags->common.add_to(*command);
  command->callback([flags] { run_certify(*flags); });
}

}  // namespace holdfast::cli
