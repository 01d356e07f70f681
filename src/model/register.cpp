// The list of architectures, one line each: the namespace of the architecture's file. `holdfast list` shows them in this order.
#include "holdfast/core/method_list.h"
#include "holdfast/model/model.h"

namespace holdfast::model {

#define HOLDFAST_ARCHITECTURES(METHOD)      \
  METHOD(Architecture, linear)              \
  METHOD(Architecture, mlp)                 \
  METHOD(Architecture, cnn_small)           \
  METHOD(Architecture, cnn_chen)            \
  METHOD(Architecture, chen_resnets)        \
  METHOD(Architecture, resnet9)             \
  METHOD(Architecture, cifar_resnet20)      \
  METHOD(Architecture, small_cifar_resnets) \
  METHOD(Architecture, squeezenet)          \
  METHOD(Architecture, mobilenet)           \
  METHOD(Architecture, siamese_cnn)         \
  METHOD(Architecture, siamese_gcn)

HOLDFAST_REGISTRY(Architecture, architectures, "architecture", HOLDFAST_ARCHITECTURES)

}  // namespace holdfast::model
