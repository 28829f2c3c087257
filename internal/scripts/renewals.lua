-- renewals: many renewals in one run, which is cheaper than one for each. Where a script must have one key, or name each as
-- the literal KEYS[1], on a Cluster and behind some proxies, there is renew.
--
-- KEYS  those of the renewals
-- ARGV  those of the renewals, four for each
--
-- Returns lines: the time in µs, then what each renewal returns.

-- include time
local function renew(KEYS, ARGV)
  -- include renewal
end
local lines, key, four = { us }, {}, {}
for i = 1, #ARGV / 4 do
  key[1] = KEYS[i]
  for j = 1, 4 do four[j] = ARGV[4 * i - 4 + j] end
  lines[i + 1] = renew(key, four)
end
return table.concat(lines, '\n')
