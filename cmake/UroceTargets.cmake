# SPDX-License-Identifier: BSD-2-Clause
# How every target of the project is compiled, and the kinds of target there are:
#   uroce_core_library(NAME SOURCES... [DEPENDS ...])  the sans-IO core: no exceptions, no RTTI
#   uroce_library(NAME SOURCES... [DEPENDS ...])       everything above it
#   uroce_whole_program(NAME)                          for a program or module that must be fast
#   uroce_test(NAME LABEL label [TIMEOUT seconds] SOURCES... DEPENDS ...)
#                                                      one GoogleTest binary, found by ctest
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

add_library(uroce_options INTERFACE)
target_compile_features(uroce_options INTERFACE cxx_std_20)
target_compile_options(uroce_options INTERFACE
  -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Werror=switch -Werror
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
target_include_directories(uroce_options INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
if(UROCE_SANITIZE)
  # Undefined behaviour alone would only be printed.
  target_compile_options(uroce_options INTERFACE
    -fsanitize=${UROCE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(uroce_options INTERFACE -fsanitize=${UROCE_SANITIZE})
endif()
if(UROCE_FUZZ)
  target_compile_options(uroce_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Of what is shipped the core is optimised as a whole, over the borders of its libraries, which a
# packet crosses many times. They hold both forms of code, so that tests link fast.
set(is_optimised_whole $<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release,RelWithDebInfo>>)
set(optimise_whole "$<${is_optimised_whole}:-O3;-flto;-ffat-lto-objects>")
target_link_options(uroce_options INTERFACE
  $<${is_optimised_whole}:$<IF:$<BOOL:$<TARGET_PROPERTY:UROCE_WHOLE_PROGRAM>>,-flto=auto,-fno-lto>>)

set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_CXX_EXTENSIONS OFF)

function(uroce_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC uroce_options ${arg_DEPENDS})
endfunction()

function(uroce_core_library name)
  uroce_library(${name} ${ARGN})
  target_compile_options(${name} PRIVATE -fno-exceptions -fno-rtti "${optimise_whole}")
endfunction()

function(uroce_whole_program name)
  set_target_properties(${name} PROPERTIES UROCE_WHOLE_PROGRAM ON)
  target_compile_options(${name} PRIVATE "${optimise_whole}")
endfunction()

# GoogleTest's headers are half of what a test costs to compile. ccache keeps nothing that uses
# precompiled headers, and is better.
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES ccache)
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()

# A race ends the process that has it, so that a child's is seen by its test; and no process stays
# for the second in which ThreadSanitizer waits for more.
set(UROCE_TEST_ENVIRONMENT
  LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/leaks.supp:print_suppressions=0
  UBSAN_OPTIONS=print_stacktrace=1
  TSAN_OPTIONS=halt_on_error=1:atexit_sleep_ms=0)

function(uroce_test name)
  cmake_parse_arguments(arg "" "LABEL;TIMEOUT" "SOURCES;DEPENDS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  include(GoogleTest)
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE uroce_options uroce_test_main ${arg_DEPENDS})
  target_precompile_headers(${name} REUSE_FROM uroce_test_main)
  if(UROCE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # g++ takes instrumented containers for overflows that cannot be; plain builds keep the warnings.
    target_compile_options(${name} PRIVATE
      -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds -Wno-maybe-uninitialized
      -Wno-restrict)
  endif()
  target_compile_definitions(${name} PRIVATE UROCE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  # The label's folders too, as in "unit-datapath-udp": ctest -L takes any part of it.
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/tests
    OUTPUT_VARIABLE folder)
  string(REGEX REPLACE "^${arg_LABEL}(/|$)" "" folder "${folder}")
  if(folder)
    string(REPLACE "/" "-" folder ${folder})
    string(APPEND arg_LABEL "-${folder}")
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${UROCE_TEST_ENVIRONMENT}")
endfunction()
