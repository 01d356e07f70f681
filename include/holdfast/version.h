// Version of the library and the compiler that built it.
#pragma once

namespace holdfast {

inline constexpr const char* kVersion = "0.1.0";

#if defined(__clang__)
inline constexpr const char* kCompiler = "Clang " __clang_version__;
#elif defined(__GNUC__)
inline constexpr const char* kCompiler = "GNU " __VERSION__;
#else
inline constexpr const char* kCompiler = "unknown";
#endif

}  // namespace holdfast
