-- A test for scripts/shuffle: Debian's Lua comes without one. It fails with an error, and says `ok` otherwise.

-- Tables: array part, hash part, removal, order, length, metamethods of access.
local numbers = {}
for i = 1, 2000 do numbers[i] = (i * 7919) % 2003 end
table.sort(numbers)
for i = 2, #numbers do assert(numbers[i - 1] <= numbers[i]) end
table.sort(numbers, function(a, b) return a > b end)
assert(#numbers == 2000 and numbers[1] >= numbers[2000])
local keyed = {}
for i = 1, 500 do keyed["k" .. i] = i; keyed[i + 0.5] = -i; keyed[-i] = tostring(i) end
for i = 1, 500, 2 do keyed["k" .. i] = nil end
local count, sum = 0, 0
for key, value in pairs(keyed) do
  count = count + 1
  if type(value) == "number" then sum = sum + value end
end
assert(count == 1250 and sum == 62750 - 125250, count .. " " .. sum)
assert(select("#", table.unpack({ 1, nil, 3 }, 1, 3)) == 3)
assert(table.concat({ 1, 2, 3 }, "-") == "1-2-3")
assert(table.remove({ 4, 5, 6 }, 1) == 4)
assert(rawlen({ 1, 2 }) == 2 and next({}) == nil)

-- Strings: short and long ones, patterns, formats, packing, conversion.
local long = string.rep("abc", 1000)
assert(#long == 3000 and long:sub(-3) == "abc" and long:rep(2) == long .. long)
assert(("x=1, yy=22"):gsub("(%w+)=(%w+)", "%2=%1") == "1=x, 22=yy")
local words = {}
for word in ("the quick brown fox"):gmatch("%a+") do words[#words + 1] = word:upper() end
assert(table.concat(words, " ") == "THE QUICK BROWN FOX")
assert(("key = value"):match("^(%w+)%s*=%s*(%w+)$") == "key")
assert(string.format("%5.2f|%-5s|%05d|%q|%x", 3.14159, "ab", 42, "a\nb", 255) == " 3.14|ab   |00042|\"a\\\nb\"|ff")
assert(string.unpack("<i4", string.pack("<i4", -7)) == -7)
assert(tonumber("0x10") == 16 and tonumber("1e2") == 100.0 and tonumber("z", 36) == 35 and not tonumber("x"))
assert(utf8.char(228, 8364) == "ä€" and utf8.len("ä€") == 2)

-- Arithmetic and comparison.
assert(7 // 2 == 3 and -7 // 2 == -4 and 7 % -3 == -2 and 2 ^ 10 == 1024.0 and 7 / 2 == 3.5)
assert(math.type(3) == "integer" and math.type(3.0) == "float" and 3 == 3.0 and 1 < 1.5)
assert(0xff & 0x0f | 0x30 == 0x3f and ~0 == -1 and 1 << 62 >> 61 == 2 and 5 ~ 3 == 6)
assert(math.maxinteger + 1 == math.mininteger and math.tointeger(2.0) == 2 and math.ult(1, -1))

-- Closures: shared, fresh for each round, kept beyond their function.
local function counter()
  local n = 0
  return function() n = n + 1; return n end, function() return n end
end
local step, look = counter()
for _ = 1, 10 do step() end
assert(look() == 10)
local made = {}
for i = 1, 5 do made[i] = function(d) i = i + d; return i end end
assert(made[1](10) == 11 and made[2](10) == 12 and made[1](1) == 12)
local function sumof(...)
  local all = 0
  for _, value in ipairs({ ... }) do all = all + value end
  return all, select("#", ...)
end
assert(sumof(1, 2, 3) == 6 and select(2, sumof(1, nil, 3)) == 3)
local function tail(n, acc) if n == 0 then return acc end return tail(n - 1, acc + n) end
assert(tail(100000, 0) == 5000050000)

-- Metatables: all kinds of operators, inheritance, calls, iteration, closing.
local Vector = {}
Vector.__index = Vector
local function vector(x, y) return setmetatable({ x = x, y = y }, Vector) end
Vector.__add = function(a, b) return vector(a.x + b.x, a.y + b.y) end
Vector.__mul = function(a, k) return vector(a.x * k, a.y * k) end
Vector.__unm = function(a) return vector(-a.x, -a.y) end
Vector.__eq = function(a, b) return a.x == b.x and a.y == b.y end
Vector.__lt = function(a, b) return a:norm() < b:norm() end
Vector.__le = function(a, b) return a:norm() <= b:norm() end
Vector.__len = function() return 2 end
Vector.__concat = function(a, b) return tostring(a) .. tostring(b) end
Vector.__tostring = function(a) return "(" .. a.x .. "," .. a.y .. ")" end
Vector.__call = function(a, name) return a[name] end
function Vector:norm() return self.x * self.x + self.y * self.y end
local one, two = vector(1, 2), vector(3, 4)
assert(one + two == vector(4, 6) and one * 3 == vector(3, 6) and -one == vector(-1, -2))
assert(one < two and one <= two and not (two < one) and #one == 2)
assert(one .. two == "(1,2)(3,4)" and two("y") == 4)
local Point = setmetatable({}, { __index = Vector })
Point.__index = Point
assert(setmetatable({ x = 3, y = 4 }, Point):norm() == 25)
local seen = {}
local proxy = setmetatable({}, { __newindex = function(_, k, v) seen[k] = v end, __index = function(_, k) return k .. "!" end })
proxy.a = 1
assert(seen.a == 1 and proxy.b == "b!" and rawget(proxy, "a") == nil)
local closed = {}
do
  local a <close> = setmetatable({}, { __close = function() closed[#closed + 1] = "a" end })
  local b <close> = setmetatable({}, { __close = function() closed[#closed + 1] = "b" end })
  local fixed <const> = 5
  assert(fixed == 5)
end
assert(table.concat(closed) == "ba")

-- Errors: values of all types, levels, handlers, errors inside errors.
assert(not pcall(error))
local ok, message = pcall(error, { code = 7 })
assert(not ok and message.code == 7)
ok, message = pcall(function() local t = nil; return t.x end)
assert(not ok and message:find("attempt to index a nil value"))
ok, message = xpcall(function() error("deep", 0) end, function(m) return m .. debug.traceback("", 1):sub(1, 6) end)
assert(not ok and message:find("^deep"))
assert(select(2, pcall(string.rep)):find("bad argument #1"))
local function overflow() return overflow() + 1 end
ok, message = pcall(overflow)
assert(not ok and message:find("stack overflow"))
assert(not load("x = = 1") and load("return ...", "chunk", "t")(9) == 9)

-- Coroutines: yields across calls, errors, wraps, closing, many at once.
local function producer(n)
  return coroutine.wrap(function() for i = 1, n do coroutine.yield(i) end end)
end
local total = 0
for i in producer(100) do total = total + i end
assert(total == 5050)
local co = coroutine.create(function(a, b)
  local c = coroutine.yield(a + b)
  local ok, got = pcall(function() return coroutine.yield(c * 2) + 1 end)
  assert(ok)
  error("end " .. got)
end)
assert(select(2, coroutine.resume(co, 1, 2)) == 3)
assert(select(2, coroutine.resume(co, 10)) == 20)
ok, message = coroutine.resume(co, 4)
assert(not ok and message:find("end 5") and coroutine.status(co) == "dead")
local many = {}
for i = 1, 200 do many[i] = coroutine.wrap(function(x) while true do x = coroutine.yield(x * i) end end) end
for i = 1, 200 do assert(many[i](2) == 2 * i and many[i](3) == 3 * i) end
local open = coroutine.create(function() local x <close> = setmetatable({}, { __close = function() closed.co = true end }); coroutine.yield() end)
coroutine.resume(open)
assert(coroutine.close(open) and closed.co)

-- Garbage: weak tables, finalisers, resurrection, both modes of collection.
for _, mode in ipairs({ "incremental", "generational", "incremental" }) do
  collectgarbage(mode)
  local weak = setmetatable({}, { __mode = "v" })
  local ephemeral = setmetatable({}, { __mode = "k" })
  local finalised, kept = 0, {}
  for i = 1, 2000 do
    local object = setmetatable({ i }, { __gc = function(o) finalised = finalised + 1; kept[1] = o end })
    weak[i] = object
    ephemeral[object] = { object }
    if i % 100 == 0 then kept[#kept + 1] = object; collectgarbage("step", 10) end
  end
  collectgarbage()
  collectgarbage()
  assert(finalised > 1900, finalised)
  assert(kept[1] and type(kept[1][1]) == "number")
  assert(next(weak) and collectgarbage("count") > 0)
end
local strings = {}
for i = 1, 20000 do strings[i % 50] = ("s" .. i):rep(i % 7 + 1) end
collectgarbage()

-- Debug library, hooks, environments, dumped functions, files.
local lines = 0
debug.sethook(function() lines = lines + 1 end, "l")
local x = 1
x = x + 1
debug.sethook()
assert(lines >= 2)
local info = debug.getinfo(1, "Sl")
assert(info.what == "main" and info.currentline > 0)
local name, value = debug.getlocal(1, 1)
assert(name == "numbers" and value == numbers)
assert(debug.getupvalue(look, 1) == "n" and debug.setupvalue(look, 1, 77) == "n" and look() == 77)
local env = { y = 5 }
assert(load("y = y + 1; return y", "c", "t", env)() == 6 and env.y == 6)
assert(load(string.dump(function(a) return a * 2 end))(21) == 42)
for i = 1, 3 do
  for j = 1, 3 do
    if j == 2 then goto continue end
    assert(i * j ~= 2 * i)
    ::continue::
  end
end
local path = os.tmpname()
local file = assert(io.open(path, "w"))
file:write("one\n", 2, "\n", 3.5, "\n")
file:close()
local read = {}
for line in io.lines(path) do read[#read + 1] = line end
assert(table.concat(read, ",") == "one,2,3.5")
file = assert(io.open(path))
assert(file:read("l") == "one" and file:read("n") == 2 and file:seek("set", 0) == 0 and #file:read("a") == 10)
file:close()
os.remove(path)
assert(os.time({ year = 2001, month = 2, day = 3, hour = 12 }) - os.time({ year = 2001, month = 2, day = 2, hour = 12 }) == 86400)
print("ok")
