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
-- microseconds and the nanoseconds above them.
--
-- A bucket is stored as its TATs, the times at which each rate is full again, with a
-- space between: in microseconds, with a point and three digits where that is not whole.

-- Redis before 5 lets a script that has read the clock write only after this.
if redis.replicate_commands then
	redis.replicate_commands()
end

-- pop returns the time that the text begins with, and the rest of the text; or nothing
-- if it does not begin with one.
local function pop(text)
	local us, fraction, rest = string.match(text, '^(%d+)(%.?%d*) ?(.*)$')
	if not us or #us > 16 then
		return
	end
	if fraction == '' then
		return tonumber(us, 10), 0, rest
	end
	if #fraction == 4 then
		return tonumber(us, 10), tonumber(string.sub(fraction, 2), 10), rest
	end
end

local now
if ARGV[1] == '' then
	local time = redis.call('TIME')
	now = tonumber(time[1], 10) * 1000000 + tonumber(time[2], 10)
else
	now = pop(ARGV[1]) or error('malformed time')
end

-- load returns how much of each rate of the stored bucket is used. What is not a bucket
-- has no rates; of what has another type, Redis says that there is nothing.
local function load(text)
	local bucket = {}
	text = text or ''
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

-- request returns what the text asks for, as numbers. Many ask the same, and are read
-- once.
local requests = {}
local function request(text)
	local r = {mode = string.sub(text, 1, 1), free = true}
	for number in string.gmatch(text, ' (%d+)') do
		r[#r + 1] = tonumber(number, 10)
	end
	for i = 1, #r, 4 do
		if r[i + 3] == nil then
			error('malformed request')
		end
		r.free = r.free and r[i + 2] + r[i + 3] == 0
	end
	if not string.find('tcrx', r.mode, 1, true) or (#r == 0) ~= (text == 'x') then
		error('malformed request')
	end
	requests[text] = r
	return r
end

-- above tells whether the first time is the longer one.
local function above(us, ns, than_us, than_ns)
	return us > than_us or (us == than_us and ns > than_ns)
end

-- carry returns a bucket of so many numbers, each rate with the highest use of all.
local function carry(bucket, size)
	local us, ns = 0, 0
	for i = 1, #bucket, 2 do
		if above(bucket[i], bucket[i + 1], us, ns) then
			us, ns = bucket[i], bucket[i + 1]
		end
	end
	local carried = {}
	for i = 1, size, 2 do
		carried[i], carried[i + 1] = us, ns
	end
	return carried
end

-- What is used above a full bucket is cut to this many microseconds: Lateness of package
-- gcra, which says why.
local lateness = 1000000

local values = redis.call('MGET', unpack(KEYS))
local buckets, changed, reply = {}, {}, {}
for k, key in ipairs(KEYS) do
	local r = requests[ARGV[1 + k]] or request(ARGV[1 + k])
	local bucket = buckets[key] or load(values[k])
	if #bucket ~= #r / 2 then
		bucket = carry(bucket, #r / 2)
	end
	local after, allowed = {}, 1
	for i = 1, #bucket, 2 do
		local full_us, full_ns, cost_us, cost_ns = r[2 * i - 1], r[2 * i], r[2 * i + 1], r[2 * i + 2]
		local us, ns = bucket[i], bucket[i + 1]
		if above(us, ns, full_us + lateness, full_ns) then
			us, ns = full_us + lateness, full_ns
			bucket[i], bucket[i + 1] = us, ns
			changed[key] = true
		end
		if r.mode == 'r' then
			us, ns = us - cost_us, ns - cost_ns
			if ns < 0 then
				us, ns = us - 1, ns + 1000
			end
			if us < 0 then
				us, ns = 0, 0
			end
		elseif cost_us + cost_ns > 0 then
			us, ns = us + cost_us, ns + cost_ns
			if ns >= 1000 then
				us, ns = us + 1, ns - 1000
			end
			if above(us, ns, full_us, full_ns) then
				us, ns = full_us, full_ns
				if above(bucket[i], bucket[i + 1], us, ns) then
					us, ns = bucket[i], bucket[i + 1]
				end
				if r.mode == 't' then
					allowed = 0
				end
			end
		end
		after[i], after[i + 1] = us, ns
	end
	if allowed == 1 and not r.free or r.mode == 'x' then
		bucket = after
		changed[key] = true
	end
	buckets[key] = bucket
	reply[#reply + 1] = allowed
	for i = 1, #bucket do
		reply[#reply + 1] = bucket[i]
	end
end

-- A bucket is kept until it is full again, to the next millisecond.
for key in pairs(changed) do
	local bucket, tats, ms = buckets[key], {}, 0
	for i = 1, #bucket, 2 do
		local us, ns = bucket[i], bucket[i + 1]
		local tat = string.format('%.0f', now + us)
		if ns > 0 then
			tat = tat .. string.format('.%03d', ns)
			us = us + 1
		end
		tats[#tats + 1] = tat
		ms = math.max(ms, math.ceil(us / 1000))
	end
	if ms == 0 then
		redis.call('DEL', key)
	else
		redis.call('SET', key, table.concat(tats, ' '), 'PX', string.format('%.0f', ms))
	end
end
return reply
