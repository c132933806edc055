// SPDX-License-Identifier: BSD-2-Clause
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "probe.h"

// Declared by libc's headers only under _FORTIFY_SOURCE, which would redirect the plain forms.
extern "C" {
int __open_2(const char*, int);
int __open64_2(const char*, int);
int __openat_2(int, const char*, int);
int __openat64_2(int, const char*, int);
ssize_t __readlink_chk(const char*, char*, size_t, size_t);
ssize_t __readlinkat_chk(int, const char*, char*, size_t, size_t);
char* __realpath_chk(const char*, char*, size_t);
}

namespace probe {

namespace {

namespace fs = std::filesystem;

template <typename Status>
std::string describe(const Status& status) {
  if (S_ISCHR(status.st_mode)) {
    return "char " + std::to_string(major(status.st_rdev)) + ":" +
           std::to_string(minor(status.st_rdev));
  }
  if (S_ISLNK(status.st_mode)) return "link";
  return S_ISDIR(status.st_mode) ? "folder" : "file";
}

std::string first_line(FILE* stream) {
  char line[256] = "";
  if (fgets(line, sizeof line, check(stream)) == nullptr) line[0] = '\0';
  fclose(stream);
  return std::string(line, strcspn(line, "\n"));
}

std::string join(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  std::string all;
  for (const std::string& name : names) {
    if (name != "." && name != "..") all += (all.empty() ? "" : " ") + name;
  }
  return all;
}

// The folder of a path, open, and the name in it: what the `at` functions get.
struct Split {
  explicit Split(const std::string& path)
      : folder(check(open(fs::path(path).parent_path().c_str(), O_RDONLY | O_DIRECTORY))),
        name(fs::path(path).filename()) {}
  ~Split() { close(folder); }
  int folder;
  std::string name;
};

template <typename Status, typename Call>
std::string status_of(Call call) {
  Status status{};
  check(call(&status));
  return describe(status);
}

// Kept in libc for programs built before glibc 2.33; new ones cannot be linked against them.
template <typename Status>
std::string old_status(const char* function, const std::string& path) {
  using Function = int (*)(int, const char*, Status*);
  const auto call = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, function));
  return status_of<Status>([&](Status* status) { return call(1, path.c_str(), status); });
}

template <typename Status>
std::string old_status_at(const char* function, const std::string& path) {
  using Function = int (*)(int, int, const char*, Status*, int);
  const auto call = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, function));
  const Split split(path);
  return status_of<Status>(
      [&](Status* status) { return call(1, split.folder, split.name.c_str(), status, 0); });
}

template <typename Entry, typename Call>
std::string scanned(Call call) {
  Entry** entries = nullptr;
  const int count = check(call(&entries));
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    names.emplace_back(entries[i]->d_name);
    free(entries[i]);
  }
  free(entries);
  return join(names);
}

template <typename Glob, typename Call, typename Free>
std::string globbed(Call call, Free release) {
  Glob result{};
  const int outcome = call(&result);
  if (outcome == GLOB_NOMATCH) throw Failure{ENOENT};
  std::vector<std::string> names(result.gl_pathv, result.gl_pathv + result.gl_pathc);
  release(&result);
  return join(names);
}

template <typename Call>
std::string link_text(Call call) {
  char text[PATH_MAX];
  return std::string(text, static_cast<std::size_t>(check(call(text, sizeof text))));
}

std::string take(char* name) {
  const std::string text = check(name);
  free(name);
  return text;
}

std::string yes(int outcome) {
  check(outcome);
  return "yes";
}

// Extended attributes: a tree on tmpfs has none, so the errors of getxattr itself mean "found".
std::string attributes(ssize_t outcome) {
  if (outcome < 0 && errno != ENODATA && errno != EOPNOTSUPP) throw Failure{};
  return "yes";
}

std::string watched(const std::string& path) {
  const int descriptor = inotify_init1(IN_CLOEXEC);
  const int watch = inotify_add_watch(descriptor, path.c_str(), IN_CREATE);
  const Failure failure;
  close(descriptor);
  if (watch < 0) throw failure;
  return "yes";
}

std::string listed(const std::string& path) {
  DIR* folder = check(opendir(path.c_str()));
  std::vector<std::string> names;
  while (const dirent* entry = readdir(folder)) names.emplace_back(entry->d_name);
  closedir(folder);
  return join(names);
}

