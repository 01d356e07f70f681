# Writes the commit of the sources as a C++ string into OUT: cmake -DOUT=FILE -P commit.cmake. Empty without git or a checkout; a plus
# sign follows where tracked files differ from it. The file is left alone while it is right, so that nothing is compiled for nothing.
get_filename_component(source ${CMAKE_CURRENT_LIST_DIR}/.. REALPATH)
set(commit "")
execute_process(COMMAND git -C ${source} rev-parse --show-toplevel OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(top STREQUAL source)
  execute_process(COMMAND git -C ${source} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND git -C ${source} diff --quiet HEAD -- src include configs RESULT_VARIABLE differs OUTPUT_QUIET ERROR_QUIET)
  if(commit AND differs EQUAL 1)
    string(APPEND commit "+")
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "\"@commit@\"\n" @ONLY)
