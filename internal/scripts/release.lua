-- release: end a hold or one level of it, leave the queue, or free the name by force. May run twice or late.
--
-- KEYS[1]  hash of the name
-- ARGV[1]  "h:" and the owner, "<client id>:<n>"
-- ARGV[2]  1: nothing is asked for but to end the hold: depth, tomb and force are 0, and nobody is next
-- ARGV[3]  "depth weight tomb token force inbox": depth that is left, 0 to end the hold or to leave the queue; weight
--          that is left when depth > 0, which never raises the weight; tomb in ms for which later requests of this owner
--          are refused, 0: none can come; token: the highest base of a token that the hold handed out; force 1: remove
--          every holder and tell its client; inbox: prefix of the inbox channels
-- ARGV[4]  owner of the client's next waiter, queued only if this very run ended the hold; absent: nobody
-- ARGV[5]  its "weight capacity claim window", the last two in ms
--
-- Returns the numbers "result seq now ticket waiting more"; those missing at the end are 0
-- result: 1 ended the hold or the level, 2 left the queue, 0 owner unknown; seq is the last token given before the
-- grants of this run; now in ms; ticket is the next waiter's; more is 1 if grants were left.

-- A lone holder: all that there is of the name goes with it. This is also right when its deadline has just come, for
-- nobody has been granted the name since.
if ARGV[2] == '1' then
  local lone = redis.call('HMGET', KEYS[1], ARGV[1], 'v')
  if lone[1] and not lone[2] then
    redis.call('DEL', KEYS[1])
    return '1'
  end
end

local TOMB = 30000 -- ms for which an owner that was forced out is refused

local owner, nextOwner = string.sub(ARGV[1], 3), ARGV[4]
local depth, weight, tomb, token, force, inbox = string.match(ARGV[3], '^(%d+) (%d+) (%d+) (%d+) ([01]) (.*)$')
depth, weight, tomb, token = tonumber(depth), tonumber(weight), tonumber(tomb), tonumber(token)
if not (depth and weight >= 1 and tomb <= 86400000) then return redis.error_reply('HFARGS release got a bad argument') end

local nextWeight, nextCapacity, nextClaim, nextWindow
if nextOwner then
  nextWeight, nextCapacity, nextClaim, nextWindow = string.match(ARGV[5] or '', '^(%d+) (%d+) (%d+) (%d+)$')
  nextWeight, nextCapacity = tonumber(nextWeight), tonumber(nextCapacity)
  nextClaim, nextWindow = tonumber(nextClaim), tonumber(nextWindow)
  if not (nextWeight and nextWeight >= 1 and nextWeight <= nextCapacity and nextClaim >= 100 and nextClaim <= 86400000
    and nextWindow >= 100 and nextWindow <= 86400000) then
    return redis.error_reply('HFARGS release got a bad next waiter')
  end
end

-- include state
-- include machine

-- The first write is one that a full memory never refuses.
if depth > 0 or not (held or ticketed) or not fields[1] or force == '1' then touch() end -- else it is HDEL
-- include purge
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

if force == '1' then
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if string.sub(field, 1, 2) == 'h:' then
      local o = string.sub(field, 3)
      redis.call('HDEL', KEYS[1], field)
      redis.call('HSET', KEYS[1], 'x:' .. o, str(now + TOMB), 'v', '1')
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
    n = enqueue(nextOwner, client(nextOwner), nextWeight, nextCapacity, nextClaim, nextWindow)
    cover(now + nextWindow + 2 * STEP)
  end
end
local asker, lease = nil, 0
-- include grant
if exists then finish() end
return result .. ' ' .. str(before) .. ' ' .. str(now) .. ' ' .. str(n) .. ' ' .. q .. ' ' .. more
