-- release: end a hold or one level of it, leave the queue, or free the name by force. May run twice or late.
--
-- KEYS[1]  hash of the name
-- ARGV[1]  owner, "<client id>:<n>"
-- ARGV[2]  depth that is left, 0 to end the hold or to leave the queue
-- ARGV[3]  weight that is left when depth > 0; never raises the weight
-- ARGV[4]  ms for which later requests of this owner are refused; 0: none can come
-- ARGV[5]  highest base of a token that the hold handed out
-- ARGV[6]  prefix of the inbox channels
-- ARGV[7]  1: remove every holder and tell its client
-- ARGV[8]  owner, weight, capacity, claim in ms and window in ms (ARGV[8] to ARGV[12]) of the client's next
--          waiter, queued only if this very run ended the hold; absent: nobody
--
-- Returns the numbers "result seq now ticket waiting more"; those missing at the end are 0
-- result: 1 ended the hold or the level, 2 left the queue, 0 owner unknown; seq is the last token given before the
-- grants of this run; now in ms; ticket is the next waiter's; more is 1 if grants were left.

local TOMB = 30000 -- ms for which an owner that was forced out is refused

local owner, nextOwner = ARGV[1], ARGV[8]

-- Nothing but v and this hold is in there, as a fast acquire left it, and its token is in the past: remove the key.
if ARGV[2] == '0' and ARGV[4] == '0' and not nextOwner then
  local held = redis.call('HGET', KEYS[1], 'h:' .. owner)
  if held and redis.call('HLEN', KEYS[1]) == 2 then
    local time = redis.call('TIME')
    local us = time[1] * 1000000 + time[2]
    local deadline, mine = string.match(held, '^%d+ %d+ (%d+) (%d+)$')
    if deadline and deadline * 1000 > us and mine + 0 <= us and ARGV[5] + 0 <= us then
      redis.call('DEL', KEYS[1])
      return '1'
    end
  end
end

local inbox = ARGV[6]
local depth, weight, tomb, token = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
if not (depth and weight and tomb and token and depth >= 0 and weight >= 1 and tomb >= 0 and tomb <= 86400000) then
  return redis.error_reply('HFARGS release got a bad argument')
end

local nextWeight, nextCapacity, nextClaim, nextWindow
if nextOwner then
  nextWeight, nextCapacity, nextClaim, nextWindow = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
  if not (nextWeight and nextCapacity and nextClaim and nextWindow and nextWeight >= 1 and nextWeight <= nextCapacity
    and nextClaim >= 100 and nextClaim <= 86400000 and nextWindow >= 100 and nextWindow <= 86400000) then
    return redis.error_reply('HFARGS release got a bad next waiter')
  end
end

-- include state
-- include machine

touch()
purge()
if token > seq then seq, changed = token, true end
local result = 0
if depth > 0 then
  if held then
    local w, _, deadline, mine = holder(held)
    local left = math.min(w, weight)
    used = used - w + left
    writeHolder(owner, left, depth, deadline, mine)
    result = 1
  end
else
  if held then
    redis.call('HDEL', KEYS[1], 'h:' .. owner)
    used = used - holder(held)
    changed = true
    result = 1
  elseif ticketed then
    drop(owner, (ticket(ticketed)))
    result = 2
  end
  if tomb > 0 then
    redis.call('HSET', KEYS[1], 'x:' .. owner, str(now + tomb), 'v', '1')
    xt = math.max(xt, now + tomb)
    exists, changed = true, true
  end
end

if ARGV[7] == '1' then
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if string.sub(field, 1, 2) == 'h:' then
      local o = string.sub(field, 3)
      redis.call('HDEL', KEYS[1], field)
      redis.call('HSET', KEYS[1], 'x:' .. o, str(now + TOMB))
      redis.pcall('PUBLISH', inbox .. (client(o) or ''), 'revoked ' .. o)
      xt = math.max(xt, now + TOMB)
      result, changed = 1, true
    end
  end
  used, exp = 0, 0
end

local before, n = seq, 0
if nextOwner and result == 1 and depth == 0 then
  local own = redis.call('HMGET', KEYS[1], 'h:' .. nextOwner, 't:' .. nextOwner, 'x:' .. nextOwner)
  if not own[1] and not own[2] and number(own[3]) <= now then
    n = enqueue(nextOwner, nextWeight, nextCapacity, nextClaim, nextWindow)
    cover(now + nextWindow + 2 * STEP)
  end
end
grant(nil, 0, inbox)
if exists then finish() end
return result .. ' ' .. str(before) .. ' ' .. str(now) .. ' ' .. str(n) .. ' ' .. q .. ' ' .. more
