// The book of one instrument, and those who watch it.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <ladder.hpp>

namespace market {

struct Trade {
    Price price;
    Quantity quantity;
    std::uint64_t maker;
    std::uint64_t taker;
};

// Told of every trade.
class Listener {
public:
    virtual ~Listener() = default;
    virtual void on_trade(const Trade &trade) = 0;
    virtual std::uint64_t result() const = 0;
};

class Book {
public:
    Book(std::string symbol, Price tick);

    void listen(std::unique_ptr<Listener> listener);

    // Trades an order as far as it goes and lets the rest wait. Region.
    void submit(std::uint64_t id, Side side, Price price, Quantity quantity, const std::string &client);

    // Takes a waiting order out; false when it does not wait. Region.
    bool cancel(std::uint64_t id);

    // How much more waits to be bought than sold near the best prices. Region.
    std::int64_t imbalance() const;

    std::uint64_t checksum() const;

private:
    template <Side Resting> void match(Order &taker, Ladder<Resting> &ladder);

    Ladder<Side::Buy> bids_;
    std::string symbol_;
    std::string venue_ = "simulated";
    Price tick_ = 1;
    std::uint64_t trades_ = 0;
    std::vector<Trade> recent_;
    std::vector<std::unique_ptr<Listener>> listeners_;
    std::unordered_map<std::uint64_t, std::unique_ptr<Order>> waiting_;
    std::uint64_t volume_ = 0;
    Ladder<Side::Sell> asks_;
};

} // namespace market
