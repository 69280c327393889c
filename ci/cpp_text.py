"""Just enough of C++ for the checks in this folder: blank out comments and strings, and match brackets."""
import re

_COMMENT_OR_STRING = re.compile(
    r'''//(?:[^\n\\]|\\.|\\\n)*                         # comment to the end of the line
      | /\*.*?(?:\*/|\Z)                               # comment over lines
      | (?:u8|[uUL])?R"(?P<tag>[^()\\\s]*)\(.*?(?:\)(?P=tag)"|\Z)  # raw string
      | "(?:[^"\\\n]|\\.)*"                            # string
      | (?<![0-9A-Za-z_])(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+'  # character; not the ' of 1'000
    ''', re.DOTALL | re.VERBOSE)


def blank(text: str, keep_strings: bool = False) -> str:
    """The text with comments, and strings unless they are kept, as blanks; every line keeps its number."""
    def replace(match: re.Match) -> str:
        found = match.group()
        if keep_strings and not found.startswith(("//", "/*")):
            return found
        return re.sub(r"[^\n]", " ", found)

    return _COMMENT_OR_STRING.sub(replace, text)


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def closing(text: str, opening: int) -> int:
    """The position of the bracket that closes the one at `opening`, in blanked text; the end if none does."""
    pairs = {"(": ")", "{": "}"}
    left, right = text[opening], pairs[text[opening]]
    depth = 0
    for match in re.compile(f"[{re.escape(left + right)}]").finditer(text, opening):
        depth += 1 if match.group() == left else -1
        if depth == 0:
            return match.start()
    return len(text)
