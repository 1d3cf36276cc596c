package redis

import (
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// nodeOptions are go-redis' options for one node. Its retries are off: a caller that
// wants to try again says so.
func nodeOptions(addr string, s settings) *goredis.Options {
	return &goredis.Options{
		Addr: addr, Username: s.user, Password: s.password,
		Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		MaxRetries:               -1, DialerRetries: 1, PoolSize: 4,
		ReadTimeout: s.timeout, WriteTimeout: s.timeout, DialTimeout: s.timeout,
	}
}
