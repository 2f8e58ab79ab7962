/* For profilers: the names `pshmem_...` are in shmem.h. */
#include "shmem.h"
