-- renew: a renewal, see there. Returns two lines: the time in µs, and what the renewal returns.

-- include time
local function renew(KEYS, ARGV)
  -- include renewal
end
return us .. '\n' .. renew(KEYS, ARGV)
