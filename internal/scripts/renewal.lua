-- renewal: moves the deadline of a hold, and sets right its depth, which a late request may have left wrong. Never
-- creates anything, never shortens. The body of a function of KEYS and ARGV, included by renew and renewals after time.
--
-- KEYS[1]  hash of the name
-- ARGV[1]  "h:" and the owner, "<client id>:<n>"
-- ARGV[2]  "<weight> <depth> +<lease> <token>": what the owner's field begins with if nothing has changed since this client
--          wrote it; lease in ms, 100 to 86400000
-- ARGV[3]  TTL that the key must have at least, in ms: the lease and a second
-- ARGV[4]  highest base of a token that the hold handed out; empty: the token
--
-- Returns "1" when renewed; "1 token waiting" when so, but something had changed or somebody waits; "0" when the owner does
-- not hold; or "-" and an error.

local DAY, SLACK = 86400000, 1000

local lease = ARGV[3] - SLACK
if not (lease >= 100 and lease <= DAY) then return '-HFARGS renew got a bad argument' end

local fields = redis.pcall('HMGET', KEYS[1], ARGV[1], 'v', 'q', 'seq')
if fields.err then return '-' .. fields.err end
local value, version, waiting = fields[1], fields[2], fields[3]

local since, mine, answer
if value and string.sub(value, 1, #ARGV[2]) == ARGV[2] and (not version or version == '1') then
  since = string.sub(value, #ARGV[2] + 1)
  since = tonumber(since == '' and string.match(ARGV[2], '%d+$') or string.match(since, '^ %d+$'))
end
if since and since <= micros and math.floor(since / 1000) + lease > now then -- as expected: nothing else is to be worked out
  value = ARGV[2] .. ' ' .. us
else
  local depth = string.match(ARGV[2], '^%d+ (%d+) ')
  if not depth then return '-HFARGS renew got a bad argument' end
  local w, plus, deadline
  w, plus, deadline, mine, since = string.match(value or '', '^(%d+) %d+ (%+?)(%d+) (%d+) ?(%d*)$')
  if not w or version and version ~= '1' then
    -- include version
    local all = version == '1' and {} or unversioned(version)
    return all.err and '-' .. all.err or '0'
  end
  deadline = plus == '+' and math.floor((since == '' and mine or since) / 1000) + deadline or tonumber(deadline)
  if deadline <= now then return '0' end
  answer = '1 ' .. mine .. ' ' .. (waiting or '0')
  value = w .. ' ' .. depth .. ' +' .. lease .. ' ' .. mine .. ' ' .. us
  if deadline > now + lease then value = w .. ' ' .. depth .. ' ' .. deadline .. ' ' .. mine end
end

-- A full memory never refuses PEXPIRE, and lets what follows it through. GT: never sooner than now; a key without an end,
-- somebody's PERSIST, counts as one that ends later than any.
if redis.call('PEXPIRE', KEYS[1], ARGV[3], 'GT') == 0 and redis.call('PTTL', KEYS[1]) == -1 then
  redis.call('PEXPIRE', KEYS[1], DAY + SLACK)
end
redis.call('HSET', KEYS[1], ARGV[1], value)
local base = tonumber(ARGV[4]) or 0
if base > (tonumber(fields[4] or mine) or 0) then
  redis.call('HSET', KEYS[1], 'seq', string.format('%.0f', base), 'v', '1')
end
return answer or waiting and '1 ' .. string.match(ARGV[2], '%d+$') .. ' ' .. waiting or '1'
