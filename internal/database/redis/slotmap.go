package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// ownedSlots is a range of slots and the address of the master that serves it.
type ownedSlots struct {
	slotRange
	addr string
}

// errSlots is an answer to CLUSTER SLOTS that does not have its form.
var errSlots = errors.New("not a reply to CLUSTER SLOTS")

// fetchSlotMap asks one node after another for the slots, in random order, until one answers.
func (r *router) fetchSlotMap(ctx context.Context) ([]ownedSlots, error) {
	addrs := slices.Clone(*r.nodes.Load())
	for _, seed := range strings.Split(r.seeds, ",") {
		if !slices.Contains(addrs, seed) {
			addrs = append(addrs, seed)
		}
	}
	var err error
	for _, i := range rand.Perm(len(addrs)) {
		c := r.clients[addrs[i]]
		if c == nil {
			c = goredis.NewClient(nodeOptions(addrs[i], r.settings))
			r.clients[addrs[i]] = c
		}
		var reply any
		if reply, err = c.Do(ctx, "CLUSTER", "SLOTS").Result(); err == nil {
			return parseSlotMap(reply, addrs[i])
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// parseSlotMap reads what the node at asked answered to CLUSTER SLOTS. (go-redis reads no
// answer in which a host is null.) Slots whose master has no known address are left out.
func parseSlotMap(reply any, asked string) (list []ownedSlots, err error) {
	ranges, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("%w: %v", errSlots, reply)
	}
	for _, x := range ranges {
		f, ok := x.([]any)
		if !ok || len(f) < 2 {
			return nil, fmt.Errorf("%w: %v", errSlots, x)
		}
		from, isFrom := f[0].(int64)
		to, isTo := f[1].(int64)
		if !isFrom || !isTo || from < 0 || to >= slots {
			return nil, fmt.Errorf("%w: %v", errSlots, x)
		}
		if len(f) == 2 {
			continue
		}
		addr, err := parseMasterAddr(f[2], asked)
		if err != nil {
			return nil, err
		}
		if addr != "" {
			list = append(list, ownedSlots{slotRange{int(from), int(to)}, addr})
		}
	}
	return list, nil
}

// parseMasterAddr is the address in [host, port, id, [name, value, ...]], "" if it is unknown.
func parseMasterAddr(node any, asked string) (string, error) {
	f, ok := node.([]any)
	if !ok || len(f) < 2 {
		return "", fmt.Errorf("%w: %v", errSlots, node)
	}
	host, named := f[0].(string)
	port, hasPort := f[1].(int64)
	if !hasPort || f[0] != nil && !named {
		return "", fmt.Errorf("%w: %v", errSlots, node)
	}
	if host == unnamed && len(f) > 3 {
		metadata, _ := f[3].([]any)
		if i := slices.Index(metadata, any("ip")); i >= 0 && i+1 < len(metadata) {
			if ip, _ := metadata[i+1].(string); ip != "" {
				host = ip
			}
		}
	}
	return resolveEndpoint(host, strconv.FormatInt(port, 10), asked), nil
}

// unnamed is the host of a node that prefers names (cluster-preferred-endpoint-type hostname)
// and announces none.
const unnamed = "?"

// resolveEndpoint is the address that the node at asked calls host and port, "" if it is unknown. A
// host that is null or empty is that of the node itself: it does not know how clients reach it.
// See https://redis.io/docs/latest/commands/cluster-slots/.
func resolveEndpoint(host, port, asked string) string {
	switch host {
	case unnamed:
		return ""
	case "":
		var err error
		if host, _, err = net.SplitHostPort(asked); err != nil {
			return ""
		}
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}
