#include "call_train.h"

#include <fstream>

#include <pybind11/stl.h>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/own_arrays.h"
#include "holdfast/experiment/run_folder.h"
#include "holdfast/train/objective.h"
#include "holdfast/train/train_run.h"
#include "json_caster.h"
#include "subject.h"
#include "work.h"

namespace holdfast::python {
namespace {

// A Python module as objectives see it.
class ModuleTrainee final : public Trainee {
 public:
  ModuleTrainee(const py::function& training, const py::function& evaluating, bool modes_differ)
      : training_(training), evaluating_(evaluating), modes_differ_(modes_differ) {}

  at::Tensor training_logits(const at::Tensor& inputs, std::uint64_t) override { return call(training_, inputs); }
  at::Tensor logits(const at::Tensor& inputs) override { return call(modes_differ_ ? evaluating_ : training_, inputs); }
  bool modes_differ() const override { return modes_differ_; }

 private:
  static at::Tensor call(const py::function& function, const at::Tensor& inputs) {
    const py::gil_scoped_acquire locked;
    return py::cast<at::Tensor>(function(inputs));
  }

  const py::function &training_, &evaluating_;
  bool modes_differ_;
};

struct CheckedStep {
  std::shared_ptr<const Schema> schema;
  TrainBatch batch;
};

CheckedStep checked(const TrainStep& step, const Model* model) {
  const at::Tensor inputs = checked_batch(step.inputs, "x");
  const at::Tensor labels = checked_labels(step.labels, inputs.size(0), 0, "y").to(inputs.device());
  if (!(step.progress >= 0 && step.progress <= 1)) usage_error("progress: {} must be between 0 and 1", step.progress);
  const std::shared_ptr<const Schema> schema = schema_of(step.schema, "the schema", model, inputs, "x");
  return {schema,
          {.inputs = inputs,
           .labels = labels,
           .sample_ids = at::arange(inputs.size(0), at::kLong),
           .schema = *schema,
           .seed = step.seed,
           .progress = step.progress}};
}

StepLoss loss_of_step(const Objective& objective, Trainee& trainee, const TrainBatch& batch) {
  const at::AutoGradMode with_graph(true);
  Loss loss = loss_of(objective, trainee, batch);
  return {loss.total, loss.parts};
}

Json read_history(const std::vector<EpochRecord>& history) {
  Json lines = Json::array();
  for (const EpochRecord& record : history) lines.push_back(to_json(record));
  return lines;
}

}  // namespace

StepLoss module_loss(const std::string& objective, const py::function& training, const py::function& evaluating,
                     bool modes_differ, const TrainStep& step) {
  const std::unique_ptr<Objective> chosen = objectives().make(objective);
  const CheckedStep here = checked(step, nullptr);
  chosen->check_samples(*here.schema);
  ModuleTrainee trainee(training, evaluating, modes_differ);
  return loss_of_step(*chosen, trainee, here.batch);
}

StepLoss network_loss(const std::string& objective, const Model& model, const TrainStep& step) {
  if (model.network() == nullptr) usage_error("objective: the layers of {} cannot be seen: {}", model.name(), model.describe());
  const std::unique_ptr<Objective> chosen = objectives().make(objective);
  CheckedStep here = checked(step, &model);
  Network shared = *model.network();  // its tensors are the model's
  here.batch.inputs = here.batch.inputs.to(at::TensorOptions().device(shared.device()).dtype(shared.dtype()));
  here.batch.labels = here.batch.labels.to(shared.device());
  chosen->check(shared, *here.schema);
  shared.require_grad(true);
  const std::unique_ptr<Trainee> trainee = make_trainee(shared);
  return loss_of_step(*chosen, *trainee, here.batch);
}

Trained train(const Training& training) {
  const at::Tensor inputs = checked_batch(training.inputs, "inputs").to(at::kCPU, at::kFloat);
  const at::Tensor labels = checked_labels(training.labels, inputs.size(0), 0, "labels");
  for (const auto& [share, name] : {std::pair{training.validation, "validation"}, std::pair{training.test, "test"}}) {
    if (!(share >= 0 && share < 1)) usage_error("{}: {} must be at least 0 and below 1", name, share);
  }
  const std::shared_ptr<const Schema> schema = schema_of(training.schema, "the schema", training.start.get(), inputs, "inputs");
  TrainConfig config = training.config;
  TrainOptions& options = config.options;
  Dataset dataset =
      dataset_of_arrays(inputs, labels, *schema, config.dataset_seed, {.validation = training.validation, .test = training.test});
  dataset.name = config.dataset;
  validate(dataset);
  dataset.digest = content_digest(dataset);
  if (training.start) {
    if (training.start->network() == nullptr)
      usage_error("train: the layers of {} cannot be seen: {}", training.start->name(), training.start->describe());
    options.network = std::make_shared<const Network>(training.start->network()->clone());
    options.architecture = training.start->name();
  }
  if (!training.out.empty()) {
    const Json results =
        run_training(config, dataset, training.out, machine_facts(options.threads, options.device.str()), training.restart);
    std::ifstream file(training.out + "/history.jsonl");
    Json lines = Json::array();
    for (std::string line; std::getline(file, line);) lines.push_back(parse_json(line, training.out + "/history.jsonl"));
    return {load_model(training.out + "/model.safetensors", options.device), results, lines};
  }
  const TrainResult result = train_network(dataset, options);
  auto model = std::shared_ptr<Model>(make_model(result.network.to(options.device), schema->layout));
  model->set_name(result.architecture);
  Json results{{"epochs", result.history.size()}, {"kept_epoch", result.kept_epoch}};
  results["test"] = result.test ? to_json(*result.test) : Json();
  results["validation"] = result.validation ? to_json(*result.validation) : Json();
  return {model, results, read_history(result.history)};
}

void bind_train(py::module_& module) {
  using Unlocked = py::call_guard<Work>;
  py::class_<TrainStep>(module, "TrainStep")
      .def(
          py::init([](at::Tensor inputs, at::Tensor labels, std::shared_ptr<Schema> schema, std::uint64_t seed, double progress) {
            return TrainStep{std::move(inputs), std::move(labels), std::move(schema), seed, progress};
          }),
          py::arg("inputs"), py::arg("labels"), py::arg("schema").none(true), py::arg("seed"), py::arg("progress"));
  module.def("needs_layers", [](const std::string& objective) {
    const MethodInfo& info = objectives().info(parse_method_call(objective).name);
    return std::ranges::any_of(info.needs, [](const std::string& need) { return need.find("layers") != std::string::npos; });
  });
  module.def("module_loss", &module_loss, py::call_guard<py::gil_scoped_release>());
  module.def("network_loss", &network_loss, py::call_guard<py::gil_scoped_release>());
  module.def(
      "train",
      [](const std::string& settings, const std::string& name, at::Tensor inputs, at::Tensor labels,
         std::shared_ptr<Schema> schema, double validation, double test, std::shared_ptr<Model> start, at::Device device,
         int threads, const std::string& out, bool restart) {
        Training training{.config = read_train_config(Config::parse(settings, "train")),
                          .inputs = std::move(inputs),
                          .labels = std::move(labels),
                          .schema = std::move(schema),
                          .validation = validation,
                          .test = test,
                          .start = std::move(start),
                          .out = out,
                          .restart = restart};
        training.config.dataset = name;
        training.config.options.device = device;
        training.config.options.threads = threads;
        const Trained trained = train(training);
        return std::make_tuple(trained.model, trained.results, trained.history);
      },
      Unlocked());
}

}  // namespace holdfast::python
