package cassandra

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
)

// Modes of a member, in Cassandra's words.
const (
	modeNormal  = "NORMAL"
	modeJoining = "JOINING"
	modeLeaving = "LEAVING"
)

// view is the cluster as one member sees it. Members are named by address.
type view struct {
	member *member
	Mode   string             `json:"OperationMode"`
	Native bool               `json:"NativeTransportRunning"`
	Schema string             `json:"SchemaVersion"`
	Live   []string           `json:"LiveNodes"`
	Coming []string           `json:"JoiningNodes"`
	Going  []string           `json:"LeavingNodes"`
	Moving []string           `json:"MovingNodes"`
	Owners map[string]float64 `json:"OwnershipWithPort"` // address and port to the share of the ring
}

var viewAttributes = []string{"OperationMode", "NativeTransportRunning", "SchemaVersion", "LiveNodes",
	"JoiningNodes", "LeavingNodes", "MovingNodes", "OwnershipWithPort"}

func (m *member) queryView(ctx context.Context) (view, error) {
	v := view{member: m}
	if err := m.jmx.read(ctx, storageService, &v, viewAttributes...); err != nil {
		return v, fmt.Errorf("querying cassandra on %s: %w", m.host.Name(), err)
	}
	owners := make(map[string]float64, len(v.Owners))
	for address, share := range v.Owners {
		owners[endpointAddress(address)] = share
	}
	v.Owners = owners
	return v, nil
}

// endpointAddress returns the address in "10.0.0.1:7000" or "name/10.0.0.1:7000".
func endpointAddress(endpoint string) string {
	if _, after, ok := strings.Cut(endpoint, "/"); ok {
		endpoint = after
	}
	if h, _, err := net.SplitHostPort(endpoint); err == nil {
		return h
	}
	return endpoint
}

// queryViews reads all members' views. If lenient, a member that does not answer has no mode.
func queryViews(ctx context.Context, members []*member, lenient bool) ([]view, error) {
	views := make([]view, len(members))
	g, gctx := errgroup.WithContext(ctx)
	for i, m := range members {
		g.Go(func() (err error) {
			if !m.Running() {
				views[i].member, err = m, fmt.Errorf("%w: %s is halted", database.ErrNotReady, m.host.Name())
			} else {
				views[i], err = m.queryView(gctx)
			}
			if lenient && ctx.Err() == nil {
				return nil
			}
			return err
		})
	}
	return views, g.Wait()
}

// Ready implements database.Cluster: every member is NORMAL, sees all others alive, and names the same owners
// of the ring and the same schema.
func (c *cluster) Ready(ctx context.Context) error {
	members := c.All()
	views, err := queryViews(ctx, members, false)
	if err != nil {
		return err
	}
	return checkSettled(views)
}

func checkSettled(views []view) error {
	if len(views) == 0 {
		return fmt.Errorf("%w: it has no members", database.ErrNotReady)
	}
	var addresses []string
	for _, v := range views {
		addresses = append(addresses, v.member.host.Addr())
	}
	slices.Sort(addresses)
	for _, v := range views {
		name := v.member.host.Name()
		changing := slices.Concat(v.Coming, v.Going, v.Moving)
		owners := slices.Sorted(maps.Keys(v.Owners))
		switch {
		case v.Mode != modeNormal:
			return fmt.Errorf("%w: %s is %s", database.ErrNotReady, name, v.Mode)
		case !v.Native:
			return fmt.Errorf("%w: %s does not serve clients", database.ErrNotReady, name)
		case len(changing) > 0:
			return fmt.Errorf("%w: %s sees %s coming, going or moving", database.ErrNotReady, name, strings.Join(changing, ", "))
		case !slices.Equal(owners, addresses):
			return fmt.Errorf("%w: %s names %d owners of the ring, there are %d members", database.ErrNotReady, name, len(owners), len(addresses))
		case v.Schema != views[0].Schema:
			return fmt.Errorf("%w: %s and %s have different schemas", database.ErrNotReady, name, views[0].member.host.Name())
		}
		for _, a := range addresses {
			if !slices.Contains(v.Live, a) {
				return fmt.Errorf("%w: %s says that %s is down", database.ErrNotReady, name, a)
			}
		}
	}
	return nil
}

// Members implements database.Cluster. A state is that of nodetool status, such as UN. Rows are Cassandra's
// estimate, replicas included.
func (c *cluster) Members(ctx context.Context) ([]database.Member, error) {
	views, err := queryViews(ctx, c.All(), true)
	if err != nil {
		return nil, err
	}
	members := make([]database.Member, len(views))
	for i, v := range views {
		members[i] = describeMember(v.member, views)
		if v.Mode == "" {
			continue
		}
		if members[i].Rows, err = v.member.estimateRows(ctx); err != nil {
			return nil, err
		}
	}
	return members, nil
}

// describeMember returns a member as another one sees it, or as it sees itself if no other answers.
func describeMember(m *member, views []view) database.Member {
	by := slices.IndexFunc(views, func(v view) bool { return v.Mode != "" && v.member != m })
	if by < 0 {
		by = slices.IndexFunc(views, func(v view) bool { return v.Mode != "" })
	}
	if by < 0 {
		return database.Member{Node: m.host.Name(), State: "unreachable"}
	}
	v, addr := views[by], m.host.Addr()
	state := "D"
	if slices.Contains(v.Live, addr) {
		state = "U"
	}
	switch {
	case slices.Contains(v.Coming, addr):
		state += "J"
	case slices.Contains(v.Going, addr):
		state += "L"
	default:
		state += "N"
	}
	return database.Member{Node: m.host.Name(), State: state, Share: v.Owners[addr]}
}

func (m *member) estimateRows(ctx context.Context) (int64, error) {
	var v struct{ Value int64 }
	bean := "org.apache.cassandra.metrics:type=Table,keyspace=" + defaultKeyspace + ",scope=" + defaultTable + ",name=EstimatedPartitionCount"
	err := m.jmx.read(ctx, bean, &v, "Value")
	if errors.Is(err, errJMX) {
		return 0, nil // it has no table yet
	}
	if err != nil {
		return 0, fmt.Errorf("querying cassandra on %s: %w", m.host.Name(), err)
	}
	return v.Value, nil
}
