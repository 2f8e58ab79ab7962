// The barrier of the C++ standard library (C++20), as a library that is loaded when it is used.
#include <barrier>
#include <new>

extern "C" void *fork_join_barrier(int, unsigned threads)
{
    return new (std::nothrow) std::barrier<>(threads);
}

extern "C" void fork_join_wait(void *barrier, unsigned)
{
    static_cast<std::barrier<> *>(barrier)->arrive_and_wait();
}
