// A model that is read when it is first used.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "holdfast/core/stages.h"
#include "holdfast/model/model.h"

namespace holdfast::experiment {

// Copies share the model; several threads may ask for it at once.
class LateModel {
 public:
  using Read = std::function<std::shared_ptr<const Model>()>;

  LateModel() = default;
  LateModel(std::shared_ptr<const Model> model) : state_(std::make_shared<State>()) { state_->model = std::move(model); }
  LateModel(std::unique_ptr<Model> model) : LateModel(std::shared_ptr<const Model>(std::move(model))) {}
  explicit LateModel(Read read) : state_(std::make_shared<State>()) { state_->read = std::move(read); }

  const Model& operator*() const { return *get(); }
  const Model* operator->() const { return get().get(); }
  const std::shared_ptr<const Model>& get() const {
    std::call_once(state_->once, [this] {
      if (!state_->model) state_->model = state_->read();
    });
    return state_->model;
  }

 private:
  struct State {
    std::once_flag once;
    Read read;
    std::shared_ptr<const Model> model;
  };

  std::shared_ptr<State> state_;
};

}  // namespace holdfast::experiment
