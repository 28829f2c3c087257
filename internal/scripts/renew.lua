-- renew: move the deadline of a hold, and set right its depth, which a late request may have left wrong. Never
-- creates anything, never shortens.
--
-- KEYS[1]  hash of the name
-- ARGV[1]  "h:" and the owner, "<client id>:<n>"
-- ARGV[2]  lease in ms, 100 to 86400000
-- ARGV[3]  highest base of a token that the hold handed out
-- ARGV[4]  depth
--
-- Returns the numbers "1 token now waiting" (now in ms), or "0" when the owner does not hold.

local DAY, SLACK = 86400000, 1000

local lease, token, depth = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if not (lease and token and depth and depth >= 1 and lease >= 100 and lease <= DAY) then
  return redis.error_reply('HFARGS renew got a bad argument')
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local fields = redis.call('HMGET', KEYS[1], 'v', ARGV[1], 'seq', 'q')
if fields[1] and fields[1] ~= '1' then
  return redis.error_reply('HFVERSION the key has protocol version ' .. fields[1] .. ', this client speaks version 1')
end
local w, plus, deadline, mine = string.match(fields[2] or '', '^(%d+) %d+ (%+?)(%d+) (%d+)$')
if not w then return '0' end
if plus == '+' then deadline = math.floor(mine / 1000) + deadline end
if deadline + 0 <= now then return '0' end

-- A full memory never refuses PEXPIRE, and lets what follows it through. GT: never sooner than now; a key without an end,
-- somebody's PERSIST, counts as one that ends later than any.
if redis.call('PEXPIRE', KEYS[1], lease + SLACK, 'GT') == 0 and redis.call('PTTL', KEYS[1]) == -1 then
  redis.call('PEXPIRE', KEYS[1], DAY + SLACK)
end
deadline = math.max(deadline, now + lease)
redis.call('HSET', KEYS[1], ARGV[1], w .. ' ' .. ARGV[4] .. ' ' .. deadline .. ' ' .. mine)
if token > (tonumber(fields[3] or mine) or 0) then
  redis.call('HSET', KEYS[1], 'seq', string.format('%.0f', token), 'v', '1')
end
return '1 ' .. mine .. ' ' .. now .. ' ' .. (fields[4] or 0)
