-- time: the server's clock, which a hold's deadline counts from. Included by the scripts that renew.

local time = redis.call('TIME')
local us = time[1] .. string.sub('00000' .. time[2], -6)
local micros = tonumber(us)
local now = math.floor(micros / 1000)
