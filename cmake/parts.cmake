# The libraries Holdfast stands on, and the settings of our own targets.
find_package(Threads REQUIRED)

# What is missing is named at once, by the Debian package that has it. CMake leaves a message that begins with a space in one line.
set(holdfast_missing "")
macro(holdfast_find name package)
  find_package(${name} QUIET ${ARGN})
  if(NOT ${name}_FOUND)
    list(APPEND holdfast_missing ${package})
  endif()
endmacro()
holdfast_find(ZLIB zlib1g-dev)
holdfast_find(PNG libpng-dev)
holdfast_find(JPEG libjpeg62-turbo-dev)
holdfast_find(CURL libcurl4-openssl-dev)
holdfast_find(Freetype libfreetype-dev)
holdfast_find(OpenSSL libssl-dev COMPONENTS Crypto)
holdfast_find(Eigen3 libeigen3-dev NO_MODULE)
holdfast_find(fmt libfmt-dev)
holdfast_find(nlohmann_json nlohmann-json3-dev)
holdfast_find(tomlplusplus libtomlplusplus-dev)
holdfast_find(Protobuf libprotobuf-dev)
find_path(HOLDFAST_ONNX_HEADERS onnx/onnx_pb.h)
find_library(HOLDFAST_ONNX_MESSAGES onnx_proto)
if(NOT HOLDFAST_ONNX_HEADERS OR NOT HOLDFAST_ONNX_MESSAGES)
  list(APPEND holdfast_missing libonnx-dev)
endif()
if(HOLDFAST_WITH_TORCH)
  holdfast_find(CLI11 libcli11-dev)
endif()
find_program(HOLDFAST_NPM npm)
find_program(HOLDFAST_NPX npx)
if(NOT HOLDFAST_PAGE AND NOT (HOLDFAST_NPM AND HOLDFAST_NPX))
  list(APPEND holdfast_missing nodejs npm)
endif()
if(holdfast_missing)
  list(JOIN holdfast_missing " " holdfast_missing)
  message(FATAL_ERROR " Holdfast needs what is not installed; on Debian: sudo apt-get install ${holdfast_missing}")
endif()

# The messages of ONNX files. Their library was made with these two settings.
add_library(holdfast_onnx INTERFACE)
target_include_directories(holdfast_onnx SYSTEM INTERFACE $<BUILD_INTERFACE:${HOLDFAST_ONNX_HEADERS}>)
target_compile_definitions(holdfast_onnx INTERFACE ONNX_ML=1 ONNX_NAMESPACE=onnx)
target_link_libraries(holdfast_onnx INTERFACE ${HOLDFAST_ONNX_MESSAGES} protobuf::libprotobuf)

# Optional: zlib does the same, at half the speed.
find_path(HOLDFAST_LIBDEFLATE_HEADERS libdeflate.h)
find_library(HOLDFAST_LIBDEFLATE deflate)

# Optional: by Gloo several ranks train one network (torch's wheel has the library and not its headers); by NCCL they do it on GPUs.
find_path(HOLDFAST_GLOO_HEADERS gloo/config.h)

