package migrating

import ( // of both sides
	_ "github.com/alicebob/miniredis/v2"
	_ "github.com/go-redis/redis_rate/v10"
	_ "github.com/ratetier/ratetier/stores/redis"
	_ "github.com/redis/go-redis/v9"
)