const Actions kOpening = {
    {"open", [](auto& path) { return describe_and_close(open(path.c_str(), O_RDONLY)); }},
    {"open64", [](auto& path) { return describe_and_close(open64(path.c_str(), O_RDONLY)); }},
    {"openat",
     [](auto& path) {
       const Split split(path);
       return describe_and_close(openat(split.folder, split.name.c_str(), O_RDONLY));
     }},
    {"openat64",
     [](auto& path) {
       const Split split(path);
       return describe_and_close(openat64(split.folder, split.name.c_str(), O_RDONLY));
     }},
    {"__open_2", [](auto& path) { return describe_and_close(__open_2(path.c_str(), O_RDONLY)); }},
    {"__open64_2",
     [](auto& path) { return describe_and_close(__open64_2(path.c_str(), O_RDONLY)); }},
    {"__openat_2",
     [](auto& path) { return describe_and_close(__openat_2(AT_FDCWD, path.c_str(), O_RDONLY)); }},
    {"__openat64_2",
     [](auto& path) { return describe_and_close(__openat64_2(AT_FDCWD, path.c_str(), O_RDONLY)); }},
    {"creat", [](auto& path) { return describe_and_close(creat(path.c_str(), 0600)); }},
    {"creat64", [](auto& path) { return describe_and_close(creat64(path.c_str(), 0600)); }},
    {"fopen", [](auto& path) { return first_line(fopen(path.c_str(), "r")); }},
    {"fopen64", [](auto& path) { return first_line(fopen64(path.c_str(), "r")); }},
    {"freopen",
     [](auto& path) { return first_line(freopen(path.c_str(), "r", fopen("/dev/zero", "r"))); }},
    {"freopen64",
     [](auto& path) { return first_line(freopen64(path.c_str(), "r", fopen("/dev/zero", "r"))); }},
    {"ifstream",
     [](auto& path) {
       std::ifstream stream(path);
       if (!stream) throw Failure{};
       std::string line;
       std::getline(stream, line);
       return line;
     }},
};

const Actions kStatus = {
    {"stat",
     [](auto& path) {
       return status_of<struct stat>([&](auto* status) { return stat(path.c_str(), status); });
     }},
    {"stat64",
     [](auto& path) {
       return status_of<struct stat64>([&](auto* status) { return stat64(path.c_str(), status); });
     }},
    {"lstat",
     [](auto& path) {
       return status_of<struct stat>([&](auto* status) { return lstat(path.c_str(), status); });
     }},
    {"lstat64",
     [](auto& path) {
       return status_of<struct stat64>([&](auto* status) { return lstat64(path.c_str(), status); });
     }},
    {"fstatat",
     [](auto& path) {
       const Split split(path);
       return status_of<struct stat>(
           [&](auto* status) { return fstatat(split.folder, split.name.c_str(), status, 0); });
     }},
    {"fstatat64",
     [](auto& path) {
       const Split split(path);
       return status_of<struct stat64>(
           [&](auto* status) { return fstatat64(split.folder, split.name.c_str(), status, 0); });
     }},
    {"__xstat", [](auto& path) { return old_status<struct stat>("__xstat", path); }},
    {"__xstat64", [](auto& path) { return old_status<struct stat64>("__xstat64", path); }},
    {"__lxstat", [](auto& path) { return old_status<struct stat>("__lxstat", path); }},
    {"__lxstat64", [](auto& path) { return old_status<struct stat64>("__lxstat64", path); }},
    {"__fxstatat", [](auto& path) { return old_status_at<struct stat>("__fxstatat", path); }},
    {"__fxstatat64", [](auto& path) { return old_status_at<struct stat64>("__fxstatat64", path); }},
    {"statx",
     [](auto& path) {
       struct statx status {};
       check(statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &status));
       struct stat same {};
       same.st_mode = status.stx_mode;
       same.st_rdev = makedev(status.stx_rdev_major, status.stx_rdev_minor);
       return describe(same);
     }},
    {"std::filesystem::status",
     [](auto& path) {
       const fs::file_type type = fs::status(path).type();
       if (type == fs::file_type::not_found) throw Failure{ENOENT};
       return std::string(type == fs::file_type::character ? "char 1:3" : "other");
     }},
};

