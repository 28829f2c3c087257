-- renew: move the deadline of a hold, and set right its depth, which a late request may have left wrong. Never
-- creates anything, never shortens.
--
-- KEYS[1]  hash of the name
-- ARGV[1]  "h:" and the owner, "<client id>:<n>"
-- ARGV[2]  lease in ms, 100 to 86400000
-- ARGV[3]  highest base of a token that the hold handed out
-- ARGV[4]  depth
-- ARGV[5]  TTL that the key must have at least, in ms: the lease and a second
--
-- Returns the numbers "1 token now waiting" (now in µs), or "0" when the owner does not hold.

local DAY, SLACK = 86400000, 1000

local lease, token, depth = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if not (lease and token and depth and depth >= 1 and lease >= 100 and lease <= DAY) then
  return redis.error_reply('HFARGS renew got a bad argument')
end

local time = redis.call('TIME')
local us = time[1] .. string.sub('00000' .. time[2], -6)
local fields = redis.call('HMGET', KEYS[1], 'v', ARGV[1], 'seq', 'q')
local w, plus, deadline, mine, since = string.match(fields[2] or '', '^(%d+) %d+ (%+?)(%d+) (%d+) ?(%d*)$')
if not w or fields[1] and fields[1] ~= '1' then
  -- include version
  local all = fields[1] == '1' and {} or unversioned(fields[1])
  return all.err and all or '0'
end
deadline = plus == '+' and math.floor((since == '' and mine or since) / 1000) + deadline or tonumber(deadline)
local now = math.floor(us / 1000)
if deadline <= now then return '0' end

-- A full memory never refuses PEXPIRE, and lets what follows it through. GT: never sooner than now; a key without an end,
-- somebody's PERSIST, counts as one that ends later than any.
if redis.call('PEXPIRE', KEYS[1], ARGV[5], 'GT') == 0 and redis.call('PTTL', KEYS[1]) == -1 then
  redis.call('PEXPIRE', KEYS[1], DAY + SLACK)
end
local value = w .. ' ' .. ARGV[4] .. ' +' .. ARGV[2] .. ' ' .. mine .. ' ' .. us
if deadline > now + lease then value = w .. ' ' .. ARGV[4] .. ' ' .. deadline .. ' ' .. mine end
redis.call('HSET', KEYS[1], ARGV[1], value)
if token > (tonumber(fields[3] or mine) or 0) then
  redis.call('HSET', KEYS[1], 'seq', string.format('%.0f', token), 'v', '1')
end
return '1 ' .. mine .. ' ' .. us .. ' ' .. (fields[4] or '0')
