// Pairs made from another dataset: are the two of the same class? Half of each part's pairs are.
//
// A part of the pairs is made from the same part of the dataset, and no pair appears twice. Graphs as in the R2ET paper: training
// pairs are any two training graphs, validation and test pairs join a training graph (first side) with one of that part.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/dataset.h"

namespace holdfast::data::pairs {

const MethodInfo kInfo{
    .name = "pairs",
    .summary = "pairs of samples of another dataset: of the same class or not",
    .options = {{"of", "mnist", anything(),
                 "the dataset; with options of its own where they are needed: csv(path=t.csv,label=y)"},
                {"count", 2000, at_least(2), "pairs in all, at most: 60 % for training, 20 % for validation, 20 % for test"},
                {"classes", "", anything(), "only samples of these classes (numbers with spaces between them)"}},
    .notes =
        "the sides lie side by side: inputs are [N, 2, ...]. Fewer pairs are made where there are not as many different ones"};

using Positions = std::vector<std::int64_t>;
using Pair = std::pair<std::int64_t, std::int64_t>;

// Draws different pairs from `first` x `second`; when both are the same list, a pair and its mirror image are one.
class PairMaker {
 public:
  PairMaker(const Positions& first, const Positions& second, const std::int64_t* labels, RandomStream stream)
      : first_(first), second_(second), labels_(labels), within_(&first == &second), stream_(stream) {
    std::map<std::int64_t, std::int64_t> first_sizes;
    for (const std::int64_t position : first_) ++first_sizes[labels_[position]];
    for (const std::int64_t position : second_) by_class_[labels_[position]].push_back(position);
    for (const auto& [label, size] : first_sizes) {
      const auto others = static_cast<std::int64_t>(by_class_[label].size());
      same_ += within_ ? size * (size - 1) / 2 : size * others;
    }
    const auto a = static_cast<std::int64_t>(first_.size()), b = static_cast<std::int64_t>(second_.size());
    different_ = (within_ ? a * (a - 1) / 2 : a * b) - same_;
  }

  // Draws pairs in random order; half of them are of one class.
  std::vector<Pair> make(std::int64_t count) {
    const std::int64_t half = std::min({count / 2, same_, different_});
    std::set<Pair> chosen;
    while (static_cast<std::int64_t>(chosen.size()) < half) chosen.insert(draw(true));
    while (static_cast<std::int64_t>(chosen.size()) < 2 * half) chosen.insert(draw(false));
    const std::vector<Pair> sorted(chosen.begin(), chosen.end());
    std::vector<Pair> result;
    for (const std::int64_t place : stream_.permutation(2 * half)) result.push_back(sorted[static_cast<std::size_t>(place)]);
    return result;
  }

 private:
  std::int64_t pick(const Positions& positions) { return positions[stream_.below(positions.size())]; }

  Pair draw(bool same) {
    while (true) {
      const std::int64_t a = pick(first_);
      const Positions& mates = same ? by_class_[labels_[a]] : second_;
      if (mates.empty()) continue;
      const std::int64_t b = pick(mates);
      if (a == b || (labels_[a] == labels_[b]) != same) continue;
      return within_ && b < a ? Pair{b, a} : Pair{a, b};
    }
  }