const Actions kRights = {
    {"statfs",
     [](auto& path) {
       struct statfs status {};
       return yes(statfs(path.c_str(), &status));
     }},
    {"statfs64",
     [](auto& path) {
       struct statfs64 status {};
       return yes(statfs64(path.c_str(), &status));
     }},
    {"statvfs",
     [](auto& path) {
       struct statvfs status {};
       return yes(statvfs(path.c_str(), &status));
     }},
    {"statvfs64",
     [](auto& path) {
       struct statvfs64 status {};
       return yes(statvfs64(path.c_str(), &status));
     }},
    {"access", [](auto& path) { return yes(access(path.c_str(), R_OK)); }},
    {"eaccess", [](auto& path) { return yes(eaccess(path.c_str(), R_OK)); }},
    {"euidaccess", [](auto& path) { return yes(euidaccess(path.c_str(), R_OK)); }},
    {"faccessat",
     [](auto& path) {
       const Split split(path);
       return yes(faccessat(split.folder, split.name.c_str(), R_OK, 0));
     }},
    {"getxattr",
     [](auto& path) { return attributes(getxattr(path.c_str(), "user.none", nullptr, 0)); }},
    {"lgetxattr",
     [](auto& path) { return attributes(lgetxattr(path.c_str(), "user.none", nullptr, 0)); }},
    {"listxattr", [](auto& path) { return attributes(listxattr(path.c_str(), nullptr, 0)); }},
    {"llistxattr", [](auto& path) { return attributes(llistxattr(path.c_str(), nullptr, 0)); }},
};

const Actions kFolders = {
    {"opendir", listed},
    {"scandir",
     [](auto& path) {
       return scanned<dirent>(
           [&](auto*** entries) { return scandir(path.c_str(), entries, nullptr, nullptr); });
     }},
    {"scandir64",
     [](auto& path) {
       return scanned<dirent64>(
           [&](auto*** entries) { return scandir64(path.c_str(), entries, nullptr, nullptr); });
     }},
    {"scandirat",
     [](auto& path) {
       return scanned<dirent>([&](auto*** entries) {
         return scandirat(AT_FDCWD, path.c_str(), entries, nullptr, nullptr);
       });
     }},
    {"scandirat64",
     [](auto& path) {
       return scanned<dirent64>([&](auto*** entries) {
         return scandirat64(AT_FDCWD, path.c_str(), entries, nullptr, nullptr);
       });
     }},
    {"glob",
     [](auto& path) {
       return globbed<glob_t>(
           [&](glob_t* result) { return glob((path + "/*").c_str(), 0, nullptr, result); },
           globfree);
     }},
    {"glob64",
     [](auto& path) {
       return globbed<glob64_t>(
           [&](glob64_t* result) { return glob64((path + "/*").c_str(), 0, nullptr, result); },
           globfree64);
     }},
    {"chdir",
     [](auto& path) {
       check(chdir(path.c_str()));
       return listed(".");
     }},
    {"inotify_add_watch", watched},
    {"std::filesystem::directory_iterator",
     [](auto& path) {
       std::error_code error;
       std::vector<std::string> names;
       for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
         names.push_back(entry.path().filename());
       }
       if (error) throw Failure{error.value()};
       return join(names);
     }},
};

const Actions kNames = {
    {"readlink",
     [](auto& path) {
       return link_text(
           [&](char* text, size_t bytes) { return readlink(path.c_str(), text, bytes); });
     }},
    {"readlinkat",
     [](auto& path) {
       const Split split(path);
       return link_text([&](char* text, size_t bytes) {
         return readlinkat(split.folder, split.name.c_str(), text, bytes);
       });
     }},
    {"__readlink_chk",
     [](auto& path) {
       return link_text([&](char* text, size_t bytes) {
         return __readlink_chk(path.c_str(), text, bytes, bytes);
       });
     }},
    {"__readlinkat_chk",
     [](auto& path) {
       return link_text([&](char* text, size_t bytes) {
         return __readlinkat_chk(AT_FDCWD, path.c_str(), text, bytes, bytes);
       });
     }},
    {"realpath",
     [](auto& path) {
       char name[PATH_MAX];
       return std::string(check(realpath(path.c_str(), name)));
     }},
    {"realpath allocating", [](auto& path) { return take(realpath(path.c_str(), nullptr)); }},
    {"__realpath_chk",
     [](auto& path) {
       char name[PATH_MAX];
       return std::string(check(__realpath_chk(path.c_str(), name, sizeof name)));
     }},
    {"canonicalize_file_name",
     [](auto& path) { return take(canonicalize_file_name(path.c_str())); }},
};

}  // namespace

std::string describe_and_close(int descriptor) {
  check(descriptor);
  struct stat status {};
  fstat(descriptor, &status);
  if (!S_ISREG(status.st_mode)) {
    close(descriptor);
    return describe(status);
  }
  return first_line(fdopen(descriptor, "r"));
}

const Actions& forms() {
  static const Actions all = [] {
    Actions merged;
    for (const Actions* part : {&kOpening, &kStatus, &kRights, &kFolders, &kNames}) {
      merged.insert(part->begin(), part->end());
    }
    return merged;
  }();
  return all;
}

}  // namespace probe
