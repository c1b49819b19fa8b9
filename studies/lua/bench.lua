-- Tables, strings, closures and garbage in turn; prints one checksum per round.
local rounds = tonumber(arg[1] or 6)

-- Objects with methods found through a metatable, kept in a table that grows and shrinks.
local Account = {}
Account.__index = Account

function Account.new(name, balance)
  return setmetatable({ name = name, balance = balance, history = {} }, Account)
end

function Account:deposit(amount)
  self.balance = self.balance + amount
  self.history[#self.history + 1] = amount
end

local function accounts(n)
  local all, sum = {}, 0
  for i = 1, n do all[i] = Account.new("a" .. i % 97, i) end
  for round = 1, 8 do
    for i = round, n, 3 do all[i]:deposit(round * i % 13) end
  end
  for i = 1, n do sum = sum + all[i].balance + #all[i].history end
  return sum
end

-- Words made, interned, counted and joined again.
local function words(n)
  local counts, parts = {}, {}
  for i = 1, n do
    local word = string.format("w%d", i * 7919 % 251)
    counts[word] = (counts[word] or 0) + 1
    parts[#parts + 1] = word:sub(2, -1) .. "-"
  end
  local text = table.concat(parts)
  local sum = #text
  for digits in text:gmatch("%d+") do sum = (sum * 31 + tonumber(digits)) % 1000003 end
  return sum + counts["w1"]
end

-- Closures that share and replace upvalues.
local function counter(step)
  local value = 0
  return function(by) value = (value + step * by) % 65521; return value end,
         function() return value end
end

local function closures(n)
  local add, get = {}, {}
  for i = 1, 64 do add[i], get[i] = counter(i) end
  for i = 1, n do add[i % 64 + 1](i) end
  local sum = 0
  for i = 1, 64 do sum = sum + get[i]() end
  return sum
end

-- Short-lived trees: work for the collector.
local function tree(depth)
  if depth == 0 then return { leaf = 1 } end
  return { left = tree(depth - 1), right = tree(depth - 1) }
end

local function weigh(node)
  return node.leaf or weigh(node.left) + weigh(node.right)
end

local function trees(n)
  local sum = 0
  for _ = 1, n do sum = sum + weigh(tree(9)) end
  return sum
end

for round = 1, rounds do
  print(round, accounts(2000), words(8000), closures(40000), trees(24))
end
collectgarbage()
print("done", collectgarbage("count") < 1000)
