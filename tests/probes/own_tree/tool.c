// SPDX-License-Identifier: Apache-2.0
//
// A dynamic program with a library of its own. Prints whatever it can read of the files and directories it is given.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

const char* OwnLibrary(void);

static void Show(const char* path) {
  DIR* directory = opendir(path);
  if (directory != NULL) {
    for (struct dirent* entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
      printf("%s holds %s\n", path, entry->d_name);
    }
    closedir(directory);
    return;
  }
  FILE* file = fopen(path, "r");
  if (file == NULL) {
    printf("%s: refused\n", path);
    return;
  }
  char text[4096];
  const size_t got = fread(text, 1, sizeof(text) - 1, file);
  text[got] = '\0';
  printf("%s says %s\n", path, text);
  fclose(file);
}

int main(int argc, char** argv) {
  printf("%s\n", OwnLibrary());
  for (int i = 1; i < argc; ++i) {
    Show(argv[i]);
  }
  return 0;
}
