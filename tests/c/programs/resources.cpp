// std::pmr, container allocators, exceptions and scopes.
#include <firsttouch.hpp>

#include <cstdio>
#include <cstring>
#include <deque>
#include <memory_resource>
#include <utility>
#include <vector>

static int wrong = 0;

int main() {
    firsttouch::memory_resource resource(firsttouch::allocator("limited(pool(), '10 MiB')"));
    std::pmr::vector<std::pmr::string> texts(&resource);
    for (int n = 0; n < 10000; n++) texts.emplace_back("a text that is too long to lie in the object itself");
    try {
        std::pmr::vector<char> large(std::size_t{1} << 30, &resource);
        wrong++;
    } catch (const std::bad_alloc &) {
    }
    try {
        firsttouch::allocator unknown("puol()");
        wrong++;
    } catch (const firsttouch::error &error) {
        wrong += error.status() != FIRSTTOUCH_EXPRESSION || !std::strstr(error.what(), "pool");
    }
    firsttouch::allocator counted("aligned(64)");
    {
        firsttouch::memory_resource first(counted), second(std::move(first));
        wrong += !first.is_equal(second);
        std::pmr::deque<int> source(1000, 7, &first), target(std::move(source));
        source.push_back(1); // memory of the resource that the deque was made with
        wrong += target.size() != 1000 || target.back() != 7;
    }
    wrong += counted.stats().blocks != 0;

    firsttouch::scratch buffer;
    firsttouch::scope outer(buffer);
    int *kept = outer.array<int>(1000);
    kept[999] = 5;
    for (int n = 0; n < 1000; n++) {
        firsttouch::scope inner(buffer);
        std::memset(inner.array<double>(1000), 255, 8000);
    }
    wrong += kept[999] != 5;
    std::puts(wrong == 0 ? "done" : "wrong");
    return wrong != 0;
}
