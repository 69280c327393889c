#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::sim::report {

/// The text with what HTML and XML give a meaning replaced, and control characters dropped.
std::string escaped(std::string_view text);

/// Writes markup element by element: every element is closed where its scope ends, and text is escaped on its way in.
/// The result is HTML and well-formed XML at once.
class HtmlWriter {
 public:
  using Attributes = std::vector<std::pair<std::string_view, std::string>>;

  /// An open element; closed by the destructor.
  class Element {
   public:
    Element(HtmlWriter& writer, std::string_view name, const Attributes& attributes);
    ~Element();
    Element(const Element&) = delete;
    Element& operator=(const Element&) = delete;

   private:
    HtmlWriter& writer_;
    std::string name_;
  };

  [[nodiscard]] Element element(std::string_view name, const Attributes& attributes = {}) {
    return Element(*this, name, attributes);
  }
  /// An element that holds text alone.
  void leaf(std::string_view name, std::string_view text, const Attributes& attributes = {});
  /// An element that holds nothing.
  void empty(std::string_view name, const Attributes& attributes);
  void text(std::string_view text);
  /// Markup of our own, as it is.
  void raw(std::string_view markup) { html_ += markup; }

  [[nodiscard]] std::string take() { return std::move(html_); }

 private:
  void open(std::string_view name, const Attributes& attributes);

  std::string html_;
};

}  // namespace lockstep::sim::report
