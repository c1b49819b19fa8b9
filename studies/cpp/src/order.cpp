#include <order.hpp>

#include <utility>

namespace market {

Order::Order(std::uint64_t id, Side side, Price price, Quantity quantity, std::string client)
    : Entity(id)
{
    client_ = std::move(client);
    note_ = "entered by " + client_;
    side_ = side;
    price_ = price;
    original_ = quantity;
    remaining_ = quantity;
    entered_at_ = id;
}

std::string Order::describe() const
{
    return client_ + " " + std::to_string(original_ - remaining_) + "/" + std::to_string(original_) +
           " in " + std::to_string(fills_);
}

} // namespace market
