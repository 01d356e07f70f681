import os, shutil
os.chdir('/work/wt/inputs')
def sub(p, pairs):
    s=open(p).read()
    for a,b in pairs:
        assert a in s, (p,a)
        s=s.replace(a,b,1)
    open(p,'w').write(s)
shutil.copy('/tmp/hold/packing.h','include/holdfast/model/packing.h')
shutil.copy('/tmp/hold/packing.cpp','src/model/packing.cpp')
shutil.copy('/tmp/hold/packed.cpp','src/model/torchscript/packed.cpp')
sub('include/holdfast/model/packing.h',[('''}  // namespace holdfast::model''','''// What a model file of several inputs, or of token ids, is to be given.
struct PackedRequest {
  std::vector<FileInput> inputs;
  std::optional<Layout> layout = {};  // of what is explained, where its shape does not say it
};

struct PackedModel {
  std::shared_ptr<const Model> model;  // takes packed samples
  std::optional<InputPacking> packing;  // none: the file takes one array of numbers, as it is
};

// As load_model, for a file that is given several inputs or whole numbers. `options.embedding` names the embedding of token ids.
PackedModel load_packed_model(const std::string& text, at::Device device, const ModelOptions& options, PackedRequest request);

}  // namespace holdfast::model'''),('#include "holdfast/data/layout.h"\n','#include "holdfast/data/layout.h"\n#include "holdfast/model/model.h"\n'),('#include <optional>\n','#include <memory>\n#include <optional>\n')])
# Script carries its packing
sub('src/model/torchscript/script.h',[('''  bool writes_to_input = false; ''','''  std::optional<InputPacking> packing;                    // where it takes one packed tensor in place of its own inputs
  bool writes_to_input = false; '''),('#include "holdfast/model/model.h"\n','#include "holdfast/model/packing.h"\n'),
('''// Edits a frozen graph so that it does''','''// Rewrites the graph so that it takes one packed tensor (packing.h). A file of one array that no embedding reads is left alone.
void take_packed_inputs(Script& script, const PackedRequest& request, const std::string& embedding);

// Edits a frozen graph so that it does''')])
s=open('src/model/torchscript/packed.cpp').read()
s=s.replace('Rewriter(Script& script, const ModelOptions& options) : script_(script), options_(options), graph_(*script.graph()) {}','Rewriter(Script& script, const PackedRequest& request, std::string embedding)\n      : script_(script), request_(request), embedding_(std::move(embedding)), graph_(*script.graph()) {}')
s=s.replace('options_.inputs','request_.inputs').replace('options_.layout','request_.layout').replace('options_.embedding','embedding_')
s=s.replace('  const ModelOptions& options_;\n','  const PackedRequest& request_;\n  std::string embedding_;\n')
s=s.replace('''void take_packed_inputs(Script& script, const ModelOptions& options) {
  if (!options.inputs.empty()) packed::Rewriter(script, options).run();
}''','''void take_packed_inputs(Script& script, const PackedRequest& request, const std::string& embedding) {
  packed::Rewriter(script, request, embedding).run();
}''')
open('src/model/torchscript/packed.cpp','w').write(s)
# samples: what is shown
sub('include/holdfast/data/samples.h',[('''// A shared copy, for Samples::schema.''','''// Rows [B, sample...] without their context.
at::Tensor without_context(const at::Tensor& rows, const Layout& layout);
// Maps as they are written: without context, and one value for each token, the sum of magnitudes over its embedding.
at::Tensor shown_maps(const at::Tensor& maps, const Layout& layout);

// A shared copy, for Samples::schema.''')])
sub('src/data/samples.cpp',[('''std::shared_ptr<const Schema> share_schema''','''at::Tensor without_context(const at::Tensor& rows, const Layout& layout) {
  if (layout.context == 0) return rows;
  const std::int64_t dim = layout.is_sequence() ? 2 : 1;
  return rows.slice(dim, 0, rows.size(dim) - layout.context).contiguous();
}

at::Tensor shown_maps(const at::Tensor& maps, const Layout& layout) {
  const at::Tensor own = without_context(maps, layout);
  return layout.kind == Layout::Kind::kTokens ? own.abs().sum(2) : own;
}

std::shared_ptr<const Schema> share_schema''')])
sub('src/cli/explain.cpp',[('''  const at::Tensor maps = scaled_maps(batch.maps, batch.log_scale);
  write_tensor(flags.out, maps);
''','''  const at::Tensor maps = scaled_maps(batch.maps, batch.log_scale);
  write_tensor(flags.out, shown_maps(maps, subject.samples.layout()));
''')])
sub('src/cli/attack.cpp',[('''  write_tensor(folder + "/perturbed.npy", result.perturbed);
  write_tensor(folder + "/original_attributions.npy", scaled_maps(result.original_maps, result.original_scale));
  write_tensor(folder + "/perturbed_attributions.npy", scaled_maps(result.perturbed_maps, result.perturbed_scale));
''','''  const Layout& layout = schema.layout;
  write_tensor(folder + "/perturbed.npy", without_context(result.perturbed, layout));
  write_tensor(folder + "/original_attributions.npy",
               shown_maps(scaled_maps(result.original_maps, result.original_scale), layout));
  write_tensor(folder + "/perturbed_attributions.npy",
               shown_maps(scaled_maps(result.perturbed_maps, result.perturbed_scale), layout));
'''),('''bool shape_tells(const Layout& layout) {
''','''bool shape_tells(const Layout& layout) {
  if (layout.kind == Layout::Kind::kTokens || layout.context > 0) return true;  // what is written has neither
''')])
# command line
sub('src/cli/common.h',[('''  std::string output_kind = "auto", output_name;
''','''  std::string output_kind = "auto", output_name, embedding;
  std::vector<std::string> all_inputs;  // each FILE or NAME=FILE; `inputs` is the file of the first
'''),('.output_name = output_name};','.output_name = output_name, .embedding = embedding};')])
sub('src/cli/identity.cpp',[('''  if (!subject.output_name.empty())''','''  if (!subject.embedding.empty()) config["embedding"] = subject.embedding;
  if (subject.all_inputs.size() > 1) config["inputs"] = subject.all_inputs;
  if (!subject.output_name.empty())''')])
