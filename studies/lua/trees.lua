-- Binary trees of a given depth are made, walked and left to the collector.
local depth = tonumber(arg[1] or 14)
local function tree(d) if d == 0 then return {} end return { tree(d - 1), tree(d - 1) } end
local function count(t) local l = t[1]; if not l then return 1 end return 1 + count(l) + count(t[2]) end
local long = tree(depth)
for d = 4, depth, 4 do
  local n = 1 << (depth - d + 4)
  local sum = 0
  for _ = 1, n do sum = sum + count(tree(d)) end
  print(n, d, sum)
end
print(count(long))
