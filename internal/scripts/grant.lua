-- grant: serves the queue from its head while the heads' weights fit, each by its own capacity. The first
-- live ticket that does not fit blocks those behind it. The owner asker, nil in a release, gets its full lease in the reply;
-- others get a short claim, announced in their client's inbox after it is written, never before.
-- A block, like purge. Leaves asker's token in mine.

local MAXGRANTS = 128 -- grants made by one script, so that none runs for long
local MAXDROPS = 1000 -- tickets of dead clients dropped by one script, likewise

local mine
if q > 0 then
  local n, holes, granted, dropped = head, 0, 0, 0
  local numbers, at -- those of the live tickets behind many holes, in order
  while n < tail do
    local o = redis.call('HGET', KEYS[1], 'w:' .. str(n))
    local c = o and client(o) or ''
    if o and o ~= asker and alive[c] == nil then alive[c] = number(redis.call('HGET', KEYS[1], 'c:' .. c)) > vt end
    if not o then
      holes = holes + 1
      if holes == 16 then
        numbers, at = {}, 0
        for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
          local m = string.sub(field, 1, 2) == 'w:' and number(string.sub(field, 3)) or 0
          if m > n then numbers[#numbers + 1] = m end
        end
        table.sort(numbers)
      end
    elseif o ~= asker and not alive[c] then
      if dropped >= MAXDROPS then
        more = 1
        break
      end
      drop(o, n)
      dropped = dropped + 1
    else
      local _, w, capacity, claim = ticket(redis.call('HGET', KEYS[1], 't:' .. o))
      if w > 0 then
        if used + w > capacity then break end
        if granted >= MAXGRANTS and o ~= asker then
          more = 1
          break
        end
        local deadline = now + (o == asker and lease or claim)
        local token = hold(o, w, deadline)
        granted = granted + 1
        drop(o, n)
        if o == asker then
          mine = token
        else
          redis.pcall('PUBLISH', inbox .. c, 'grant ' .. o .. ' ' .. str(token) .. ' ' .. str(now) .. ' ' .. str(deadline) .. ' ' .. str(q) .. ' ' .. KEYS[1])
        end
      else -- damaged: its owner's next poll queues it anew
        drop(o, n)
      end
    end
    if numbers then
      at = at + 1
      n = numbers[at] or tail
    else
      n = n + 1
    end
  end
  head = n
  if n >= tail then q = 0 end -- nothing is left, whatever the counter says
  changed = true
end
