#include "lockstep/sim/place/place.h"

#include <locale>
#include <sstream>

namespace lockstep::sim {

namespace {

// file:line, or module+offset.
std::string position(const Place& place) {
  std::ostringstream text;
  text.imbue(std::locale::classic());  // the program's own may group digits
  if (!place.file.empty()) {
    text << place.file;
    if (place.line > 0) text << ':' << place.line;
  } else if (!place.module.empty()) {
    text << place.module << "+0x" << std::hex << place.offset;
  } else {
    text << "unknown place";
  }
  return text.str();
}

std::string in_brackets(const std::string& text) { return text.empty() ? "" : " (" + text + ")"; }

}  // namespace

std::string to_short_text(const Place& place) { return position(place) + in_brackets(place.function); }

std::string to_text(const Place& place) {
  if (!place.file.empty() || place.module.empty()) return to_short_text(place);
  const std::string remark = place.remark.empty() ? "build with -g1 for file and line" : place.remark;
  return position(place) + in_brackets(place.function.empty() ? remark : place.function + "; " + remark);
}

}  // namespace lockstep::sim
