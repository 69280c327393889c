#include "lockstep/sim/report/wait_drawing.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include "lockstep/sim/report/waiting.h"
#include "lockstep/sim/report/wording.h"

namespace lockstep::sim::report {

namespace {

constexpr std::size_t kMaxSingleRanks = 16;  // more are drawn as groups
constexpr std::size_t kMaxNodes = 40;        // more are too many to see anything
constexpr double kNodeRadius = 24;
constexpr double kPitch = 4.5 * kNodeRadius;  // from node to node, so that arrows between neighbours can be seen

struct Point {
  double x = 0;
  double y = 0;
};

struct Node {
  std::vector<int> ranks;
  std::string description;
  std::string style;
  Point centre;
};

struct Arrow {
  std::size_t from = 0;
  std::size_t to = 0;

  auto operator<=>(const Arrow&) const = default;
};

// Whole numbers: no locale writes a comma into them.
std::string number(double value) { return std::to_string(std::lround(value)); }
std::string at(Point point) { return number(point.x) + " " + number(point.y); }

class Drawing {
 public:
  explicit Drawing(const Verdict& verdict) : verdict_(verdict), waiting_(verdict) {
    add_nodes();
    place_nodes();
    for (const auto& [rank, node] : node_of_) add_arrows(rank, node);
  }

  [[nodiscard]] bool is_drawable() const { return !arrows_.empty() && nodes_.size() <= kMaxNodes; }

  void write(HtmlWriter& to) const {
    const std::string side = number(2 * centre());
    const auto svg = to.element("svg", {{"viewBox", "0 0 " + side + " " + side},
                                        {"width", side},
                                        {"height", side},
                                        {"role", "img"},
                                        {"aria-label", "who waits for whom"}});
    {
      const auto definitions = to.element("defs");
      for (const char* style : {"arrow", "cycle"}) write_arrow_head(to, style);
    }
    for (const auto& [arrow, is_on_cycle] : arrows_) write_arrow(to, arrow, is_on_cycle);
    for (const Node& node : nodes_) write_node(to, node);
  }

 private:
  void add_nodes() {
    const bool is_grouped = verdict_.ranks.size() > kMaxSingleRanks;
    std::map<std::string, std::size_t> groups;
    for (const RankStanding& standing : verdict_.ranks) {
      const std::string description = description_of(standing);
      std::string key = std::to_string(standing.rank);
      if (is_grouped) key = description + " for " + list_ranks(waiting_.awaited_by(standing.rank));
      const auto [group, is_new] = groups.emplace(key, nodes_.size());
      if (is_new)
        nodes_.push_back({.ranks = {}, .description = description, .style = style_of(standing), .centre = {}});
      Node& node = nodes_[group->second];
      node.ranks.push_back(standing.rank);
      if (verdict_.first == standing.rank) node.style += " first";
      node_of_[standing.rank] = group->second;
    }
    for (const Edge& edge : verdict_.edges) {
      add_unknown(edge.from);
      add_unknown(edge.to);
    }
  }

  // A document may leave out where a rank stands.
  void add_unknown(int rank) {
    if (!node_of_.emplace(rank, nodes_.size()).second) return;
    nodes_.push_back({.ranks = {rank}, .description = "unknown", .style = "node", .centre = {}});
  }

  static std::string description_of(const RankStanding& standing) {
    const std::string call = standing_text(standing);
    const std::string place = place_text(standing);
    return std::string(to_word(standing.state)) + (call.empty() ? "" : ", " + call) +
           (place.empty() ? "" : ", at " + place);
  }

  [[nodiscard]] std::string style_of(const RankStanding& standing) const {
    const auto& cycle = waiting_.cycle();
    const bool is_on_cycle = std::find(cycle.begin(), cycle.end(), standing.rank) != cycle.end();
    return "node " + std::string(to_word(standing.state)) + (is_on_cycle ? " cycle" : "");
  }

