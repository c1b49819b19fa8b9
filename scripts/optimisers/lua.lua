-- Strings, sorting, closures and matching: other work than the benchmark that the orders are made from.
local n = tonumber(arg[1] or 20000)
local t = {}
for i = 1, n do t[i] = (i * 7919) % 10007 end
table.sort(t)
local s = {}
for i = 1, n do s[#s + 1] = ("%x:%d"):format(t[i], i) end
local text = table.concat(s, ",")
local count = 0
for a, b in text:gmatch("(%x+):(%d+)") do if #a < #b then count = count + tonumber(b) % 7 end end
local function compose(f, g) return function(x) return g(f(x)) end end
local f = function(x) return x + 1 end
for i = 1, 10 do f = compose(f, function(x) return (x * 3) % 1000 end) end
for i = 1, n do count = count + f(i) end
local ok, err = pcall(function() local x = nil; return x.y end)
print(count, ok, #err)
