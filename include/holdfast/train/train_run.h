// The run of `holdfast train`: loads the data, trains, and writes the folder
//
//     model.safetensors        the weights; ARCHITECTURE:RUN/model.safetensors loads them
//     history.jsonl            one line an epoch: loss and its parts, validation metrics, learning rate, seconds
//     checkpoint.safetensors   what the next call into the same folder continues from
//     results.json             accuracy and AUC of the test and validation samples with 95 % intervals; no times: the same
//                              bytes for every run of the same configuration on one kind of machine
//     manifest.json            resolved configuration, dataset, machine and timings
//     test/                    inputs.npy, labels.npy and schema.json of the first 1000 test samples, to try the model on
//
// A folder whose training is finished is not trained again: its files are written anew from the checkpoint.
#pragma once

#include <string>

#include "holdfast/core/communicator.h"
#include "holdfast/core/json.h"
#include "holdfast/core/stages.h"
#include "holdfast/train/train_config.h"

namespace holdfast::train {

// `machine`: facts about machine and versions that the caller wants in the manifest. `restart`: the files of a training that lies
// in the folder are removed first. `ranks`: the processes that do this together; rank 0 writes. Returns results.json.
Json run_training(const TrainConfig& config, const std::string& folder, const Json& machine = Json::object(),
                  bool restart = false, Communicator* ranks = nullptr);
// The same for a dataset that is loaded already, which the configuration only names.
Json run_training(const TrainConfig& config, const Dataset& dataset, const std::string& folder, const Json& machine, bool restart,
                  Communicator* ranks = nullptr);

}  // namespace holdfast::train