sub('src/cli/common.cpp',[('''  command.add_option("--inputs", inputs, "Samples, .npy [B, ...]")->required(required);
''','''  command.add_option("--embedding", embedding, "The embedding that token ids go to; default: the one that reads them");
  command
      .add_option("--inputs", all_inputs,
                  "Samples, .npy [B, ...]; token ids are integers [B, tokens]. NAME=FILE.npy, repeated, for files of several inputs")
      ->allow_extra_args(false)
      ->each([this](const std::string& text) {
        if (inputs.empty()) inputs = file_of_input(text);
      })
      ->required(required);
'''),('''// negative_weights -> --negative-weights''','''// "mask=FILE.npy" -> mask; a file's name may have the sign too.
std::string name_of_input(const std::string& text) {
  const std::size_t sign = text.find('=');
  return sign == std::string::npos || file_exists(text) ? "" : text.substr(0, sign);
}
std::string file_of_input(const std::string& text) {
  const std::string name = name_of_input(text);
  return name.empty() ? text : text.substr(name.size() + 1);
}

// The inputs as they lie in their files.
struct GivenInputs {
  std::vector<at::Tensor> values;
  PackedRequest request;
};
GivenInputs read_given(const SubjectFlags& flags) {
  GivenInputs given;
  std::vector<std::string> fixed;
  if (!flags.schema.empty()) {
    const Json schema = read_json(flags.schema);
    if (schema.is_object() && schema.contains("fixed")) fixed = schema.at("fixed").get<std::vector<std::string>>();
    if (schema.is_object() && schema.contains("layout")) given.request.layout = read_schema(flags.schema).layout;
  }
  for (const std::string& text : flags.all_inputs) {
    const std::string name = name_of_input(text), path = file_of_input(text);
    at::Tensor values = to_tensor(read_npy(path));
    if (values.dim() < 1 || values.numel() == 0) input_error("{}: holds no samples", path);
    if (!given.values.empty() && values.size(0) != given.values[0].size(0))
      input_error("{}: has {} samples, {} has {}", path, values.size(0), flags.inputs, given.values[0].size(0));
    if (values.is_floating_point()) values = read_inputs(path);
    const bool is_fixed = std::find(fixed.begin(), fixed.end(), name) != fixed.end();
    given.request.inputs.push_back(
        {.name = name, .type = values.scalar_type(), .shape = values.sizes().slice(1).vec(), .fixed = is_fixed});
    given.values.push_back(std::move(values));
  }
  for (const std::string& name : fixed) {
    const auto& inputs = given.request.inputs;
    if (std::none_of(inputs.begin(), inputs.end(), [&](const FileInput& input) { return input.name == name; }))
      input_error("{}: fixed: no input is called '{}' (--inputs {}=FILE.npy)", flags.schema, name, name);
  }
  return given;
}

// Whether the model file must say what it does with its inputs: there are several, or they may be token ids.
bool needs_packing(const SubjectFlags& flags) {
  if (flags.all_inputs.size() > 1 || !name_of_input(flags.all_inputs.front()).empty()) return true;
  const RawArray array = read_npy(flags.inputs);
  return is_integer(array.type) && array.shape.size() == 2 && file_exists(flags.model) && !flags.model.ends_with(".safetensors");
}

Subject load_packed_subject(const SubjectFlags& flags, at::Device device) {
  const GivenInputs given = read_given(flags);
  PackedModel loaded = load_packed_model(flags.model, device, flags.reading(), given.request);
  if (!loaded.packing) return {};
  Samples samples{.inputs = loaded.packing->pack(given.values)};
  Schema schema = Schema::of(loaded.packing->layout());
  samples.schema = share_schema(schema);
  samples.ids = at::arange(samples.count(), at::kLong);
  if (!flags.baseline.empty() || !flags.background.empty())
    usage_error("--baseline and --background are not taken beside token ids or several inputs");
  std::shared_ptr<const Model> model = with_logits(std::move(loaded.model), flags.reading().output_kind, samples.inputs);
  const std::int64_t classes = count_classes(*model, samples.inputs);
  if (!flags.targets.empty()) samples.targets = read_labels(flags.targets, samples.count(), classes);
  if (!flags.labels.empty()) samples.labels = read_labels(flags.labels, samples.count(), classes);
  return {flags.inputs, flags.model, model, std::move(samples)};
}

// negative_weights -> --negative-weights'''),('''  Samples samples{.inputs = read_inputs(flags.inputs, {.allow_non_finite''','''  if (needs_packing(flags)) {
    if (Subject packed = load_packed_subject(flags, device); packed.model != nullptr) return packed;
  }
  Samples samples{.inputs = read_inputs(flags.inputs, {.allow_non_finite'''),
('''  return {model_file(model), inputs, targets, labels, schema, baseline, background};''','''  std::vector<std::string> files{model_file(model), targets, labels, schema, baseline, background};
  for (const std::string& text : all_inputs) files.push_back(file_of_input(text));
  return files;'''),('"--output-kind", "--output-name",','"--output-kind", "--output-name", "--embedding",'),
('#include "holdfast/model/outputs.h"\n','#include "holdfast/core/npy.h"\n#include "holdfast/model/packing.h"\n')])
