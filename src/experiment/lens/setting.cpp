#include "setting.h"

#include <algorithm>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/train/objective.h"

namespace holdfast::lens {
namespace {

// Inner and outer points of the robust trainings.
struct Inner {
  std::int64_t steps, path_steps, outer_steps;
};

Setting digits(const ExperimentContext& context, const std::string& name) {
  const bool mnist = name == "mnist";
  Setting setting{
      .name = name,
      .dataset = name,
      .architecture = context.by_scale<std::string>("cnn_chen(width=8x16x64)", "cnn_chen(width=16x32x256)", "cnn_chen"),
      .preset = name,
      .epsilon = mnist ? 0.3 : 0.1,
      .step_size = 0.01,
      .iterations = context.by_scale<std::int64_t>(10, 100, 100),
      .t = mnist ? 200 : 100,
      .k = 100,
      .path_steps = context.by_scale<std::int64_t>(5, 20, 100),
      .images = context.by_scale<std::int64_t>(10, 100, 500),
      .training_images = context.by_scale<std::int64_t>(3000, 40000, 50000),
      .batch_size = context.by_scale<std::int64_t>(50, 10, 50),
      .steps = context.by_scale<std::int64_t>(60, 4000, 100000),
      .natural_steps = context.by_scale<std::int64_t>(60, 4000, 25000),
      .learning_rate = context.by_scale(2e-3, 1e-3, 1e-4)};
  return setting;
}

Setting residual(const ExperimentContext& context, const std::string& name) {
  const bool flower = name == "flower", paper = context.scale == Scale::kFull;
  const std::int64_t side = flower ? context.by_scale<std::int64_t>(32, 32, 128) : 32;
  const std::int64_t k = flower ? 1000 * side * side / (128 * 128) : 100;  // the same share of the pixels
  return {.name = name,
          .dataset = flower ? fmt::format("flowers17(size={})", side) : "gtsrb",
          .architecture = flower ? "flower_resnet" : "gtsrb_resnet",
          .preset = name,
          .epsilon = 8.0 / 255,
          .step_size = (context.quick() ? 3.0 : 1.0) / 255,
          .iterations = context.by_scale<std::int64_t>(5, flower ? 100 : 50, flower ? 100 : 50),
          .t = k,
          .k = k,
          .path_steps = context.by_scale<std::int64_t>(5, 20, 100),
          .images = context.by_scale<std::int64_t>(10, 100, flower ? 272 : 500),
          .training_images = flower ? 800 : context.by_scale<std::int64_t>(3000, 25600, 25600),
          .batch_size = flower ? context.by_scale<std::int64_t>(20, 12, 16) : context.by_scale<std::int64_t>(50, 64, 64),
          .steps = flower ? context.by_scale<std::int64_t>(200, 600, 70000) : context.by_scale<std::int64_t>(60, 4000, 70000),
          .optimizer = paper ? "sgd(momentum=0.9)" : "adam",
          .schedule = paper ? "paper" : "cosine",
          .learning_rate = paper ? 0.01 : 3e-3,
          .weight_decay = 2e-4};
}

Setting imagenet(const ExperimentContext& context) {
  return {.name = "imagenet",
          .dataset = "imagenet_samples",
          .architecture = "squeezenet1_0",
          .epsilon = 8.0 / 255,
          .step_size = (context.quick() ? 3.0 : 0.5) / 255,
          .iterations = context.by_scale<std::int64_t>(2, 30, 300),
          .t = 1000,
          .k = 1000,
          .path_steps = context.by_scale<std::int64_t>(2, 10, 100),
          .images = context.by_scale<std::int64_t>(2, 10, 100),
          .diversity = 3};
}

Inner inner_of(const ExperimentContext& context, const Setting& setting) {
  if (context.scale == Scale::kCpu) return {7, 5, 10};
  if (context.scale == Scale::kQuick) return {2, 2, 3};
  const Options paper = objectives().options("ig_sum_norm(preset=" + setting.preset + ")");
  return {paper.integer("steps"), paper.integer("inner_path_steps"), paper.integer("path_steps")};
}

// The residual networks' rate in the paper is a tenth in the first 500 of 70,000 steps and after 60,000; here it rises in a line
// over the first 500.
std::string paper_schedule(std::int64_t an_epoch) {
  return fmt::format("step(at={},warmup={})", 60000 / an_epoch, 500.0 / static_cast<double>(an_epoch));
}

std::string call_of(const MethodCall& call) {
  std::string options;
  for (const auto& [name, value] : call.options) options += fmt::format("{}{}={}", options.empty() ? "" : ",", name, value);
  return fmt::format("{}({})", call.name, options);
}

// The recipe with the options of `changes` in the place of its own.
std::string changed_recipe(const std::string& recipe, const MethodCall& changes) {
  const auto changed = [&](const std::string& name) {
    return std::ranges::any_of(changes.options, [&](const auto& option) { return option.first == name; });
  };
  MethodCall call = parse_method_call(recipe);
  std::erase_if(call.options, [&](const auto& option) { return changed(option.first); });
  call.options.insert(call.options.end(), changes.options.begin(), changes.options.end());
  if (!changed("steps") || changed("step_size")) return call_of(call);
  std::erase_if(call.options, [](const auto& option) { return option.first == "step_size"; });
  const Options before = objectives().options(recipe), after = objectives().options(call_of(call));
  const double distance = before.real("step_size") * static_cast<double>(before.integer("steps"));
  call.options.emplace_back("step_size", fmt::format("{}", distance / static_cast<double>(after.integer("steps"))));
  return call_of(call);
}

// A method with a k, a radius and more.
std::string of_top(const char* metric, const Setting& setting, const std::string& more) {
  return fmt::format("{}(k={}{})", metric, setting.k, more);
}

}  // namespace

Setting setting(const ExperimentContext& context, const std::string& name) {
  if (name == "mnist" || name == "fashion_mnist") return digits(context, name);
  if (name == "gtsrb" || name == "flower") return residual(context, name);
  HOLDFAST_CHECK(name == "imagenet");
  return imagenet(context);
}

void lighten(const ExperimentContext& context, Setting& setting) {
  setting.images = context.by_scale<std::int64_t>(2, 15, 200);
  if (context.scale != Scale::kCpu) return;
  setting.iterations = 30;
  setting.step_size = setting.epsilon / 15;
  setting.path_steps = 10;
}

Json to_json(const Setting& setting) {
  Json json{{"dataset", setting.dataset},
            {"architecture", setting.architecture},
            {"epsilon", setting.epsilon},
            {"step size", setting.step_size},
            {"iterations", setting.iterations},
            {"t", setting.t},
            {"k", setting.k},
            {"path steps", setting.path_steps},
            {"images", setting.images},
            {"diversity", setting.diversity}};
  if (setting.steps > 0) {
    json["training"] = {{"steps, about", setting.steps},          {"samples, at most", setting.training_images},
                        {"batch size", setting.batch_size},       {"optimizer", setting.optimizer},
                        {"learning rate", setting.learning_rate}, {"schedule", setting.schedule},
                        {"weight decay", setting.weight_decay}};
    if (setting.natural_steps > 0 && setting.natural_steps != setting.steps)
      json["training"]["steps of natural training, about"] = setting.natural_steps;
  }
  return json;
}

std::shared_ptr<const ExperimentData> data_of(ExperimentContext& context, const Setting& setting) {
  if (!context.wants(setting.name)) return nullptr;
  const auto whole = context.dataset(setting.dataset);
  const auto wanted = static_cast<std::size_t>(setting.training_images);
  if (!whole || setting.steps == 0 || whole->data.train.size() <= wanted) return whole;
  ExperimentData part = *whole;
  part.data.train.resize(wanted);
  part.key += fmt::format(", first {} training samples", wanted);
  return std::make_shared<const ExperimentData>(std::move(part));
}

std::vector<std::int64_t> rows_of(const ExperimentData& data, const Setting& setting) {
  const std::vector<std::int64_t> all = data.data.test.empty() ? data.data.rows("all") : data.data.test;
  const std::size_t count = std::min(all.size(), static_cast<std::size_t>(setting.images));
  std::vector<std::int64_t> rows;
  for (std::size_t i = 0; i < count; ++i) rows.push_back(all[i * all.size() / count]);
  return rows;
}

std::string recipe_of(const ExperimentContext& context, const Setting& setting, const std::string& training) {
  if (training == "natural") return "vanilla";
  const MethodCall call = parse_method_call(training);
  if (!call.options.empty()) return changed_recipe(recipe_of(context, setting, call.name), call);
  const Inner inner = inner_of(context, setting);
  if (training == "pgd_long") {
    // As many gradient evaluations as steady_map has.
    const auto steps = static_cast<std::int64_t>(evaluations_of(recipe_of(context, setting, "steady_map")));
    return fmt::format("pgd(preset={},steps={},step_size={},warmup=0.3)", setting.preset, steps,
                       2.5 * setting.epsilon / static_cast<double>(steps));
  }
  std::string options = "preset=" + setting.preset;
  if (context.scale != Scale::kFull) {
    options +=
        fmt::format(",steps={},step_size={},warmup=0.3", inner.steps, 2.5 * setting.epsilon / static_cast<double>(inner.steps));
  }
  if (training.starts_with("ig_"))
    options += fmt::format(",inner_path_steps={},path_steps={}", inner.path_steps, inner.outer_steps);
  return fmt::format("{}({})", training, options);
}

double evaluations_of(const std::string& recipe) {
  const std::string name = parse_method_call(recipe).name;
  if (name == "vanilla") return 1;
  const Options options = objectives().options(recipe);
  const auto steps = static_cast<double>(options.integer("steps"));
  if (name == "pgd") return steps + 1;
  const auto path = static_cast<double>(options.integer("path_steps"));
  if (name == "steady_map") {
    const double points = options.word("explanation") == "saliency" ? 1 : path;
    if (options.real("weight") == 0) return steps + 6 * points;  // the maximum is the prediction's alone
    return 3 * points * steps + points + 6 * points;  // the clean map once for the maximum, both with their graph in the loss
  }
  const double outer = name == "ig_norm" ? path + 1 : path;
  return 3 * static_cast<double>(options.integer("inner_path_steps")) * steps + 3 * outer;
}

std::vector<Subject> subjects(ExperimentContext& context, const Setting& setting, const ExperimentData& data,
                              const std::vector<std::string>& trainings) {
  const std::uint64_t seeds = context.quick() ? 1 : 3;
  const auto an_epoch = static_cast<std::int64_t>(epoch_batches(data.data.train, setting.batch_size, 0, 0).size());
  std::vector<TrainOptions> options;
  for (const std::string& training : trainings) {
    const std::int64_t steps = training == "natural" && setting.natural_steps > 0 ? setting.natural_steps : setting.steps;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      options.push_back({.architecture = setting.architecture,
                         .recipe = recipe_of(context, setting, training),
                         .weight_decay = setting.weight_decay,
                         .epochs = std::max<std::int64_t>(1, (steps + an_epoch / 2) / an_epoch),
                         .batch_size = setting.batch_size,
                         .optimizer = setting.optimizer,
                         .learning_rate = setting.learning_rate,
                         .schedule = setting.schedule == "paper" ? paper_schedule(an_epoch) : setting.schedule,
                         .early_stopping = {.restore_best = false},
                         .seed = context.seed + seed});
    }
  }
  std::vector<TrainedModel> trained = context.train(data, options, "train " + setting.name);
  std::vector<Subject> result;
  for (std::size_t i = 0; i < trainings.size(); ++i) {
    Subject subject{trainings[i], {}};
    for (std::uint64_t seed = 0; seed < seeds; ++seed) subject.seeds.push_back(std::move(trained[i * seeds + seed]));
    result.push_back(std::move(subject));
  }
  return result;
}

