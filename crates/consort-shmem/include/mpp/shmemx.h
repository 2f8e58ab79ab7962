/* The old name of the header. */
#include "../shmemx.h"
