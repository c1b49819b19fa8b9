// A simulated exchange: orders come in, some are cancelled, and strategies watch the trades.
#include <array>
#include <book.hpp>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using namespace market;

// Remembers the average price, weighed by quantity.
class AveragePrice final : public Listener {
public:
    void on_trade(const Trade &trade) override
    {
        value_ += std::uint64_t(trade.price) * trade.quantity;
        quantity_ += trade.quantity;
    }
    std::uint64_t result() const override { return quantity_ ? value_ / quantity_ : 0; }

private:
    std::uint64_t value_ = 0;
    std::uint64_t quantity_ = 0;
};

// Remembers how often the price went up or down, over a window given as a parameter.
template <unsigned Window> class Momentum final : public Listener {
public:
    void on_trade(const Trade &trade) override
    {
        Price &oldest = prices_[count_++ % Window];
        up_ += trade.price > oldest;
        down_ += trade.price < oldest;
        oldest = trade.price;
    }
    std::uint64_t result() const override { return up_ * 2 + down_; }

private:
    std::uint64_t count_ = 0, up_ = 0, down_ = 0;
    std::array<Price, Window> prices_{};
};

// xorshift: the same numbers on every machine.
class Random {
public:
    std::uint32_t below(std::uint32_t bound)
    {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 17;
        state_ ^= state_ << 5;
        return state_ % bound;
    }

private:
    std::uint32_t state_ = 2463534242U;
};

int run(unsigned orders)
{
    const std::array<std::string, 4> clients = {"a pension fund", "a market maker", "a hedge fund",
                                                "somebody's nephew"};
    Book book("LINE", 5);
    Random random;
    std::int64_t imbalance = 0;

    book.listen(std::make_unique<AveragePrice>());
    book.listen(std::make_unique<Momentum<16>>());
    for (std::uint64_t id = 1; id <= orders; id++) {
        Side side = random.below(2) ? Side::Buy : Side::Sell;
        Price drift = side == Side::Buy ? -100 : 100;
        Price price = 10000 + drift + Price(random.below(300)) - 150;

        Quantity quantity = 1 + random.below(500);
        const std::string &client = clients[random.below(4)];

        book.submit(id, side, price, quantity, client);
        if (random.below(2) == 0)
            book.cancel(id - random.below(std::uint32_t(id < 400 ? id : 400)));
        if (id % 16 == 0)
            imbalance += book.imbalance();
    }
    std::printf("orders %u, imbalance %" PRId64 ", checksum %016" PRIx64 "\n", orders, imbalance,
                book.checksum());
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    unsigned long orders = 40000;
    char *end = nullptr;

    if (argc == 3 && !std::strcmp(argv[1], "--orders") && argv[2][0] >= '0' && argv[2][0] <= '9') {
        orders = std::strtoul(argv[2], &end, 10);
        if (*end || orders > 100000000)
            end = nullptr;
    }
    if (argc != 1 && !end) {
        std::fprintf(stderr, "usage: exchange [--orders N]\n  --orders N  up to 100000000 (40000)\n");
        return 2;
    }
    return run(unsigned(orders));
}