std::vector<DatasetCase> trained_cases(ExperimentContext& context, const std::vector<Setting>& settings,
                                       const std::vector<std::string>& trainings, Json& record) {
  std::vector<DatasetCase> cases;
  for (const Setting& setting : settings) {
    DatasetCase one{.setting = setting, .data = data_of(context, setting)};
    if (!one.data) continue;
    one.subjects = subjects(context, setting, *one.data, trainings);
    Json& entry = record[setting.name] = to_json(setting);
    for (const std::string& training : trainings) {
      const std::string recipe = recipe_of(context, setting, training);
      entry["trainings"][training] = {{"recipe", recipe}, {"gradient evaluations a sample", evaluations_of(recipe)}};
    }
    cases.push_back(std::move(one));
  }
  return cases;
}

Subject published(const ExperimentContext& context, const std::string& training, const std::string& model) {
  TrainedModel loaded;
  loaded.key = model;
  loaded.model = load_model(model, context.device);
  return {training, {std::move(loaded)}};
}

std::string integrated_gradients(const Setting& setting) {
  return fmt::format("integrated_gradients(steps={},target=logit)", setting.path_steps);
}
std::string saliency() {
  return "saliency(target=logit)";
}

// From the clean image itself nothing would move on MNIST: integrated gradients are zero where the image is, so the 200 top
// pixels have all of the map, and its magnitude has a kink there. A hundredth of epsilon away it has not.
std::string top_t(const Setting& setting) {
  return fmt::format("top_t(steps={},step_size={},t={},start=near)", setting.iterations, setting.step_size, setting.t);
}
std::string mass_center(const Setting& setting) {
  return fmt::format("mass_center(steps={},step_size={})", setting.iterations, setting.step_size);
}
std::string random_sign(const Setting& setting) {
  return fmt::format("random_sign(steps={},step_size={},mode=walk)", setting.iterations, setting.step_size);
}
std::string lens_objective(const Setting& setting) {
  return fmt::format("lens(steps={},step_size={},t={},w=1,start=near)", setting.iterations, setting.step_size, setting.t);
}

