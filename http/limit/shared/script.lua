-- Takes a hit into a window, or reads the window: package limit's Window, kept in Redis.
-- KEYS[1]: a list of the instants of the hits that were admitted, in microseconds, the oldest first.
-- ARGV[1]: the most hits in any span. ARGV[2]: the span in microseconds. ARGV[3]: 1 to take a hit, 0 to read.
-- Returns whether a hit is admitted (1 or 0), how many are left, and the microseconds until one more may be.
local key, most, span = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local changed = false

-- The clock was set back. The newest hit was not after now, so all of them move back by as much as that takes.
-- They leave the window one span from now at the latest, and never too soon.
local newest = redis.call('LINDEX', key, -1)
if newest and tonumber(newest) > now then
  local hits = redis.call('LRANGE', key, 0, -1)
  redis.call('DEL', key)
  for _, hit in ipairs(hits) do
    redis.call('RPUSH', key, string.format('%.0f', hit - newest + now))
  end
  changed = true
end

-- A hit exactly one span old has left the window.
local oldest = redis.call('LINDEX', key, 0)
while oldest and now - oldest >= span do
  redis.call('LPOP', key)
  oldest = redis.call('LINDEX', key, 0)
end

local count = redis.call('LLEN', key)
local admitted = count < most
if admitted and ARGV[3] == '1' then
  redis.call('RPUSH', key, string.format('%.0f', now))
  count, changed = count + 1, true
end
if changed then
  redis.call('PEXPIRE', key, math.ceil(span / 1000))
end

-- There are more than the most after the limit was lowered: then as many have to leave.
local leaving = redis.call('LINDEX', key, math.max(0, count - most))
return {admitted and 1 or 0, math.max(0, most - count), leaving and span - (now - leaving) or 0}
