/* What a newer compiler's static libstdc++ and libgcc ask of libc, for systems whose libc does not have it yet (JetPack 5:
 * glibc 2.31). Compiled in with --sysroot only; hidden, so nobody else's calls come here. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

/* glibc 2.32: "no" is always a right answer, it only costs atomic operations. */
char __libc_single_threaded = 0;

/* glibc 2.36. */
uint32_t arc4random(void) {
  uint32_t value;
  ssize_t got;
  do {
    got = getrandom(&value, sizeof value, 0);
  } while (got < 0 && errno == EINTR);
  if (got != (ssize_t)sizeof value) abort();
  return value;
}

struct search {
  uintptr_t address;
  struct dl_find_object* found;
};

static int look(struct dl_phdr_info* object, size_t size, void* argument) {
  (void)size;
  struct search* search = argument;
  const ElfW(Phdr)* unwind = NULL;
  uintptr_t first = 0, past = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) unwind = part;
    if (part->p_type == PT_LOAD && search->address >= begin && search->address < begin + part->p_memsz) {
      first = begin;
      past = begin + part->p_memsz;
    }
  }
  if (past == 0) return 0;
  if (unwind == NULL) return -1;
  search->found->dlfo_flags = 0;
  search->found->dlfo_map_start = (void*)first;
  search->found->dlfo_map_end = (void*)past;
  search->found->dlfo_link_map = NULL;
  search->found->dlfo_eh_frame = (void*)(object->dlpi_addr + unwind->p_vaddr);
  return 1;
}

/* glibc 2.35: the unwinder's way to a function's tables. */
int _dl_find_object(void* address, struct dl_find_object* found) {
  struct search search = {(uintptr_t)address, found};
  return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}
