/* The old name of the header. */
#include "../shmem.h"
