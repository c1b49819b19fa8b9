// One side of a book: prices in order of preference, and the orders that wait at each.
#pragma once

#include <functional>
#include <map>
#include <type_traits>

#include <order.hpp>

namespace market {

// The orders at one price, first come first.
struct Level {
    Order *first = nullptr;
    Order *last = nullptr;
    std::uint64_t total = 0;
    std::uint32_t orders = 0;
};

template <Side S> class Ladder {
public:
    using Preference = std::conditional_t<S == Side::Buy, std::greater<Price>, std::less<Price>>;

    // True when a price of the other side would trade with the best of this one.
    bool crosses(Price price) const
    {
        if (levels_.empty())
            return false;
        return S == Side::Buy ? levels_.begin()->first >= price : levels_.begin()->first <= price;
    }

    Order *best() const { return levels_.empty() ? nullptr : levels_.begin()->second.first; }

    void add(Order *order)
    {
        Level &level = levels_[order->price_];
        order->previous_ = level.last;
        order->next_ = nullptr;
        (level.last ? level.last->next_ : level.first) = order;
        level.last = order;
        level.total += order->remaining_;
        level.orders++;
    }

    void filled(Order *order, Quantity quantity)
    {
        levels_.find(order->price_)->second.total -= quantity;
    }

    void remove(Order *order)
    {
        auto found = levels_.find(order->price_);
        Level &level = found->second;
        (order->previous_ ? order->previous_->next_ : level.first) = order->next_;
        (order->next_ ? order->next_->previous_ : level.last) = order->previous_;
        level.total -= order->remaining_;
        if (--level.orders == 0)
            levels_.erase(found);
    }

    // Everything that waits at up to `depth` prices, weighed by rank.
    std::uint64_t pressure(unsigned depth) const
    {
        std::uint64_t sum = 0;
        for (const auto &[price, level] : levels_) {
            if (depth-- == 0)
                break;
            for (const Order *order = level.first; order; order = order->next_)
                sum += std::uint64_t(order->remaining_) * (depth + 1);
        }
        return sum;
    }

private:
    std::map<Price, Level, Preference> levels_;
};

} // namespace market
