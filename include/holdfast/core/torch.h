// The parts of torch that our sources use: tensors, gradient mode, threads and autograd. Which header holds what differs between
// releases (2.11 and 2.13 are built against); the differences stay here. Public headers include <ATen/core/Tensor.h> instead.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
