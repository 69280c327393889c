#include "lockstep/sim/report/html_writer.h"

namespace lockstep::sim::report {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') result += c;
    }
  }
  return result;
}

HtmlWriter::Element::Element(HtmlWriter& writer, std::string_view name, const Attributes& attributes)
    : writer_(writer), name_(name) {
  writer_.open(name, attributes);
  writer_.html_ += '>';
}

HtmlWriter::Element::~Element() { writer_.html_ += "</" + name_ + ">\n"; }

void HtmlWriter::leaf(std::string_view name, std::string_view text, const Attributes& attributes) {
  const Element here(*this, name, attributes);
  html_ += escaped(text);
}

void HtmlWriter::empty(std::string_view name, const Attributes& attributes) {
  open(name, attributes);
  html_ += "/>\n";
}

void HtmlWriter::text(std::string_view text) { html_ += escaped(text); }

void HtmlWriter::open(std::string_view name, const Attributes& attributes) {
  html_ += '<';
  html_ += name;
  for (const auto& [key, value] : attributes) {
    html_ += ' ';
    html_ += key;
    html_ += "=\"" + escaped(value) + "\"";
  }
}

}  // namespace lockstep::sim::report
