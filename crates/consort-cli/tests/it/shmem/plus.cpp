// The headers in C++.
#include <complex>

#include "check.h"

int main() {
    shmem_init();
    auto *data = static_cast<std::complex<double> *>(shmem_malloc(2 * sizeof(std::complex<double>)));
    data[0] = {1, 2};
    CHECK(shmem_complexd_sum_reduce(SHMEM_TEAM_WORLD, data + 1, data, 1) == 0);
    CHECK(data[1].imag() == 2 * shmem_n_pes());
    shmem_free(data);
    shmem_finalize();
}
