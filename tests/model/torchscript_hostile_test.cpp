// Files that attack who opens them (make_hostile.py): each is refused in one sentence before any of it is run, and none writes.

#include <torch/csrc/jit/runtime/operator.h>

#include "../../src/model/torchscript/pickle.h"
#include "../../src/model/torchscript/refuse.h"
#include "holdfast/core/files.h"
#include "support/errors.h"
#include "torchscript_files.h"

namespace holdfast::model {
namespace {

class Hostile : public ::testing::TestWithParam<std::string> {};  // "name<tab>what the refusal says"

TEST_P(Hostile, IsRefusedInOneSentenceAndWritesNothing) {
  const std::size_t tab = GetParam().find('\t');
  EXPECT_ERROR(load_script("hostile/" + GetParam().substr(0, tab)), kInput, GetParam().substr(tab + 1));
  EXPECT_FALSE(file_exists(torchscript_file("hostile/written")));
}
INSTANTIATE_TEST_SUITE_P(Files, Hostile, ::testing::ValuesIn(listed("hostile/refusals.txt")),
                         [](const auto& test) { return test.param.substr(0, test.param.find('\t')); });

TEST(Hostile, ThereAreFilesOfEveryKind) {
  EXPECT_GE(listed("hostile/refusals.txt").size(), 35u);
}

TEST(HarmlessScripts, LoadWhetherTorchOrAnotherProgramWroteTheArchive) {
  for (const char* name : {"harmless", "rewritten"}) {
    EXPECT_EQ(load_script(std::string("hostile/") + name)->logits(at::ones({2, 6})).size(1), 3) << name;
  }
}

TEST(HarmlessScripts, WhatAFilePrintsIsLeftOut) {
  const auto model = load_script("hostile/prints");
  EXPECT_THAT(model->describe(), ::testing::HasSubstr("what the file prints is left out"));
}

// A warning goes to the terminal as it is, and can hold what terminals obey.
TEST(HarmlessScripts, WhatAFileWarnsOfIsLeftOut) {
  ::testing::internal::CaptureStderr();
  const auto model = load_script("hostile/warns");
  model->logits(at::ones({2, 6}));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::Not(::testing::HasSubstr("title of the terminal")));
  EXPECT_THAT(model->describe(), ::testing::Not(::testing::HasSubstr("left out")));
}

// Every operator of this torch that takes a text, and so could name a file, was looked at. A new torch may bring others.
TEST(OperatorsThatCompute, NoneThatTakesATextTouchesAFile) {
  std::size_t refused = 0;
  for (const auto& operation : torch::jit::getAllOperators()) {
    const std::string name = operation->schema().operator_name().name;
    for (const char* word : {"file", "path", "url", "address", "host", "port", "socket", "command", "library"}) {
      for (const c10::Argument& argument : operation->schema().arguments()) {
        const bool is_text = argument.type()->annotation_str().find("str") != std::string::npos;
        if (!is_text || argument.name().find(word) == std::string::npos) continue;
        EXPECT_FALSE(torchscript::only_computes(name)) << name << " takes " << argument.name();
        ++refused;
      }
    }
  }
  EXPECT_GE(refused, 1u);
}

TEST(OperatorsThatCompute, AreThoseOfAtenAndTheBasics) {
  for (const char* name : {"aten::relu", "aten::_convolution", "aten::einsum", "aten::__and__", "aten::max_pool2d_with_indices",
                           "prim::If", "prim::ListConstruct"})
    EXPECT_TRUE(torchscript::only_computes(name)) << name;
  for (const char* name : {"aten::from_file", "aten::save", "aten::set_", "aten::_index_put_impl_", "aten::_reshape_alias_copy",
                           "aten::max_pool2d_with_indices_backward", "aten::segment_reduce", "aten::sparse_coo_tensor",
                           "prim::rpc_sync", "prim::PythonOp", "prim::TimePoint", "c10d::send", "inductor::_reinterpret_tensor",
                           "symm_mem::_rendezvous", "profiler::_record_function_enter", "relu"})
    EXPECT_FALSE(torchscript::only_computes(name)) << name;
}

// A damaged file is refused or computes; whatever torch makes of it, the program goes on.
TEST(DamagedScripts, AByteChangedAnywhereIsRefusedOrHarmless) {
  const Bytes whole = read_bytes(torchscript_file("hostile/harmless.pt"));
  std::size_t refused = 0, tried = 0;
  for (std::size_t at = 0; at < whole.size(); at += 3, ++tried) {
    Bytes damaged = whole;
    damaged[at] ^= std::byte{0x21};
    try {
      torchscript::Archive::check(damaged, "damaged.pt");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, tried / 2);
}

}  // namespace
}  // namespace holdfast::model
