// One function for each built-in architecture; architectures() calls them.
#pragma once

#include "holdfast/model/model.h"

namespace holdfast {

void register_linear(Registry<Architecture>& registry);
void register_mlp(Registry<Architecture>& registry);
void register_cnn_small(Registry<Architecture>& registry);
void register_cnn_chen(Registry<Architecture>& registry);
void register_chen_resnets(Registry<Architecture>& registry);  // gtsrb_resnet, flower_resnet
void register_resnet9(Registry<Architecture>& registry);
void register_cifar_resnet20(Registry<Architecture>& registry);
void register_small_cifar_resnets(Registry<Architecture>& registry);  // cifar_resnet2b, cifar_resnet4b
void register_squeezenet(Registry<Architecture>& registry);
void register_mobilenet(Registry<Architecture>& registry);
void register_siamese_cnn(Registry<Architecture>& registry);
void register_siamese_gcn(Registry<Architecture>& registry);

}  // namespace holdfast
