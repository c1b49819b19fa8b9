#include <cstdint>
#include <cstddef>
class Empty { };
class Plain { public: int a; protected: char b; private: long c; static int count; public: static const int limit = 4; int sum() const { return a + b; } };
int Plain::count;
struct Base { int id; char tag; };
struct Derived : Base { char more; long last; };
struct Other { virtual ~Other() {} virtual int f() { return 1; } short s; };
struct Both : Base, Other { int own; int f() override { return own; } };
struct Tail : Other { char in_tail; };
struct EmptyFirst : Empty { int x; };
struct EmptyMember { Empty e; int x; };
struct Left : virtual Base { int l; };
struct Right : virtual Base { int r; };
struct Diamond : Left, Right { int d; };
template <class T, int N> struct Array { T items[N]; unsigned length : 5; unsigned kind : 3; T &operator[](int i) { return items[i]; } };
template <class T> struct Node { Node *next; T value; static int made; };
template <class T> int Node<T>::made;
struct alignas(64) Aligned { char c; };
struct HasAligned { int before; Aligned a; char after; };
struct __attribute__((packed)) Packed { char c; long l; short s; };
struct Bits { unsigned a : 3; unsigned : 0; unsigned b : 9; bool c : 1; long d : 40; };
struct Refs { int &r; int &&rr; int Plain::*pm; int (Plain::*pf)() const; void (*fn)(int); };
struct Nested { struct Inner { char c; double d; } inner; enum class Kind : uint8_t { A, B } kind; union { int i; float f; }; struct { short p, q; } point; };
template <class... Ts> struct Pack; template <> struct Pack<> { }; template <class T, class... Ts> struct Pack<T, Ts...> : Pack<Ts...> { T value; };
struct Final final : Derived { [[no_unique_address]] Empty e; char z; };
Empty empty; Plain plain; Derived derived; Both both; Tail tail; EmptyFirst ef; EmptyMember em; Left left_; Right right_; Diamond diamond;
Array<int, 3> a3; Array<char, 7> a7; Node<int> ni; Node<Derived> nd; Aligned al; HasAligned ha; Packed pk; Bits bits; Nested nested; Pack<char, int, short> pack; Final fin;
Refs *refs;
int main() { return plain.sum() + both.f() + ni.made + nd.made + a3[1] + a7[2]; }
