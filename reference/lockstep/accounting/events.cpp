#include "lockstep/accounting/events.h"

#include <array>
#include <nlohmann/json.hpp>

namespace lockstep::accounting {
namespace {

using Json = nlohmann::ordered_json;

Json fields(const RunBegin& e) { return {{"world_size", e.world_size}, {"backend", e.backend}}; }
Json fields(const EpochBegin& e) { return {{"loader", e.loader}, {"epoch", e.epoch}}; }
Json fields(const Batch& e) { return {{"loader", e.loader}, {"indices", e.indices}, {"padding", e.padding}}; }
Json fields(const Forward& e) { return {{"edge", e.edge == Edge::begin ? "begin" : "end"}}; }
Json fields(const Backward& e) {
  return {{"edge", e.edge == Edge::begin ? "begin" : "end"}, {"synchronising", e.synchronising}};
}
Json fields(const Collective& e) {
  Json json = {{"op", e.op},       {"group", e.group},   {"ranks", e.ranks},
               {"seq", e.seq},     {"dtype", e.dtype},   {"elements", e.elements},
               {"bytes", e.bytes}, {"shapes", e.shapes}, {"asynchronous", e.asynchronous}};
  if (!e.reduce_op.empty()) json["reduce_op"] = e.reduce_op;
  if (e.peer >= 0) json["peer"] = e.peer;
  if (e.tag != 0) json["tag"] = e.tag;
  if (!e.label.empty()) json["label"] = e.label;
  return json;
}
Json fields(const Reduced& e) {
  return {{"parameters", e.parameters}, {"group", e.group}, {"divisor", e.divisor}, {"bytes", e.bytes}};
}
Json fields(const Clipped& e) { return {{"by", e.by}, {"limit", e.limit}, {"norm", e.norm}}; }
Json fields(const OptimizerStep& e) { return {{"skipped", e.skipped}, {"learning_rates", e.learning_rates}}; }
Json fields(const SchedulerStep& e) { return {{"learning_rates", e.learning_rates}}; }
Json fields(const GeneratorUse& e) { return {{"generator", e.generator}, {"use", e.use}}; }

}  // namespace

std::string_view name_of(const Event& event) {
  constexpr std::array names = {"run_begin",      "epoch_begin",    "batch",    "forward",
                                "backward",       "collective",     "reduced",  "clipped",
                                "optimizer_step", "scheduler_step", "generator"};
  static_assert(names.size() == std::variant_size_v<Event>);
  return names.at(event.index());
}

std::string to_json_line(const Stamp& stamp, const Event& event) {
  Json line = {{"v", 1},
               {"rank", stamp.rank},
               {"step", stamp.step},
               {"micro_step", stamp.micro_step},
               {"phase", to_word(stamp.phase)},
               {"event", name_of(event)}};
  line.update(std::visit([](const auto& e) { return fields(e); }, event));
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace lockstep::accounting
