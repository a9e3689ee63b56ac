// Threads that allocate, check, resize and free each other's blocks through std::pmr and container allocators.
#include <firsttouch.hpp>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory_resource>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

struct block {
    unsigned char *data;
    std::size_t size;
    unsigned char mark;
};

static std::mutex lock;
static std::vector<block> handed_over;
static std::atomic<int> wrong{0};

static void work(const firsttouch::allocator &allocator, unsigned seed) {
    for (int turn = 0; turn < 3000; turn++) {
        seed = seed * 1103515245u + 12345u;
        std::size_t size = std::size_t{1} << (seed >> 16) % 21;
        auto *data = static_cast<unsigned char *>(allocator.allocate(size));
        auto mark = static_cast<unsigned char>(seed >> 8);
        std::memset(data, mark, size);
        block other{data, size, mark};
        {
            std::lock_guard<std::mutex> guard(lock);
            handed_over.push_back(other);
            if (handed_over.size() < 20) continue;
            std::swap(handed_over[seed % handed_over.size()], handed_over.back());
            other = handed_over.back();
            handed_over.pop_back();
        }
        for (std::size_t at = 0; at < other.size; at += 61) wrong += other.data[at] != other.mark;
        allocator.deallocate(other.data);
    }
}

int main() {
    for (const char *expression : {"pool()", "limited(pool(), '1 TiB')", "pool(malloc())", "filled(pool(), on_free=221)"}) {
        firsttouch::allocator allocator{expression};
        std::vector<std::thread> threads;
        for (unsigned n = 0; n < 4; n++) threads.emplace_back([&, n] { work(allocator, n + 1); });
        for (auto &thread : threads) thread.join();
        for (auto &left : handed_over) allocator.deallocate(left.data);
        handed_over.clear();
        if (allocator.stats().in_use != 0) throw std::logic_error("blocks are left");
    }

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