  // The circle is wide enough for its nodes to stand apart.
  [[nodiscard]] double radius() const {
    return std::max(100.0, static_cast<double>(nodes_.size()) * kPitch / (2 * std::numbers::pi));
  }
  [[nodiscard]] double centre() const { return radius() + 2 * kNodeRadius; }

  void place_nodes() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const double turn = static_cast<double>(i) / static_cast<double>(nodes_.size());
      const double angle = 2 * std::numbers::pi * turn - std::numbers::pi / 2;  // the first is at the top
      nodes_[i].centre = {centre() + radius() * std::cos(angle), centre() + radius() * std::sin(angle)};
    }
  }

  void add_arrows(int rank, std::size_t node) {
    for (const int awaited : waiting_.awaited_by(rank)) {
      const auto target = node_of_.find(awaited);
      if (target == node_of_.end() || target->second == node) continue;  // an arrow leads to another node
      bool& is_on_cycle = arrows_[{.from = node, .to = target->second}];
      is_on_cycle = is_on_cycle || waiting_.is_on_cycle({.from = rank, .to = awaited});
    }
  }

  // Its id is found by the style sheet as well as by the arrows.
  static void write_arrow_head(HtmlWriter& to, const std::string& style) {
    const auto marker = to.element("marker", {{"id", "head-" + style},
                                              {"class", style},
                                              {"viewBox", "0 0 10 10"},
                                              {"refX", "9"},
                                              {"refY", "5"},
                                              {"markerUnits", "userSpaceOnUse"},
                                              {"markerWidth", "11"},
                                              {"markerHeight", "11"},
                                              {"orient", "auto"}});
    to.empty("path", {{"d", "M 0 0 L 10 5 L 0 10 z"}});
  }

  // From rim to rim, bent to the left of its way, so that there and back are two lines.
  void write_arrow(HtmlWriter& to, const Arrow& arrow, bool is_on_cycle) const {
    const Point from = nodes_[arrow.from].centre;
    const Point target = nodes_[arrow.to].centre;
    const double length = std::hypot(target.x - from.x, target.y - from.y);
    const Point along = {(target.x - from.x) / length, (target.y - from.y) / length};
    const double gap = kNodeRadius + 3;
    const Point begin = {from.x + along.x * gap, from.y + along.y * gap};
    const Point end = {target.x - along.x * gap, target.y - along.y * gap};
    const double bend = std::clamp(0.15 * (length - 2 * gap), 6.0, 20.0);
    const Point middle = {(begin.x + end.x) / 2 + along.y * bend, (begin.y + end.y) / 2 - along.x * bend};
    const std::string style = is_on_cycle ? "cycle" : "arrow";
    to.empty("path", {{"class", "way " + style},
                      {"d", "M " + at(begin) + " Q " + at(middle) + " " + at(end)},
                      {"marker-end", "url(#head-" + style + ")"}});
  }

  static void write_node(HtmlWriter& to, const Node& node) {
    const auto group = to.element("g", {{"class", node.style}});
    const std::string ranks = list_ranks(node.ranks);
    to.leaf("title", ranks + ": " + node.description);
    to.empty("circle", {{"cx", number(node.centre.x)}, {"cy", number(node.centre.y)}, {"r", number(kNodeRadius)}});
    to.leaf("text", ranks.substr(ranks.find(' ') + 1), {{"x", number(node.centre.x)}, {"y", number(node.centre.y)}});
  }

  const Verdict& verdict_;
  Waiting waiting_;
  std::vector<Node> nodes_;
  std::map<int, std::size_t> node_of_;  // by rank
  std::map<Arrow, bool> arrows_;        // and whether they are on the cycle
};

}  // namespace

bool draw_waiting(const Verdict& verdict, HtmlWriter& to) {
  const Drawing drawing(verdict);
  if (drawing.is_drawable()) drawing.write(to);
  return drawing.is_drawable();
}

}  // namespace lockstep::sim::report
