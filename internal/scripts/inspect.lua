-- inspect: everything about a name. Never writes.
--
-- KEYS[1]  hash of the name
--
-- Returns {seconds, microseconds, field, value, field, value, …} of the server's clock and the hash

local time = redis.call('TIME')
local all = redis.call('HGETALL', KEYS[1])
if #all > 0 and redis.call('HGET', KEYS[1], 'v') ~= '1' then
  return redis.error_reply('HFVERSION the key has protocol version ' .. (redis.call('HGET', KEYS[1], 'v') or 'none') .. ', this client speaks version 1')
end
table.insert(all, 1, time[2])
table.insert(all, 1, time[1])
return all
