#!/usr/bin/env bash
# Torch for CUDA, as PyPI's packages lie in an environment, is found without CUDA's toolkit; without its libraries that is said.
# Only the places of files count here, so they are empty.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/site/torch/{lib,share/cmake/Torch} "$work"/site/nvidia/{cu13,cudnn}/{lib,include} "$work/project"
touch "$work/site/torch/lib/libtorch_cuda.so" "$work/site/nvidia/cu13/lib/libcudart.so.13"
cat >"$work/project/CMakeLists.txt" <<'P'
cmake_minimum_required(VERSION 3.25)
project(found LANGUAGES NONE)
include(cuda_of_torch)
if(TARGET torch::cudart)
  get_target_property(library torch::cudart INTERFACE_LINK_LIBRARIES)
  message(STATUS "library ${library} headers ${CUDAToolkit_INCLUDE_DIRS}")
else()
  message(STATUS "no CUDA")
endif()
P
configure() {
  rm -rf "$work/build"
  cmake -S "$work/project" -B "$work/build" -DCMAKE_MODULE_PATH="$here/../../cmake" -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON "$@" 2>&1
}
expect() { grep -qF -- "$1" <<<"$found" || { printf 'expected: %s\nfound: %s\n' "$1" "$found"; exit 1; }; }
for torch in -Dtorch_prefix="$work/site/torch/share/cmake" -DTorch_DIR="$work/site/torch/share/cmake/Torch"; do
  found=$(configure "$torch")
  expect "library $work/site/nvidia/cu13/lib/libcudart.so.13 headers $work/site/nvidia/cu13/include;$work/site/nvidia/cudnn/include"
done
rm -r "$work/site/nvidia"
found=$(configure "$torch" || true)
expect "This torch is for CUDA, whose libraries were not found"
rm "$work/site/torch/lib/libtorch_cuda.so"
found=$(configure "$torch")
expect "no CUDA"
echo "cuda: found without a toolkit"
