-- acquire: try, wait, poll or re-enter. May run twice, late, or after the caller gave up.
--
-- KEYS[1]  hash of the name
-- ARGV[1]  "h:" and the owner, "<client id>:<n>"
-- ARGV[2]  what the value of a lone holder begins with, "<weight> 1 +<lease> "; empty for a re-entry, or if the name is in use
-- ARGV[3]  TTL of a lone holder's key in ms: the lease and a second
-- ARGV[4]  "weight capacity depth lease window claim inbox": weight 1 to capacity; depth 1 acquires, more re-enters; lease
--          in ms, 100 to 86400000; window in ms for which the client counts as alive, 0: do not wait; claim in ms:
--          how long a pushed grant lasts, 100 to 86400000; inbox: prefix of the inbox channels
--
-- Returns the numbers "status token now seq left waiting ticket ahead more"; those missing at the end are 0
-- status: 1 held, 2 waiting, 0 busy (only with window 0), -1 refused (tombstone), -2 lost (only with depth > 1)
-- token of the hold; now in ms; seq is the last token given, if missing the hold's; left is the ms until the
-- earliest deadline; waiting counts the tickets; ahead is 0 when the ticket is the head of the queue; more is 1
-- if the queue could not be served to the end: ask again at once.

-- A name that nobody uses has no key. Its lone holder is all that is written: what else there is to know of the name
-- follows from it. Nothing here parses or formats a number: that would cost as much as all these commands.
if ARGV[2] ~= '' and redis.call('EXISTS', KEYS[1]) == 0 then
  local time = redis.call('TIME')
  local token = time[1] .. string.sub('00000' .. time[2], -6)
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. token)
  local denied = redis.pcall('PEXPIRE', KEYS[1], ARGV[3])
  if type(denied) == 'table' then -- no right to: no key may be left without a TTL
    redis.call('DEL', KEYS[1])
    return denied
  end
  return '1 ' .. token
end

local HELD, WAITING, BUSY, REFUSED, LOST = 1, 2, 0, -1, -2

local owner = string.sub(ARGV[1], 3)
local weight, capacity, depth, lease, window, claim, inbox = string.match(ARGV[4], '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (.*)$')
weight, capacity, depth = tonumber(weight), tonumber(capacity), tonumber(depth)
lease, window, claim = tonumber(lease), tonumber(window), tonumber(claim)
if not (weight and weight >= 1 and weight <= capacity and depth >= 1 and lease >= 100 and lease <= 86400000
  and window <= 86400000 and claim >= 100 and claim <= 86400000) then
  return redis.error_reply('HFARGS acquire got a bad argument')
end

-- include state
-- include machine

local function reply(status, token, left, n, ahead)
  return status .. ' ' .. str(token) .. ' ' .. str(now) .. ' ' .. str(seq) .. ' ' .. left .. ' ' .. q .. ' ' .. str(n) .. ' ' .. ahead .. ' ' .. more
end

if xt > now and number(redis.call('HGET', KEYS[1], 'x:' .. owner)) > now then return reply(REFUSED, 0, 0, 0, 0) end

if held or ticketed then touch() end
-- include purge
if held then
  local w, _, deadline, token = holder(held)
  writeHolder(owner, w, depth, math.max(deadline, now + lease), token) -- the weight stays: a late copy must not change it
  finish()
  return reply(HELD, token, 0, 0, 0)
end
if depth > 1 then -- a re-entry never creates
  if exists then finish() end
  return reply(LOST, 0, 0, 0, 0)
end

local me, asker = client(owner), owner
if window > 0 and (ticketed or q > 0) then keepAlive(me, window) end
-- include grant
local token = mine
if not token and q <= 0 and used + weight <= capacity then token = hold(owner, weight, now + lease) end
if token then
  finish()
  return reply(HELD, token, 0, 0, 0)
end
local left = exp > now and exp - now or 0
if window == 0 then
  finish()
  return reply(BUSY, 0, left, 0, 0)
end

local n = ticket(ticketed)
if n == 0 or redis.call('HGET', KEYS[1], 'w:' .. str(n)) ~= owner then
  n = enqueue(owner, me, weight, capacity, claim, window)
end
cover(now + window + 2 * STEP)
finish()
return reply(WAITING, 0, left, n, n > head and 1 or 0)
