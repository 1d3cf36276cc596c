package redis

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry/internal/database"
)

// ErrProperty marks a client property that cannot be used.
var ErrProperty = errors.New("bad property")

// Properties of the client. Those that YCSB's own Redis binding has mean the same.
const (
	PropHosts     = "redis.hosts"     // host:port,host:port,...: where to ask for the cluster's nodes
	PropHost      = "redis.host"      // one of them
	PropPort      = "redis.port"      // default 6379
	PropUser      = "redis.user"      // of an access control list
	PropPassword  = "redis.password"  //
	PropCluster   = "redis.cluster"   // true, false; default: ask the server
	PropScan      = "redis.scan"      // true, false: keep the index that scans need; default: when scanproportion is above 0
	PropTimeout   = "redis.timeout"   // milliseconds for an operation that has no other bound; default 10000
	PropRedirects = "redis.redirects" // MOVED and ASK followed per operation; default 5
	PropWait      = "redis.wait"      // replicas that must have a write before it counts as done; default 0
	// PropScanProportion is the workload's own property.
	PropScanProportion = "scanproportion"
)

// Properties lists the client's properties.
func Properties() []string {
	return []string{PropHosts, PropHost, PropPort, PropUser, PropPassword, PropCluster, PropScan, PropTimeout, PropRedirects, PropWait}
}

const (
	defaultPort      = 6379
	defaultTimeout   = 10 * time.Second
	defaultRedirects = 5
)

// settings are the client's properties, understood.
type settings struct {
	seeds          string // addresses, comma separated: settings are comparable
	user, password string
	cluster        string // "true", "false" or "" for asking
	scan           bool
	timeout        time.Duration
	redirects      int
	wait           int
}

func parseSettings(p map[string]string) (settings, error) {
	s := settings{user: p[PropUser], password: p[PropPassword], timeout: defaultTimeout, redirects: defaultRedirects}
	for k := range p {
		if strings.HasPrefix(k, "redis.") && !slices.Contains(Properties(), k) {
			return s, fmt.Errorf("%w: unknown %s%s", ErrProperty, k, database.SpellingHint(k, Properties()))
		}
	}
	port := defaultPort
	if err := readInt(p, PropPort, 1, 65535, &port); err != nil {
		return s, err
	}
	list := p[PropHosts]
	if list == "" {
		list = p[PropHost]
	}
	if list == "" {
		return s, fmt.Errorf("%w: %s is missing (host:port,host:port,...)", ErrProperty, PropHosts)
	}
	var seeds []string
	for h := range strings.SplitSeq(list, ",") {
		h = strings.TrimSpace(h)
		if _, _, err := net.SplitHostPort(h); err != nil {
			h = net.JoinHostPort(strings.Trim(h, "[]"), strconv.Itoa(port))
		}
		if host, n, _ := net.SplitHostPort(h); host == "" || !isPort(n) {
			return s, fmt.Errorf("%w: %s: %q is not host:port", ErrProperty, PropHosts, h)
		}
		seeds = append(seeds, h)
	}
	s.seeds = strings.Join(seeds, ",")
	if c := p[PropCluster]; c != "" {
		v, err := readBool(p, PropCluster)
		if err != nil {
			return s, err
		}
		s.cluster = strconv.FormatBool(v)
	}
	var err error
	if s.scan, err = parseScan(p); err != nil {
		return s, err
	}
	ms := int(defaultTimeout / time.Millisecond)
	if err := readInt(p, PropTimeout, 1, 1<<31, &ms); err != nil {
		return s, err
	}
	s.timeout = time.Duration(ms) * time.Millisecond
	if err := readInt(p, PropWait, 0, maxReplicas, &s.wait); err != nil {
		return s, err
	}
	return s, readInt(p, PropRedirects, 0, 1000, &s.redirects)
}

func parseScan(p map[string]string) (bool, error) {
	if p[PropScan] != "" {
		return readBool(p, PropScan)
	}
	if p[PropScanProportion] == "" {
		return false, nil
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(p[PropScanProportion]), 64)
	if err != nil {
		return false, fmt.Errorf("%w: %s: %w", ErrProperty, PropScanProportion, err)
	}
	return f > 0, nil
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

func readBool(p map[string]string, name string) (bool, error) {
	v, err := strconv.ParseBool(strings.TrimSpace(p[name]))
	if err != nil {
		return false, fmt.Errorf("%w: %s: %q is neither true nor false", ErrProperty, name, p[name])
	}
	return v, nil
}

// readInt sets v when the property is given.
func readInt(p map[string]string, name string, low, high int, v *int) error {
	if p[name] == "" {
		return nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(p[name]))
	if err != nil || n < low || n > high {
		return fmt.Errorf("%w: %s: %q is not a whole number from %d to %d", ErrProperty, name, p[name], low, high)
	}
	*v = n
	return nil
}
