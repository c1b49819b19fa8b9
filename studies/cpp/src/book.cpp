#include <book.hpp>

#include <algorithm>
#include <utility>

namespace market {

namespace {
constexpr std::size_t kRecentTrades = 256;
constexpr unsigned kDepth = 4;
} // namespace

Book::Book(std::string symbol, Price tick)
{
    symbol_ = std::move(symbol);
    tick_ = tick;
    recent_.resize(kRecentTrades);
}

void Book::listen(std::unique_ptr<Listener> listener)
{
    listeners_.push_back(std::move(listener));
}

template <Side Resting> void Book::match(Order &taker, Ladder<Resting> &ladder)
{
    while (taker.remaining() > 0 && ladder.crosses(taker.price())) {
        Order *maker = ladder.best();
        Quantity quantity = std::min(taker.remaining(), maker->remaining());
        Trade trade{maker->price(), quantity, maker->id(), taker.id()};

        maker->fill(quantity);
        taker.fill(quantity);
        ladder.filled(maker, quantity);
        recent_[trades_++ % kRecentTrades] = trade;
        volume_ += quantity;
        for (auto &listener : listeners_)
            listener->on_trade(trade);
        if (maker->remaining() == 0) {
            ladder.remove(maker);
            waiting_.erase(maker->id());
        }
    }
}

void Book::submit(std::uint64_t id, Side side, Price price, Quantity quantity, const std::string &client)
{
    auto order = std::make_unique<Order>(id, side, price / tick_ * tick_, quantity, client);

    if (side == Side::Buy)
        match(*order, asks_);
    else
        match(*order, bids_);
    if (order->remaining() == 0)
        return;
    if (side == Side::Buy)
        bids_.add(order.get());
    else
        asks_.add(order.get());
    waiting_.emplace(id, std::move(order));
}

bool Book::cancel(std::uint64_t id)
{
    auto found = waiting_.find(id);

    if (found == waiting_.end())
        return false;
    if (found->second->side() == Side::Buy)
        bids_.remove(found->second.get());
    else
        asks_.remove(found->second.get());
    waiting_.erase(found);
    return true;
}

std::int64_t Book::imbalance() const
{
    return std::int64_t(bids_.pressure(kDepth)) - std::int64_t(asks_.pressure(kDepth));
}

std::uint64_t Book::checksum() const
{
    std::uint64_t sum = trades_ * 1000003 + volume_ + waiting_.size() + symbol_.size() + venue_.size();

    for (const Trade &trade : recent_)
        sum = sum * 31 + std::uint64_t(trade.price) + trade.quantity + trade.maker + trade.taker;
    for (const auto &listener : listeners_)
        sum = sum * 31 + listener->result();
    if (const Order *order = bids_.best())
        sum = sum * 31 + order->describe().size();
    return sum;
}

} // namespace market
