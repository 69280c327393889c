#include "lockstep/sim/report/text_report.h"

#include <algorithm>
#include <vector>

#include "lockstep/sim/report/comparison.h"
#include "lockstep/sim/report/waiting.h"
#include "lockstep/sim/report/wording.h"

namespace lockstep::sim::report {

namespace {

enum class Colour { none, bold, dim, red, yellow, green };

struct Cell {
  std::string text;
  Colour colour = Colour::none;
};
using Table = std::vector<std::vector<Cell>>;

Colour colour_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::ok: return Colour::green;
    case Outcome::straggler:
    case Outcome::unchecked:
    case Outcome::interrupted: return Colour::yellow;
    default: return Colour::red;
  }
}

Colour colour_of(RankState state) {
  switch (state) {
    case RankState::failed: return Colour::red;
    case RankState::blocked: return Colour::yellow;
    default: return Colour::none;
  }
}

// How many columns a terminal gives to a text: as many as it has code points. Good for names and paths.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

class TextReport {
 public:
  TextReport(const Verdict& verdict, const TextOptions& options) : verdict_(verdict), options_(options) {}

  std::string write() {
    line(painted(std::string(to_word(verdict_.outcome)) + ":", colour_of(verdict_.outcome)) + " " +
         painted(one_line(verdict_.cause), Colour::bold));
    add_ranks();
    if (verdict_.outcome == Outcome::mismatch) add_comparison();
    add_waiting();
    add_failures();
    add_what_else();
    return text_;
  }

 private:
  void add_ranks() {
    if (verdict_.ranks.empty()) return;
    Table table = {{{"ranks"}, {"state"}, {"in"}, {"step"}, {"at"}, {"of"}}};
    for (Cell& cell : table.front()) cell.colour = Colour::dim;
    for (const RankGroup& group : group_alike(verdict_)) {
      const RankStanding& standing = *group.standing;
      const std::string step = step_text(standing);
      table.push_back({{numbers(group.ranks)},
                       {std::string(to_word(standing.state)), colour_of(standing.state)},
                       {standing_text(standing)},
                       {step.empty() ? "" : step.substr(step.find(' ') + 1)},
                       {place_text(standing)},
                       {label_text(standing)}});
    }
    section("");
    add(table);
  }

  void add_comparison() {
    const Comparison comparison = compare_calls(verdict_);
    if (comparison.rows.size() < 2) return;
    Table table;
    for (const auto& row : comparison.rows) {
      table.push_back({{list_ranks(row.ranks)}});
      for (std::size_t i = 0; i < row.cells.size(); ++i) {
        table.back().push_back({row.cells[i], comparison.fields[i].differs ? Colour::red : Colour::none});
      }
      table.back().push_back({row.place.empty() ? "" : "at " + row.place});
    }
    section("What they call:");
    add(table);
    if (const auto sentence = comparison.sentence(); !sentence.empty()) line("  " + sentence);
  }

  void add_waiting() {
    const Waiting waiting(verdict_);
    if (waiting.empty()) return;
    section("Who waits for whom:");
    for (const std::string& chain : waiting.chains()) line("  " + chain);
  }

  void add_failures() {
    for (const RankStanding& standing : verdict_.ranks) {
      const std::string failure = failure_text(standing);
      if (failure.empty()) continue;
      section(list_ranks({standing.rank}) + ": " + failure);
      for (const std::string& error : standing.errors) line(painted("  | " + one_line(error), Colour::dim));
    }
  }

  void add_what_else() {
    if (!verdict_.left.empty()) section("Left behind:");
    for (const std::string& left : verdict_.left) line("  " + one_line(left));
    std::string sentences;
    for (const std::string& fact : facts(verdict_)) sentences += (sentences.empty() ? "" : " ") + fact;
    section(sentences);
    for (const std::string& note : verdict_.notes) labelled("note", note);
    labelled("hint", verdict_.hint);
    labelled("hint", line_tables_text(verdict_));
    labelled("to run it again", verdict_.replay);
    // A run that went well is told in one line where it can be, and is not kept.
    if (verdict_.outcome != Outcome::ok) labelled("command", command_text(verdict_));
  }

  // "0-2, 4": the column's head says that they are ranks.
  static std::string numbers(const std::vector<int>& ranks) {
    const std::string text = list_ranks(ranks);
    return text.substr(text.find(' ') + 1);
  }

  // An empty line and, if there is one, a heading.
  void section(const std::string& heading) {
    line("");
    if (!heading.empty()) line(heading);
  }

  void labelled(const std::string& label, const std::string& text) {
    if (!text.empty()) line(painted(label + ":", Colour::bold) + " " + one_line(text));
  }

  // In columns; those that are empty in all rows but the head's are left out.
  void add(const Table& table) {
    const bool has_head = table.front().front().colour == Colour::dim;
    for (const auto& row : table) {
      std::string text = " ";
      std::size_t gap = 1;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::size_t width = width_of_column(table, i, has_head);
        if (width == 0) continue;
        text += std::string(gap, ' ') + painted(row[i].text, row[i].colour);
        gap = 2 + width - width_of(row[i].text);
      }
      line(text);
    }
  }

  static std::size_t width_of_column(const Table& table, std::size_t column, bool has_head) {
    std::size_t width = 0;
    for (auto row = table.begin() + (has_head ? 1 : 0); row != table.end(); ++row) {
      width = std::max(width, width_of((*row)[column].text));
    }
    return width == 0 ? 0 : std::max(width, width_of(table.front()[column].text));
  }

  [[nodiscard]] std::string painted(const std::string& text, Colour colour) const {
    if (!options_.colour || colour == Colour::none || text.empty()) return text;
    const char* code = "";
    switch (colour) {
      case Colour::none: break;
      case Colour::bold: code = "1"; break;
      case Colour::dim: code = "2"; break;
      case Colour::red: code = "31"; break;
      case Colour::yellow: code = "33"; break;
      case Colour::green: code = "32"; break;
    }
    return std::string("\033[") + code + "m" + text + "\033[0m";
  }

  // Nothing at a line's end, and no two empty lines.
  void line(std::string text) {
    text.erase(text.find_last_not_of(' ') + 1);
    const bool follows_empty = text_.size() >= 2 && text_.compare(text_.size() - 2, 2, "\n\n") == 0;
    if (text.empty() && follows_empty) return;
    text_ += text + "\n";
  }

  const Verdict& verdict_;
  const TextOptions& options_;
  std::string text_;
};

}  // namespace

std::string to_text(const Verdict& verdict, const TextOptions& options) {
  std::string text = TextReport(verdict, options).write();
  while (text.size() >= 2 && text.compare(text.size() - 2, 2, "\n\n") == 0) text.pop_back();
  return text;
}

}  // namespace lockstep::sim::report
