#include "page.h"

#include "holdfast/core/files.h"

// The assembler includes the file as it is: compilers take seconds over an array of this size.
__asm__(
    ".section .rodata\n"
    ".global holdfast_page_begin\n"
    ".global holdfast_page_end\n"
    "holdfast_page_begin:\n"
    ".incbin \"" HOLDFAST_PAGE_FILE
    "\"\n"
    "holdfast_page_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" {
extern const char holdfast_page_begin[];
extern const char holdfast_page_end[];
}

namespace holdfast::report {

std::string_view page_script() {
  return {holdfast_page_begin, static_cast<std::size_t>(holdfast_page_end - holdfast_page_begin)};
}

std::string base64(std::span<const std::byte> data) {
  static constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < data.size(); i += 3) {
    unsigned block = 0;
    for (std::size_t j = 0; j < 3; ++j) block = block << 8 | (i + j < data.size() ? std::to_integer<unsigned>(data[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j) text += i + j > data.size() ? '=' : kLetters[block >> (18 - 6 * j) & 63U];
  }
  return text;
}

namespace {

// Data inside a script element must not be able to end it.
std::string script_safe(const std::string& text) {
  std::string result;
  result.reserve(text.size());
  for (const char letter : text) {
    if (letter == '<') {
      result += "\\u003c";
    } else {
      result += letter;
    }
  }
  return result;
}

std::string escape_html(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '&') {
      result += "&amp;";
    } else if (letter == '<') {
      result += "&lt;";
    } else {
      result += letter;
    }
  }
  return result;
}

// The script is allowed by its digest; nothing is loaded, sent or evaluated, and no markup brings styles of its own.
std::string security_policy() {
  const std::string hex = sha256_hex(as_bytes(page_script()));
  Bytes digest;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    digest.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return "default-src 'none'; script-src 'sha256-" + base64(digest) + "'; img-src data:; base-uri 'none'; form-action 'none'";
}

}  // namespace

void write_page(const std::string& path, const Json& payload) {
  std::string html =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"" +
      security_policy() + "\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
      escape_html(payload.at("title")) + "</title>\n</head>\n<body>\n<script type=\"application/json\" id=\"holdfast-data\">";
  html += script_safe(payload.dump(-1, ' ', false, Json::error_handler_t::replace));
  html += "</script>\n<script>";
  html += page_script();
  html += "</script>\n</body>\n</html>\n";
  write_atomic(path, html);
}

}  // namespace holdfast::report
