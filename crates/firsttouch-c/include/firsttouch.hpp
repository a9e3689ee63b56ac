// firsttouch.hpp - the memory behind arrays, for C++17: memory resources of containers, scratch scopes.
//
//     firsttouch::allocator pool("limited(pool(), '4 GiB')");
//     firsttouch::memory_resource resource(pool);
//     std::pmr::vector<double> x(1000000, &resource);
//
//     firsttouch::scratch scratch;
//     {
//         firsttouch::scope scope(scratch);
//         double *work = scope.array<double>(n);
//     }   // the memory of `work` is free again
//
// Failures are exceptions: std::bad_alloc where there is no memory, firsttouch::error otherwise. Programs without
// exceptions or run-time type information use firsttouch.h.
#ifndef FIRSTTOUCH_HPP
#define FIRSTTOUCH_HPP

#include <cstddef>
#include <limits>
#include <memory_resource>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "firsttouch.h"

namespace firsttouch {

/// A call that failed for another reason than memory.
class error : public std::runtime_error {
public:
    explicit error(firsttouch_status status) : std::runtime_error(firsttouch_last_error()), status_(status) {}
    firsttouch_status status() const noexcept { return status_; }

private:
    firsttouch_status status_;
};

/// Throws what a status stands for.
inline void check(firsttouch_status status) {
    if (status == FIRSTTOUCH_NO_MEMORY) throw std::bad_alloc();
    if (status != FIRSTTOUCH_OK) throw error(status);
}

/// A counted reference to an allocator. Default constructed it is the pool that the whole process shares.
class allocator {
public:
    allocator() noexcept = default;
    explicit allocator(const char *expression) { check(firsttouch_parse(expression, &handle_)); }
    explicit allocator(const std::string &expression) : allocator(expression.c_str()) {}
    /// On an existing one: allocator("limited(budget='1 GiB')", pool).
    allocator(const char *expression, const allocator &upstream) {
        check(firsttouch_parse_over(expression, upstream.handle_, &handle_));
    }
    /// Takes a reference over, such as one from firsttouch_parse().
    explicit allocator(firsttouch_allocator *handle) noexcept : handle_(handle) {}
    allocator(const allocator &other) noexcept : handle_(firsttouch_retain(other.handle_)) {}
    allocator(allocator &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    allocator &operator=(allocator other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~allocator() { firsttouch_release(handle_); }

    firsttouch_allocator *get() const noexcept { return handle_; }
    bool operator==(const allocator &other) const noexcept { return handle_ == other.handle_; }
    bool operator!=(const allocator &other) const noexcept { return handle_ != other.handle_; }

    void *allocate(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) const {
        void *block = firsttouch_aligned_alloc(handle_, alignment, size);
        if (!block) throw std::bad_alloc();
        return block;
    }
    void deallocate(void *block) const noexcept { firsttouch_free(handle_, block); }

    firsttouch_stats stats() const {
        firsttouch_stats stats;
        check(firsttouch_get_stats(handle_, &stats));
        return stats;
    }
    std::size_t trim() const noexcept { return firsttouch_trim(handle_); }
    std::string expression() const {
        std::string text(firsttouch_describe(handle_, nullptr, 0), '\0');
        firsttouch_describe(handle_, &text[0], text.size() + 1);
        return text;
    }

private:
    firsttouch_allocator *handle_ = nullptr;
};

/// A memory resource for std::pmr containers, which holds a reference to its allocator.
class memory_resource : public std::pmr::memory_resource {
public:
    memory_resource() noexcept = default;
    explicit memory_resource(allocator upstream) noexcept : upstream_(std::move(upstream)) {}
    /// Moves copy: containers may point to the resource that was moved from.
    memory_resource(const memory_resource &) noexcept = default;
    memory_resource &operator=(const memory_resource &) noexcept = default;
    const allocator &upstream() const noexcept { return upstream_; }

private:
    void *do_allocate(std::size_t size, std::size_t alignment) override { return upstream_.allocate(size, alignment); }
    void do_deallocate(void *block, std::size_t, std::size_t) override { upstream_.deallocate(block); }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
        auto *same = dynamic_cast<const memory_resource *>(&other);
        return same && same->upstream_ == upstream_;
    }

    allocator upstream_;
};

/// A scratch buffer, for one thread at a time.
class scratch {
public:
    scratch() { check(firsttouch_scratch_create(nullptr, nullptr, 0, &buffer_)); }
    explicit scratch(const allocator &upstream, std::size_t first_chunk = 0) {
        check(firsttouch_scratch_create(upstream.get(), nullptr, first_chunk, &buffer_));
    }
    /// On storage of the caller's, which must live as long.
    scratch(void *storage, std::size_t size) { check(firsttouch_scratch_create(nullptr, storage, size, &buffer_)); }
    scratch(scratch &&other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
    scratch &operator=(scratch &&other) noexcept {
        std::swap(buffer_, other.buffer_);
        return *this;
    }
    ~scratch() { firsttouch_scratch_destroy(buffer_); }

    firsttouch_scratch *get() const noexcept { return buffer_; }

private:
    firsttouch_scratch *buffer_ = nullptr;
};

/// A scope on a scratch buffer: what is allocated in it is free again at its end. Scopes nest.
class scope {
public:
    explicit scope(scratch &buffer) noexcept : buffer_(buffer.get()), mark_(firsttouch_scratch_mark(buffer_)) {}
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;
    ~scope() { firsttouch_scratch_rewind(buffer_, mark_); }

    void *allocate(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) {
        void *block = firsttouch_scratch_alloc(buffer_, alignment, size);
        if (!block) throw std::bad_alloc();
        return block;
    }
    /// Room for n values, uninitialized. Destructors do not run.
    template <class T>
    T *array(std::size_t n) {
        static_assert(std::is_trivially_destructible<T>::value, "the destructors of scratch values do not run");
        if (n > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
        return static_cast<T *>(allocate(n * sizeof(T), alignof(T)));
    }

private:
    firsttouch_scratch *buffer_;
    firsttouch_mark mark_;
};

}  // namespace firsttouch

#endif
