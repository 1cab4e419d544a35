-- Does what ratetier.Request.Apply does, to one bucket or many: reads them all, decides
-- the requests one after the other, and then writes what has changed. Nothing is
-- written unless every request is well formed.
--
-- KEYS[i]    the bucket of request i; several requests may have the same
-- ARGV[1]    the time it is, or '' to go by the clock of the server
-- ARGV[1+i]  what to do: 't' to take, 'c' to charge or 'r' to refund, followed for each
--            rate by how long a whole bucket takes to refill and how much of that is
--            asked for: 't 60000000 0 6000000 0'; or 'x' to reset
--
-- The reply has, for each request, 1 if it is allowed or else 0, and for each rate how
-- much of it is used then.
--
-- Lua counts in doubles, exact to 2^53. That is 285 years of microseconds and 104 days
-- of nanoseconds. So a time is two numbers here, in requests and in the reply, its whole
-- microseconds and the nanoseconds above them. A difference in nanoseconds is only asked
-- for its sign, which is right at any length.
--
-- A bucket is stored as its TATs, the times at which each rate is full again, with a
-- space between: in microseconds, with a point and three digits where that is not whole.

-- Redis before 5 lets a script that has read the clock write only after this.
if redis.replicate_commands then
	redis.replicate_commands()
end

-- What is looked up for every request is faster to find here.
local KEYS, ARGV, tonumber = KEYS, ARGV, tonumber
local find, match, format = string.find, string.match, string.format

-- pop returns the time that the text begins with, and the rest of the text; or nothing
-- if it does not begin with one.
local function pop(text)
	local us, fraction, rest = match(text, '^(%d+)(%.?%d*) ?(.*)$')
	if not us or #us > 16 then
		return
	end
	if fraction == '' then
		return tonumber(us), 0, rest
	end
	if #fraction == 4 then
		return tonumber(us), tonumber(string.sub(fraction, 2), 10), rest
	end
end

local now
if ARGV[1] == '' then
	local time = redis.call('TIME')
	now = time[1] * 1000000 + time[2]
else
	now = pop(ARGV[1]) or error('malformed time')
end

-- load returns how much of each rate of the stored bucket is used. What is not a bucket
-- has no rates; of what has another type, Redis says that there is nothing.
local function load(text)
	if not text then
		return {}
	end
	if #text == 16 and not find(text, '%D') then -- as most are, for which pop takes too long
		local us = tonumber(text) - now
		return {us > 0 and us or 0, 0}
	end
	local bucket = {}
	while text ~= '' do
		local us, ns, rest = pop(text)
		if not us then
			return {}
		end
		if us < now then
			us, ns = now, 0
		end
		bucket[#bucket + 1] = us - now
		bucket[#bucket + 1] = ns
		text = rest
	end
	return bucket
end

-- request returns what the text asks for: the mode, and then the numbers. Many ask the
-- same, and are read once.
local requests = {}
local function request(text)
	local mode, full_us, full_ns, cost_us, cost_ns, rest = match(text, '^([tcr]) (%d+) (%d+) (%d+) (%d+)(.*)$')
	local r = {mode or text}
	while full_us do
		local i = #r
		r[i + 1], r[i + 2], r[i + 3], r[i + 4] = tonumber(full_us), tonumber(full_ns), tonumber(cost_us), tonumber(cost_ns)
		if rest == '' then
			requests[text] = r
			return r
		end
		full_us, full_ns, cost_us, cost_ns, rest = match(rest, '^ (%d+) (%d+) (%d+) (%d+)(.*)$')
	end
	if text ~= 'x' then
		error('malformed request')
	end
	requests[text] = r
	return r
end

-- What is used above a full bucket is cut to this many microseconds: Lateness of package
-- gcra, which says why.
local lateness = 1000000

local values = redis.call('MGET', unpack(KEYS))
local buckets, changed, reply, n = {}, {}, {}, 0
for k = 1, #KEYS do
	local key, r = KEYS[k], requests[ARGV[1 + k]] or request(ARGV[1 + k])
	local mode, size = r[1], (#r - 1) / 2
	local bucket = buckets[key] or load(values[k])
	if #bucket ~= size then -- each rate starts with the highest use of all
		local us, ns = 0, 0
		for i = 1, #bucket, 2 do
			if (bucket[i] - us) * 1000 + bucket[i + 1] - ns > 0 then
				us, ns = bucket[i], bucket[i + 1]
			end
		end
		bucket = {}
		for i = 1, size, 2 do
			bucket[i], bucket[i + 1] = us, ns
		end
	end
	buckets[key] = bucket

	local allowed, free = 1, true
	for i = 1, size, 2 do
		local us, ns = bucket[i], bucket[i + 1]
		local full_us, full_ns, cost_us, cost_ns = r[2 * i], r[2 * i + 1], r[2 * i + 2], r[2 * i + 3]
		if (us - full_us - lateness) * 1000 + ns - full_ns > 0 then
			us, ns = full_us + lateness, full_ns
			bucket[i], bucket[i + 1] = us, ns
			changed[key] = true
		end
		if cost_us + cost_ns > 0 then
			free = false
			if mode == 't' and (us + cost_us - full_us) * 1000 + ns + cost_ns - full_ns > 0 then
				allowed = 0
			end
		end
	end

	if allowed == 1 and not free then
		changed[key] = true
		for i = 1, size, 2 do
			local us, ns = bucket[i], bucket[i + 1]
			local full_us, full_ns, cost_us, cost_ns = r[2 * i], r[2 * i + 1], r[2 * i + 2], r[2 * i + 3]
			if mode == 'r' then
				us, ns = us - cost_us, ns - cost_ns
				if ns < 0 then
					us, ns = us - 1, ns + 1000
				end
				if us < 0 then
					us, ns = 0, 0
				end
			elseif (us - full_us) * 1000 + ns - full_ns < 0 then
				us, ns = us + cost_us, ns + cost_ns
				if ns >= 1000 then
					us, ns = us + 1, ns - 1000
				end
				if (us - full_us) * 1000 + ns - full_ns > 0 then
					us, ns = full_us, full_ns
				end
			end
			bucket[i], bucket[i + 1] = us, ns
		end
	elseif mode == 'x' then
		changed[key] = true
	end

	reply[n + 1] = allowed
	for i = 1, size do
		reply[n + 1 + i] = bucket[i]
	end
	n = n + 1 + size
end

-- A bucket is kept until it is full again, to the next millisecond.
for key in pairs(changed) do
	local bucket, tats, last = buckets[key], nil, 0
	for i = 1, #bucket, 2 do
		local us, ns = bucket[i], bucket[i + 1]
		local tat = format('%.0f', now + us)
		if ns > 0 then
			tat = tat .. format('.%03d', ns)
			us = us + 1
		end
		tats = tats and tats .. ' ' .. tat or tat
		if us > last then
			last = us
		end
	end
	if last == 0 then
		redis.call('DEL', key)
	else
		redis.call('SET', key, tats, 'PX', format('%.0f', math.ceil(last / 1000)))
	end
end
return reply