std::string top_k(const Setting& setting) {
  return of_top("top_k", setting, "");
}
std::string precision(const Setting& setting, std::int64_t w) {
  return of_top("lens_precision", setting, fmt::format(",w={}", w));
}
std::string recall(const Setting& setting, std::int64_t w) {
  return of_top("lens_recall", setting, fmt::format(",w={}", w));
}
std::string precision_div(const Setting& setting, std::int64_t w) {
  return of_top("lens_precision_div", setting, fmt::format(",w={},diversity={}", w, setting.diversity));
}
std::string recall_div(const Setting& setting, std::int64_t w) {
  return of_top("lens_recall_div", setting, fmt::format(",w={},diversity={}", w, setting.diversity));
}
std::string top_k_div(const Setting& setting) {
  return of_top("top_k_div", setting, fmt::format(",diversity={}", setting.diversity));
}

std::vector<std::string> measures(const Setting& setting) {
  std::vector<std::string> all{top_k(setting), top_k_div(setting),   "spearman",
                               "kendall",      "lens_spearman(w=1)", "lens_kendall(w=1)"};
  for (std::int64_t w = 1; w <= 5; ++w) {
    all.push_back(precision(setting, w));
    all.push_back(precision_div(setting, w));
  }
  for (const std::int64_t w : {1, 2, 3}) {
    all.push_back(recall(setting, w));
    all.push_back(recall_div(setting, w));
  }
  return all;
}

}  // namespace holdfast::lens