  const Positions& first_;
  const Positions& second_;
  const std::int64_t* labels_;
  bool within_;
  RandomStream stream_;
  std::map<std::int64_t, Positions> by_class_;
  std::int64_t same_ = 0, different_ = 0;
};

// Describes everything twice, side after side.
Schema pair_schema(const Schema& one) {
  Schema schema = one;
  schema.layout.sides = 2;
  const std::int64_t inputs = one.layout.inputs();
  schema.features.insert(schema.features.end(), one.features.begin(), one.features.end());
  for (Group& group : schema.groups) group.name = "first " + group.name;
  for (Group group : one.groups) {
    group.name = "second " + group.name;
    for (std::int64_t& column : group.columns) column += inputs;
    schema.groups.push_back(std::move(group));
  }
  schema.classes = {"different", "same"};
  return schema;
}

class Pairs final : public DatasetLoader {
 public:
  explicit Pairs(const Options& options) : of_(options.word("of")), count_(options.integer("count")) {
    if (parse_method_call(of_).name == kInfo.name) usage_error("pairs(of=pairs): pairs of pairs cannot be made");
    (void)datasets().make(of_);  // throws for a name or option that is not known
    const std::string& text = options.word("classes");
    for (const char *place = text.data(), *end = text.data() + text.size(); place < end;) {
      std::int64_t label = 0;
      const auto [next, status] = std::from_chars(place, end, label);
      if (status != std::errc() || (next < end && *next != ' '))
        usage_error("pairs(classes={}): expected numbers with spaces between them", text);
      classes_.push_back(label);
      place = next < end ? next + 1 : next;
    }
  }

  Source source() const override { return datasets().make(of_)->source(); }
  std::string found_at(const LoadContext& context) const override { return datasets().make(of_)->found_at(context); }

  Dataset load(const LoadContext& context) const override {
    const Dataset one = load_dataset(of_, context);
    check_classes(one);
    const auto* labels = one.labels.const_data_ptr<std::int64_t>();
    const bool graphs = one.schema.layout.kind == Layout::Kind::kGraph;
    if (one.schema.layout.sides != 1) usage_error("pairs(of={}): its samples are pairs already", of_);

    const Positions parts[] = {chosen(one.train, labels), chosen(one.validation, labels), chosen(one.test, labels)};
    const std::int64_t counts[] = {count_ - 2 * (count_ / 5), count_ / 5, count_ / 5};
    Dataset dataset;
    Positions* positions[] = {&dataset.train, &dataset.validation, &dataset.test};
    std::vector<Pair> pairs;
    for (std::uint64_t part = 0; part < 3; ++part) {
      const Positions& first = graphs ? parts[0] : parts[part];
      PairMaker maker(first, parts[part], labels, RandomStream(context.seed, "data.pairs", part));
      for (const Pair& pair : maker.make(counts[part])) {
        positions[part]->push_back(static_cast<std::int64_t>(pairs.size()));
        pairs.push_back(pair);
      }
    }
    assemble(dataset, one, pairs);
    return dataset;
  }

 private:
  void check_classes(const Dataset& one) const {
    for (const std::int64_t label : classes_) {
      if (label < 0 || label >= one.classes())
        usage_error("pairs: class {} is not in 0 to {} of {}", label, one.classes() - 1, of_);
    }
  }

  Positions chosen(const Positions& part, const std::int64_t* labels) const {
    if (classes_.empty()) return part;
    Positions result;
    std::copy_if(part.begin(), part.end(), std::back_inserter(result),
                 [&](std::int64_t i) { return std::find(classes_.begin(), classes_.end(), labels[i]) != classes_.end(); });
    return result;
  }

  void assemble(Dataset& dataset, const Dataset& one, const std::vector<Pair>& pairs) const {
    if (pairs.empty()) input_error("pairs(of={}): there are no two samples of one class and of different classes to pair", of_);
    Positions first, second;
    for (const auto& [a, b] : pairs) {
      first.push_back(a);
      second.push_back(b);
    }
    const at::Tensor first_labels = one.labels_of(first), second_labels = one.labels_of(second);
    dataset.inputs = at::stack({one.inputs_of(first), one.inputs_of(second)}, 1);
    dataset.labels = (first_labels == second_labels).to(at::kLong);
    dataset.schema = pair_schema(one.schema);
    dataset.notes = one.notes;
    if (static_cast<std::int64_t>(pairs.size()) + 3 < count_) {  // up to one a part is lost to halving
      dataset.notes.push_back(fmt::format("{} pairs instead of {}: there are not more different ones", pairs.size(), count_));
    }
  }

  std::string of_;
  std::int64_t count_;
  Positions classes_;
};

void add_to(Registry<DatasetLoader>& registry) {
  registry.add<Pairs>(kInfo);
}

}  // namespace holdfast::data::pairs
