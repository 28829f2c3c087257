-- machine: the functions that acquire and release share. They change the variables of state.lua;
-- finish writes those back. Fields of single owners and clients are written at once.
--
-- The first write of a script is the one that Redis may refuse when its memory is full. It must come
-- before anything else changed, or be one that is never refused (touch, HDEL).

local STEP = 1500 -- ms that the clock of the tickets runs at most between two scripts
local SLACK = 1000 -- ms that a key outlives the last deadline in it
local DAY = 86400000
local SWEEP = 30000 -- ms between two removals of what has passed from a name without holders
local MAXGRANTS = 128 -- grants made by one script, so that none runs for long
local MAXDROPS = 1000 -- tickets of dead clients dropped by one script, likewise

local changed = false -- something in state.lua's variables differs from the hash
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
  local ttl = redis.call('PTTL', KEYS[1])
  if ttl == -1 then ttl = DAY + SLACK elseif ttl <= 0 then ttl = SLACK end
  redis.call('PEXPIRE', KEYS[1], ttl)
  if exists and not fields[1] then redis.call('HSET', KEYS[1], 'v', '1') end
end

-- The clock by which waiting clients count as dead stands still while nobody reaches the server: a stall
-- of the server or of the network evicts no one.
local vt = now
if q > 0 and lt > 0 then vt = number(fields[9]) + math.min(math.max(now - lt, 0), STEP) end

local alive = {}
local function isAlive(c)
  if alive[c] == nil then alive[c] = number(redis.call('HGET', KEYS[1], 'c:' .. c)) > vt end
  return alive[c]
end
local kept -- the client that this script kept alive
local function keepAlive(c, window)
  if c == kept then return end
  redis.call('HSET', KEYS[1], 'c:' .. c, str(vt + window), 'v', '1')
  alive[c], kept, changed = true, c, true
end

-- hold makes o a holder and returns its token, greater than every earlier one of this name.
local function hold(o, w, deadline)
  seq = math.max(seq + 1, us)
  writeHolder(o, w, 1, deadline, seq)
  used = used + w
  if exp == 0 or deadline < exp then exp = deadline end
  return seq
end

local function enqueue(o, w, capacity, claim, window)
  if q <= 0 then
    q, tail = 0, math.max(us, tail) -- a number never recurs
    head = tail
  end
  local n = tail
  redis.call('HSET', KEYS[1], 'w:' .. str(n), o, 't:' .. o, str(n) .. ' ' .. str(w) .. ' ' .. str(capacity) .. ' ' .. str(claim), 'v', '1')
  tail, q = n + 1, q + 1
  exists = true
  keepAlive(client(o), window)
  return n
end

local function drop(o, n)
  redis.call('HDEL', KEYS[1], 'w:' .. str(n), 't:' .. o)
  q = math.max(q - 1, 0)
  changed = true
end

-- purge removes what has expired. exp is never later than the earliest deadline, so it seldom runs.
local function purge()
  if exp == 0 or exp > now then return end
  touch()
  local all = redis.call('HGETALL', KEYS[1])
  local gone = {}
  used, exp = 0, 0
  for i = 1, #all, 2 do
    local kind = string.sub(all[i], 1, 2)
    if kind == 'h:' then
      local w, _, deadline = holder(all[i + 1])
      if deadline <= now then
        gone[#gone + 1] = all[i]
        if all[i] == 'h:' .. owner then held = false end
      else
        used = used + w
        if exp == 0 or deadline < exp then exp = deadline end
      end
    elseif kind == 'x:' and number(all[i + 1]) <= now or kind == 'c:' and number(all[i + 1]) <= vt then
      gone[#gone + 1] = all[i]
    end
  end
  for i = 1, #gone, 100 do
    redis.call('HDEL', KEYS[1], unpack(gone, i, math.min(i + 99, #gone)))
  end
  changed = true
end

-- numbersAfter lists the numbers of the live tickets behind n, in order.
local function numbersAfter(n)
  local numbers = {}
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if string.sub(field, 1, 2) == 'w:' then
      local m = number(string.sub(field, 3))
      if m > n then numbers[#numbers + 1] = m end
    end
  end
  table.sort(numbers)
  return numbers
end

-- grant serves the queue from its head while the heads' weights fit, each by its own capacity. The first
-- live ticket that does not fit blocks those behind it. The caller me gets its full lease in the reply;
-- others get a short claim, announced in their client's inbox after it is written, never before.
-- Returns me's token, or nil.
local function grant(me, lease, inbox)
  if q <= 0 then return nil end
  local mine
  local n, holes, granted, dropped = head, 0, 0, 0
  local numbers, at
  local function following()
    if not numbers then return n + 1 end
    at = at + 1
    return numbers[at] or tail
  end
  while n < tail do
    local o = redis.call('HGET', KEYS[1], 'w:' .. str(n))
    if not o then
      holes = holes + 1
      if holes == 16 then numbers, at = numbersAfter(n), 0 end
      n = following()
    elseif o ~= me and not isAlive(client(o) or '') then
      if dropped >= MAXDROPS then
        more = 1
        break
      end
      drop(o, n)
      dropped = dropped + 1
      n = following()
    else
      local _, w, capacity, claim = ticket(redis.call('HGET', KEYS[1], 't:' .. o))
      if w > 0 then
        if used + w > capacity then break end
        if granted >= MAXGRANTS and o ~= me then
          more = 1
          break
        end
        local deadline = now + (o == me and lease or claim)
        local token = hold(o, w, deadline)
        granted = granted + 1
        drop(o, n)
        if o == me then
          mine = token
        else
          redis.pcall('PUBLISH', inbox .. client(o), 'grant ' .. o .. ' ' .. str(token) .. ' ' .. str(now) .. ' ' .. str(deadline) .. ' ' .. str(q) .. ' ' .. KEYS[1])
        end
      else -- damaged: its owner's next poll queues it anew
        drop(o, n)
      end
      n = following()
    end
  end
  head = n
  if n >= tail then q = 0 end -- nothing is left, whatever the counter says
  changed = true
  return mine
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
  local set = { 'v', '1', 'used', str(used), 'seq', str(seq) }
  local function put(field, value) set[#set + 1], set[#set + 2] = field, str(value) end
  if xt > now then
    put('xt', xt)
    cover(xt)
  end
  if exp > 0 then put('exp', exp) end
  if q > 0 then
    put('q', q)
    put('head', head)
    put('tail', tail)
    put('vt', vt)
    put('lt', now)
  end
  redis.call('HSET', KEYS[1], unpack(set))
  if exp == 0 and fields[3] then redis.call('HDEL', KEYS[1], 'exp') end
  if q <= 0 and fields[5] then redis.call('HDEL', KEYS[1], 'q', 'head', 'tail', 'vt', 'lt') end
  if seq > us then cover(math.ceil(seq / 1000)) end -- or a later token could be smaller
  local ttl = redis.call('PTTL', KEYS[1])
  if ttl == -1 then cover(now + DAY) end -- somebody's PERSIST: cover whatever is in there
  if need - now + SLACK > ttl then redis.call('PEXPIRE', KEYS[1], need - now + SLACK) end
end
