package etcd

import (
	"errors"
	"time"

	"skerry/internal/database"
)

// ErrProperty marks a client property that cannot be used.
var ErrProperty = errors.New("bad property")

// Properties of the client.
const (
	PropEndpoints     = "etcd.endpoints"      // host:port,host:port,...
	PropRead          = "etcd.read"           // linearizable (default) or serializable
	PropRoute         = "etcd.route"          // which endpoint first: nearest (default), listed or spread
	PropRequireLeader = "etcd.require_leader" // refuse at once while the member knows of no leader; default false
	PropTimeout       = "etcd.timeout"        // milliseconds for an operation that has no other bound; default 10000
)

// Properties lists the client's properties.
func Properties() []string {
	return []string{PropEndpoints, PropRead, PropRoute, PropRequireLeader, PropTimeout}
}

const (
	readLinearizable = "linearizable"
	readSerializable = "serializable"

	routeNearest = "nearest"
	routeListed  = "listed"
	routeSpread  = "spread"

	defaultTimeout = 10 * time.Second
)

// settings are the client's properties, understood.
type settings struct {
	endpoints     []string
	serializable  bool
	route         string
	requireLeader bool
	timeout       time.Duration
}

func parseSettings(p map[string]string) (settings, error) {
	r := database.ReadProperties(ErrProperty, "etcd.", p, Properties()...)
	s := settings{
		endpoints:     r.Addresses(PropEndpoints, defaultPort),
		serializable:  r.Choice(PropRead, readLinearizable, readLinearizable, readSerializable) == readSerializable,
		route:         r.Choice(PropRoute, routeNearest, routeNearest, routeListed, routeSpread),
		requireLeader: r.Bool(PropRequireLeader, false),
		timeout:       r.Milliseconds(PropTimeout, defaultTimeout),
	}
	return s, r.Err()
}
