-- state: the fixed fields of the name, as numbers, and this owner's own fields.
-- Included by acquire and release. Uses owner; sets us, now and everything below.

local time = redis.call('TIME')
local us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(us / 1000)

local fields = redis.call('HMGET', KEYS[1], 'v', 'used', 'exp', 'seq', 'q', 'head', 'tail', 'xt', 'vt', 'lt',
  'h:' .. owner, 't:' .. owner)

-- number reads what a script wrote; anything else, a nan say, is 0.
local function number(s)
  local n = tonumber(s or 0)
  return n and n >= 0 and n < 9007199254740992 and n or 0
end

-- holder parses "weight depth deadline token", or "weight depth +lease token since": the deadline is then the lease
-- after since, in µs, or after the token if that is missing.
local function holder(h)
  local w, depth, plus, deadline, token, since = string.match(h, '^(%d+) (%d+) (%+?)(%d+) (%d+) ?(%d*)$')
  deadline, token = number(deadline), number(token)
  if plus == '+' then deadline = math.floor(number(since ~= '' and since or token) / 1000) + deadline end
  return number(w), number(depth), deadline, token
end

-- include version
local exists, all = fields[1] == '1', nil
if not exists then
  all = unversioned(fields[1])
  if all.err then return all end
  exists = #all > 0
end

local used, exp, seq = number(fields[2]), number(fields[3]), number(fields[4])
local q, head, tail = number(fields[5]), number(fields[6]), number(fields[7])
local xt, lt = number(fields[8]), number(fields[10])
local held, ticketed = fields[11], fields[12]

-- From a lone holder the sum of the weights, the earliest deadline and the last token are to be found; from damage as well.
if exists and (not fields[2] or used == 0 and fields[2] ~= '0' or exp == 0 and fields[3]) then
  used = 0
  all = all or redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 2) == 'h:' then
      local w, _, deadline, token = holder(all[i + 1])
      used, seq = used + w, math.max(seq, token)
      if exp == 0 or deadline < exp then exp = deadline end
    end
  end
end
