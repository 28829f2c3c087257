-- inspect: everything about a name. Never writes.
--
-- KEYS[1]  hash of the name
--
-- Returns {seconds, microseconds, field, value, field, value, …} of the server's clock and the hash

-- include version
local version = redis.call('HGET', KEYS[1], 'v')
local all = version == '1' and redis.call('HGETALL', KEYS[1]) or unversioned(version)
if all.err then return all end
local time = redis.call('TIME')
table.insert(all, 1, time[2])
table.insert(all, 1, time[1])
return all