add_library(holdfast_parts INTERFACE)
target_include_directories(holdfast_parts INTERFACE
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(holdfast_parts INTERFACE Threads::Threads ZLIB::ZLIB PNG::PNG JPEG::JPEG CURL::libcurl OpenSSL::Crypto Freetype::Freetype
                      fmt::fmt nlohmann_json::nlohmann_json tomlplusplus::tomlplusplus)
if(HOLDFAST_LIBDEFLATE AND HOLDFAST_LIBDEFLATE_HEADERS)
  target_link_libraries(holdfast_parts INTERFACE ${HOLDFAST_LIBDEFLATE})
endif()
target_compile_features(holdfast_parts INTERFACE cxx_std_20)

find_program(HOLDFAST_CCACHE ccache)
if(HOLDFAST_CCACHE)
  # Precompiled headers need the two kinds of sloppiness; without them every file misses.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${HOLDFAST_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# Glue and tests are compiled more often than run. Under the sanitizers tests take half the time to compile at -O0; without them little
# is saved, and they run longer. The precompiled header is an optimised one: what uses it has -O1, and that only before GCC 13, which
# wants the header's own level. A second header at -O0 would save less than it costs.
set(holdfast_lighter $<IF:$<CONFIG:Release>,-O1,-O0>)
set(holdfast_lighter_torch $<$<AND:$<CONFIG:Release>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-O1>)

# About fifteen sources at a time, in batches of one size. To take up the precompiled header costs two seconds, more than most files
# themselves, and what fifteen files make of a template is made once: fifteen at a time take half the time of six. Hence names in
# anonymous namespaces must differ within a stage (kTopKInfo, not kInfo), or lie in a namespace of their own.
function(holdfast_together target)
  if(NOT HOLDFAST_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  math(EXPR parts "(${count} + 7) / 15")
  if(parts LESS 1)
    set(parts 1)
  endif()
  math(EXPR each "(${count} + ${parts} - 1) / ${parts}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${each})
endfunction()

function(holdfast_settings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast $<$<BOOL:${HOLDFAST_WERROR}>:-Werror>
                         -Wno-missing-field-initializers)
  # GCC's precompiled headers and ccache both need this to agree on what was included.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
  if(HOLDFAST_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${HOLDFAST_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${HOLDFAST_SANITIZE})
  endif()
endfunction()

if(HOLDFAST_WITH_TORCH)
  # Torch lies in the Python environment; a caller may also give CMAKE_PREFIX_PATH or Torch_DIR. Under pip it is pip's Python.
  if(SKBUILD)
    set(HOLDFAST_PYTHON ${Python3_EXECUTABLE})
  endif()
  if(NOT HOLDFAST_PYTHON)
    find_program(HOLDFAST_PYTHON python3 HINTS ${CMAKE_CURRENT_SOURCE_DIR}/.venv/bin NO_CMAKE_PATH REQUIRED)
  endif()
  # While it builds, pip hides the environment's packages by variables of Python; -I does not read them.
  # A build folder may be used again for another environment; what was found of the first one's torch is forgotten.
  if(DEFINED CACHE{HOLDFAST_TORCH_OF} AND NOT HOLDFAST_TORCH_OF STREQUAL HOLDFAST_PYTHON)
    get_cmake_property(of_python CACHE_VARIABLES)
    list(FILTER of_python INCLUDE REGEX "^_Python3_|^Python3_INCLUDE_DIR$")
    if(SKBUILD)
      list(REMOVE_ITEM of_python Python3_INCLUDE_DIR)  # which it gives, of the new one
    endif()
    foreach(found ${of_python} Torch_DIR Caffe2_DIR TORCH_LIBRARY c10_LIBRARY C10_CUDA_LIBRARY kineto_LIBRARY HOLDFAST_TORCH_PYTHON HOLDFAST_CUDA_COMPILES
                  HOLDFAST_NCCL_COMPILES HOLDFAST_NCCL_HEADERS)
      unset(${found} CACHE)
    endforeach()
  endif()
  set(HOLDFAST_TORCH_OF ${HOLDFAST_PYTHON} CACHE INTERNAL "")
  foreach(flags -Wignore "-Wignore;-I")
    if(NOT Torch_DIR AND NOT torch_prefix)
      execute_process(COMMAND ${HOLDFAST_PYTHON} ${flags} -c "import torch.utils; print(torch.utils.cmake_prefix_path)"
                      OUTPUT_VARIABLE torch_prefix OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
  endforeach()
  list(APPEND CMAKE_PREFIX_PATH ${torch_prefix})
  include(cuda_of_torch)
  find_package(Torch QUIET)
  if(NOT Torch_FOUND)
    message(FATAL_ERROR " Holdfast is built against the torch that is installed, and ${HOLDFAST_PYTHON} has none: pip install torch==2.13.0")
  endif()
  separate_arguments(torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  set(HOLDFAST_SUMS "")
  set(HOLDFAST_SUM_HEADERS "")
  if(HOLDFAST_GLOO_HEADERS)
    list(APPEND HOLDFAST_SUMS HOLDFAST_GLOO)
  endif()
  if(TARGET torch_cuda)
    holdfast_check_cuda_headers()
  endif()
  if(HOLDFAST_CUDA_COMPILES)
    find_path(HOLDFAST_NCCL_HEADERS nccl.h HINTS ${TORCH_INSTALL_PREFIX}/../nvidia/nccl/include)
    if(HOLDFAST_NCCL_HEADERS)
      include(CheckCXXSourceCompiles)
      set(CMAKE_REQUIRED_FLAGS "-std=c++20 -DUSE_C10D_NCCL")
      set(CMAKE_REQUIRED_INCLUDES ${TORCH_INCLUDE_DIRS} ${HOLDFAST_NCCL_HEADERS} ${CUDAToolkit_INCLUDE_DIRS})
      set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
      check_cxx_source_compiles("#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>\nint main() {}" HOLDFAST_NCCL_COMPILES)
      unset(CMAKE_REQUIRED_FLAGS)
      unset(CMAKE_REQUIRED_INCLUDES)
      unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
    endif()
    if(HOLDFAST_NCCL_COMPILES)
      list(APPEND HOLDFAST_SUMS HOLDFAST_NCCL)
      list(APPEND HOLDFAST_SUM_HEADERS ${HOLDFAST_NCCL_HEADERS} ${CUDAToolkit_INCLUDE_DIRS})
    endif()
  endif()

  # One precompiled header for all of ours. ATen and autograd, not torch/torch.h: GCC instantiates what a precompiled header
  # left pending in every file again, which for torch/torch.h is three seconds each.
  file(WRITE ${CMAKE_BINARY_DIR}/pch.cpp.in "// Owner of the precompiled header.\n")
  configure_file(${CMAKE_BINARY_DIR}/pch.cpp.in ${CMAKE_BINARY_DIR}/pch.cpp COPYONLY)
  add_library(holdfast_pch OBJECT ${CMAKE_BINARY_DIR}/pch.cpp)
  target_link_libraries(holdfast_pch PRIVATE holdfast_parts)
  target_precompile_headers(holdfast_pch PRIVATE <algorithm> <functional> <map> <memory> <string> <vector>
                             ${PROJECT_SOURCE_DIR}/include/holdfast/core/torch.h <fmt/format.h> <nlohmann/json.hpp>)

  function(holdfast_torch_settings target)
    target_compile_options(${target} PRIVATE ${torch_flags})
    # Torch's headers bring a newer fmt than Debian's and hide it; its symbols are in no library, so it is used from the headers.
    target_compile_definitions(${target} PRIVATE FMT_HEADER_ONLY)
    target_include_directories(${target} SYSTEM PUBLIC "$<BUILD_INTERFACE:${TORCH_INCLUDE_DIRS}>")
  endfunction()
  function(holdfast_use_torch target)
    holdfast_torch_settings(${target})
    target_link_libraries(${target} PUBLIC ${TORCH_LIBRARIES})
    target_precompile_headers(${target} REUSE_FROM holdfast_pch)
    # Programs are compiled with -fPIE, the header with -fPIC, and GCC takes it for its own settings only; the last one counts.
    get_target_property(kind ${target} TYPE)
    if(kind STREQUAL "EXECUTABLE")
      target_compile_options(${target} PRIVATE -fPIC)
    endif()
  endfunction()
  holdfast_settings(holdfast_pch)
  holdfast_torch_settings(holdfast_pch)
  target_link_libraries(holdfast_pch PRIVATE ${TORCH_LIBRARIES})
endif()
