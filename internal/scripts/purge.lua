-- purge: removes what has expired. exp is never later than the earliest deadline, so it seldom runs. A block, included by acquire
-- and release after machine.

if exp > 0 and exp <= now then
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
