-- inspect: everything about a name. Never writes.
--
-- KEYS[1]  hash of the name
--
-- Returns {seconds, microseconds, field, value, field, value, …} of the server's clock and the hash

local time = redis.call('TIME')
local all = redis.call('HGETALL', KEYS[1])
local version, ours = nil, #all == 0
for i = 1, #all, 2 do
  if all[i] == 'v' then version = all[i + 1] end
  if string.sub(all[i], 1, 2) == 'h:' and string.match(all[i + 1], '^%d+ %d+ %+?%d+ %d+$') then ours = true end -- a lone holder has no version
end
if version ~= '1' and (version or not ours) then
  return redis.error_reply('HFVERSION the key has protocol version ' .. (version or 'none') .. ', this client speaks version 1')
end
table.insert(all, 1, time[2])
table.insert(all, 1, time[1])
return all
