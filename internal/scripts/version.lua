-- version: what to make of a hash whose v is not 1. Included by state, renew and inspect.

-- unversioned returns the fields and values of a hash that has no version because it has nothing but a lone holder, {} if
-- there is no hash, or an error: it is not ours, or a later version's.
local function unversioned(version)
  local size = version and -1 or redis.call('HLEN', KEYS[1])
  if size == 0 then return {} end
  if size > 0 and size < 100 then
    local all = redis.call('HGETALL', KEYS[1])
    for i = 1, #all, 2 do
      if string.sub(all[i], 1, 2) == 'h:' and string.match(all[i + 1], '^%d+ %d+ %+?%d+ %d+ ?%d*$') then return all end
    end
  end
  return redis.error_reply('HFVERSION the key has protocol version ' .. (version or 'none') .. ', this client speaks version 1')
end
