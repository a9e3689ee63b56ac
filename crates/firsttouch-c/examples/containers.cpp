// Containers on any allocator, and scratch memory that is freed by leaving a block.
//
//     c++ -std=c++17 containers.cpp $(pkg-config --cflags --libs firsttouch) -o containers && ./containers
#include <firsttouch.hpp>

#include <cstdio>
#include <memory_resource>
#include <numeric>
#include <vector>

int main() {
    // A budget: where a container would exceed it, std::bad_alloc is thrown, and the message names the limit.
    firsttouch::allocator budget("limited(pool(), '64 MiB')");
    firsttouch::memory_resource resource(budget);
    std::pmr::vector<double> values(1000000, 1.0, &resource);
    std::printf("%s holds %.1f MB\n", budget.expression().c_str(), 1e-6 * static_cast<double>(budget.stats().in_use));
    try {
        values.resize(100000000);
    } catch (const std::bad_alloc &) {
        std::printf("%s\n", firsttouch_last_error());
    }

    // Aligned to 64 bytes, on transparent huge pages.
    firsttouch::memory_resource pages(firsttouch::allocator("pages(huge='thp')"));
    std::pmr::vector<float> aligned(1 << 20, 0, &pages);
    std::printf("aligned to 64 bytes: %s\n", reinterpret_cast<std::uintptr_t>(aligned.data()) % 64 == 0 ? "yes" : "no");

    firsttouch::scratch scratch;
    double sum = 0;
    for (int n = 1; n <= 1000; n++) {
        firsttouch::scope scope(scratch); // its memory is free again at the end of each turn
        double *work = scope.array<double>(100);
        std::iota(work, work + 100, n);
        sum += std::accumulate(work, work + 100, 0.0);
    }
    std::printf("sum %.0f\n", sum);
}
