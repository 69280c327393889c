#include "lockstep/conformance/serve/served_loader.h"

#include "lockstep/base/error.h"
#include "lockstep/conformance/serve/answers.h"
#include "lockstep/value/tensor_ops.h"

namespace lockstep::conformance {
namespace {

// A pass over either kind of loader.
template <typename Loader>
ServedLoader::Pass pass_over(Loader& loader) {
  return [pass = std::shared_ptr(loader.pass())] { return pass->next(); };
}

Json total_batch_size_of(const data::PreparedDataLoader& loader) {
  if (const auto size = loader.total_batch_size()) return *size;
  const Problem problem{
      .where = "total_batch_size", .expected = "a batch sampler with a batch size", .got = "one without"};
  const bool is_shared = loader.batch_sampler() && loader.batch_sampler()->wrapped();
  if (is_shared) throw TypeError(problem);  // the kind of multiplying nothing by the number of ranks
  throw AttributeError(problem);
}

// Rows as usual, each call noted.
data::SliceFunction recording_slice(std::shared_ptr<DatasetRecord> record) {
  return [record = std::move(record)](const Value& batch, std::int64_t begin, std::int64_t end, World world) {
    record->slices.push_back({begin, end, world.rank, world.size});
    return value::slice(batch, begin, end);
  };
}

}  // namespace

ServedLoader::ServedLoader(LoaderCase loader, Accelerator& accelerator, bool record_slices)
    : loader_(std::move(loader)), record_slices_(record_slices) {
  if (loader_.prepare) prepare(accelerator);
}

bool ServedLoader::prepare(Accelerator& accelerator) {
  const auto before = prepared_;
  if (before) {
    prepared_ = accelerator.prepare(before);
  } else if (record_slices_) {
    prepared_ =
        accelerator.prepare_data_loader(loader_.loader, {.slice_fn_for_dispatch = recording_slice(loader_.record)});
  } else {
    prepared_ = accelerator.prepare(loader_.loader);
  }
  return prepared_ == before;
}

ServedLoader ServedLoader::skipped(std::int64_t num_steps, const Accelerator& accelerator) const {
  auto rest = *this;
  if (prepared_) {
    rest.prepared_ = accelerator.skip_first_batches(prepared_, num_steps);
  } else {
    rest.loader_.loader = accelerator.skip_first_batches(loader_.loader, num_steps);
  }
  return rest;
}

data::PreparedDataLoader& ServedLoader::prepared() const {
  if (prepared_) return *prepared_;
  throw AttributeError({.where = "loader", .expected = "a prepared one", .got = "one that is not prepared"});
}

void ServedLoader::set_epoch(std::int64_t epoch) const { prepared().set_epoch(epoch); }

ServedLoader::Pass ServedLoader::pass() const { return prepared_ ? pass_over(*prepared_) : pass_over(loader_.loader); }

Json ServedLoader::end() const { return prepared_ ? Json(prepared_->end_of_dataloader()) : Json(); }
Json ServedLoader::remainder() const { return prepared_ ? Json(prepared_->remainder()) : Json(); }
Json ServedLoader::iteration() const { return prepared_ ? Json(prepared_->iteration()) : Json(); }

Json ServedLoader::summary() const {
  Json summary = {{"len", attempt([&] { return length(); })}};
  summary["total_batch_size"] = prepared_ ? attempt([&] { return total_batch_size_of(*prepared_); }) : Json();
  summary["total_dataset_length"] = prepared_ ? attempt([&] { return prepared_->total_dataset_length(); }) : Json();
  summary["iteration"] = iteration();
  summary["reads"] = loader_.record->reads.load();
  summary["epochs_seen"] = loader_.record->epochs_seen;
  return summary;
}

NamedLoaders loader_named_main(Arguments& arguments) {
  NamedLoaders cases;
  if (!arguments.has("loader")) arguments.refuse("loader", "a loader");
  auto loader = arguments.object("loader");
  cases.emplace_back("main", loader_from(loader));
  return cases;
}

NamedLoaders loaders_from(Arguments& arguments) {
  NamedLoaders cases;
  for (auto& [name, loader] : arguments.named_objects("loaders")) cases.emplace_back(name, loader_from(loader));
  return cases;
}

ServedLoaders::ServedLoaders(NamedLoaders cases, Accelerator& accelerator, bool record_slices) {
  for (auto& [name, loader] : cases) {
    loaders_.emplace_back(name, ServedLoader(std::move(loader), accelerator, record_slices));
  }
}

ServedLoader& ServedLoaders::find(const std::optional<std::string>& name) {
  for (auto& [known, loader] : loaders_) {
    if (!name || known == *name) return loader;
  }
  throw Unsupported("loader " + name.value_or("(none in the case)"));
}

}  // namespace lockstep::conformance
