// What a trader sends, and what waits in a book.
#pragma once

#include <cstdint>
#include <string>

namespace market {

using Price = std::int64_t;
using Quantity = std::uint32_t;

enum class Side : std::uint8_t { Buy, Sell };

// Whatever the exchange numbers and reports on.
class Entity {
public:
    explicit Entity(std::uint64_t id) : id_(id) {}
    virtual ~Entity() = default;
    virtual std::string describe() const = 0;
    std::uint64_t id() const { return id_; }

private:
    std::uint64_t id_;
};

/// A limit order. Matching needs its quantity, its price and its neighbour; the rest is for reports.
class Order : public Entity {
public:
    Order(std::uint64_t id, Side side, Price price, Quantity quantity, std::string client);
    std::string describe() const override;

    Side side() const { return side_; }
    Price price() const { return price_; }
    Quantity remaining() const { return remaining_; }
    Order *next() const { return next_; }

    void fill(Quantity quantity)
    {
        remaining_ -= quantity;
        fills_++;
    }

private:
    template <Side> friend class Ladder;

    Quantity remaining_ = 0;     ///< what is still to be filled
    std::string client_;         ///< who sent it
    std::uint64_t entered_at_ = 0; ///< when it came in, in steps
    std::string note_;           ///< free text for the back office
    Side side_ = Side::Buy;      ///< buy or sell
    Quantity original_ = 0;      ///< what was asked for at first
    Order *previous_ = nullptr;  ///< the order before it at the same price
    Price price_ = 0;            ///< the worst price it takes
    std::uint32_t fills_ = 0;    ///< how many trades filled it so far
    Order *next_ = nullptr;      ///< the order after it at the same price
};

} // namespace market
