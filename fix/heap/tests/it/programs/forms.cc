// All forms of new and delete, and containers.
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

struct alignas(64) Line { char bytes[64]; };
struct Small { long a, b, c; virtual ~Small() {} };
struct Derived : Small { long more[5]; };

static bool is_aligned(const void *at, std::size_t to) { return reinterpret_cast<std::uintptr_t>(at) % to == 0; }

int main() {
    bool is_good = true;
    for (int i = 0; i < 1000; i++) {
        Small *one = new Derived, *many = new Small[i % 7 + 1];
        Line *line = new Line, *lines = new Line[3];
        is_good = is_good && is_aligned(one, 16) && is_aligned(line, 64) && is_aligned(lines, 64);
        int *quiet = new (std::nothrow) int, *quiets = new (std::nothrow) int[9];
        Line *quiet_line = new (std::align_val_t{64}, std::nothrow) Line;
        void *raw = ::operator new(24), *raws = ::operator new[](48);
        void *page = ::operator new(100, std::align_val_t{4096});
        is_good = is_good && is_aligned(page, 4096) && is_aligned(quiet_line, 64);
        delete one; delete[] many; delete line; delete[] lines; delete quiet; delete[] quiets;
        ::operator delete(quiet_line, std::align_val_t{64}, std::nothrow);
        ::operator delete(raw, std::size_t{24}); ::operator delete[](raws);
        ::operator delete(page, std::size_t{100}, std::align_val_t{4096});
    }
    std::map<std::string, std::vector<int>> table;
    for (int i = 0; i < 5000; i++) table["key number " + std::to_string(i % 700)].push_back(i);
    std::size_t sum = 0;
    for (const auto &[key, numbers] : table) sum += key.size() * numbers.size();
    auto shared = std::make_shared<Derived>();
    try {
        // A compiler may leave out a pair of new and delete, but not these.
        ::operator delete(::operator new(std::size_t{1} << 62));
    } catch (const std::bad_alloc &) {
        std::printf("%s %zu\n", is_good ? "aligned" : "not aligned", sum);
    }
}
