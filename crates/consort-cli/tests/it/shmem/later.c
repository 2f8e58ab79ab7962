/* A program that loads the library while its threads run, or before it has any: its static
   variables stay private. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_long count, stop;
static long symmetric;

static void *work(void *argument) {
    for (long own = 1; !stop; own++)
        if (atomic_fetch_add(&count, 1) + 1 != own) return &count;
    return argument;
}

int main(int arguments, char **argument) {
    pthread_t thread;
    int is_threaded = arguments > 2;
    if (is_threaded) pthread_create(&thread, NULL, work, NULL);
    void *library = dlopen(argument[1], RTLD_NOW | RTLD_GLOBAL);
    if (!library) return printf("%s\n", dlerror()), 1;
    ((void (*)(void))dlsym(library, "shmem_init"))();
    void *(*ptr)(const void *, int) = (void *(*)(const void *, int))dlsym(library, "shmem_ptr");
    int is_symmetric = ptr(&symmetric, 0) != NULL;
    ((void (*)(void))dlsym(library, "shmem_barrier_all"))();
    stop = 1;
    void *lost = NULL;
    if (is_threaded) pthread_join(thread, &lost);
    ((void (*)(void))dlsym(library, "shmem_finalize"))();
    dlclose(library); /* its remains in the process still find its code */
    printf("%d %d\n", is_symmetric, lost != NULL);
    return 0;
}
