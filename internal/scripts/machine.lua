-- machine: the functions that acquire and release share. They change the variables of state.lua;
-- finish writes those back. Fields of single owners are written at once. What a script needs in one place only, and not
-- always, is a block of its own (purge, grant): to make a function of it takes Lua longer than to skip it.
--
-- The first write of a script is the one that Redis may refuse when its memory is full. It must come
-- before anything else changed, or be one that is never refused (touch, HDEL).

local STEP = 1500 -- ms that the clock of the tickets runs at most between two scripts
local SLACK = 1000 -- ms that a key outlives the last deadline in it
local DAY = 86400000
local SWEEP = 30000 -- ms between two removals of what has passed from a name without holders

local changed = false -- something in state.lua's variables differs from the hash
local ttl -- of the key in ms, as far as it is known
local need = 0 -- the latest deadline that this script wrote: the key's TTL must cover it
local more = 0 -- 1 when grants were left for another run

-- %d is four times as fast as %.0f, but of a server with 32 bits it cannot be had.
local whole = string.format('%d', 9007199254740991) == '9007199254740991' and '%d' or '%.0f'
local function str(n) return string.format(whole, n) end
local function client(o) return string.match(o, '^(.*):') end
local function cover(deadline) if deadline > need then need = deadline end end

-- ticket parses "number weight capacity claim".
local function ticket(t)
  local n, w, capacity, claim = string.match(t or '', '^(%d+) (%d+) (%d+) (%d+)$')
  return number(n), number(w), number(capacity), number(claim)
end
local function writeHolder(o, w, depth, deadline, token)
  redis.call('HSET', KEYS[1], 'h:' .. o, str(w) .. ' ' .. str(depth) .. ' ' .. str(deadline) .. ' ' .. str(token), 'v', '1')
  cover(deadline)
  changed = true
end

-- touch is a write that a full memory never refuses, after which Redis lets the rest of a script through. A lone holder
-- gets a version: with its only field the key would go, and its TTL.
local function touch()
  ttl = redis.call('PTTL', KEYS[1])
  if ttl == -1 then ttl = DAY + SLACK elseif ttl <= 0 then ttl = SLACK end
  redis.call('PEXPIRE', KEYS[1], ttl)
  if not exists then
    ttl = nil
  elseif not fields[1] then
    redis.call('HSET', KEYS[1], 'v', '1')
  end
end

-- The clock by which waiting clients count as dead stands still while nobody reaches the server: a stall
-- of the server or of the network evicts no one.
local vt = now
if q > 0 and lt > 0 then vt = number(fields[9]) + math.min(math.max(now - lt, 0), STEP) end

local alive = {} -- by client, as far as is known
local kept, keptTo -- the client that this script keeps alive, which finish writes
local function keepAlive(c, window)
  alive[c], kept, keptTo, changed = true, c, vt + window, true
end

-- hold makes o a holder and returns its token, greater than every earlier one of this name.
local function hold(o, w, deadline)
  seq = math.max(seq + 1, us)
  writeHolder(o, w, 1, deadline, seq)
  used = used + w
  if exp == 0 or deadline < exp then exp = deadline end
  return seq
end

local function enqueue(o, c, w, capacity, claim, window)
  if q <= 0 then
    q, tail = 0, math.max(us, tail) -- a number never recurs
    head = tail
  end
  local n = tail
  local name = str(n)
  redis.call('HSET', KEYS[1], 'w:' .. name, o, 't:' .. o, name .. ' ' .. str(w) .. ' ' .. str(capacity) .. ' ' .. str(claim), 'v', '1')
  tail, q = n + 1, q + 1
  exists = true
  keepAlive(c, window)
  return n
end

local function drop(o, n)
  redis.call('HDEL', KEYS[1], 'w:' .. str(n), 't:' .. o)
  q = math.max(q - 1, 0)
  changed = true
end

-- finish writes the state back, or deletes the key when nobody holds and nobody waits. Tombstones, and a
-- last token that the server's clock has yet to reach, keep it a little longer; exp then has a script that comes
-- later remove the tombstones that have passed.
local function finish()
  if used <= 0 and q <= 0 then
    if xt <= now and seq <= us then
      redis.call('DEL', KEYS[1])
      return
    end
    if exp <= now then exp = now + SWEEP end
    redis.call('HDEL', KEYS[1], 'used', 'q', 'head', 'tail', 'vt', 'lt')
    redis.call('HSET', KEYS[1], 'v', '1', 'seq', str(seq), 'xt', str(xt), 'exp', str(exp))
    redis.call('PEXPIRE', KEYS[1], math.max(xt, math.ceil(seq / 1000)) - now + SLACK)
    return
  end
  if not changed and q <= 0 then return end
  local set, n = { 'v', '1' }, 2
  local function put(field, value, was)
    value = str(value)
    if value ~= was then
      set[n + 1], set[n + 2] = field, value
      n = n + 2
    end
  end
  put('used', used, fields[2])
  put('seq', seq, fields[4])
  if xt > now then
    put('xt', xt, fields[8])
    cover(xt)
  end
  if exp > 0 then put('exp', exp, fields[3]) end
  if q > 0 then
    put('q', q, fields[5])
    put('head', head, fields[6])
    put('tail', tail, fields[7])
    put('vt', vt, fields[9])
    put('lt', now, fields[10])
  end
  if kept then put('c:' .. kept, keptTo) end
  redis.call('HSET', KEYS[1], unpack(set))
  if exp == 0 and fields[3] then redis.call('HDEL', KEYS[1], 'exp') end
  if q <= 0 and fields[5] then redis.call('HDEL', KEYS[1], 'q', 'head', 'tail', 'vt', 'lt') end
  if seq > us then cover(math.ceil(seq / 1000)) end -- or a later token could be smaller
  ttl = ttl or redis.call('PTTL', KEYS[1])
  if ttl == -1 then cover(now + DAY) end -- somebody's PERSIST: cover whatever is in there
  if need - now + SLACK > ttl then redis.call('PEXPIRE', KEYS[1], need - now + SLACK) end
end
