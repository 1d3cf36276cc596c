package galera

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"skerry/internal/database/mysql"
)

// States of members that serve.
const (
	synced  = "Synced"
	primary = "Primary"
)

// status is what a member says of itself and of the cluster that it sees,
// https://galeracluster.com/library/documentation/galera-status-variables.html.
type status struct {
	State   string // wsrep_local_state_comment: Joining, Joined, Donor/Desynced, Synced, ...
	Cluster string // wsrep_cluster_status: Primary, non-Primary, Disconnected
	Ready   bool   // wsrep_ready
	Size    int    // wsrep_cluster_size
	History string // wsrep_cluster_state_uuid
	Last    int64  // wsrep_last_committed: its position in the history
}

const statusQuery = "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_local_state_comment', 'wsrep_cluster_status', " +
	"'wsrep_ready', 'wsrep_cluster_size', 'wsrep_cluster_state_uuid', 'wsrep_last_committed')"

func parseStatus(v map[string]string) (status, error) {
	st := status{
		State: v["wsrep_local_state_comment"], Cluster: v["wsrep_cluster_status"], Ready: v["wsrep_ready"] == "ON",
		History: v["wsrep_cluster_state_uuid"],
	}
	if st.State == "" {
		return st, errors.New("the server is not part of a Galera cluster: it tells no wsrep_local_state_comment")
	}
	var err error
	if st.Size, err = strconv.Atoi(v["wsrep_cluster_size"]); err != nil {
		return st, fmt.Errorf("wsrep_cluster_size: %w", err)
	}
	if st.Last, err = strconv.ParseInt(v["wsrep_last_committed"], 10, 64); err != nil {
		return st, fmt.Errorf("wsrep_last_committed: %w", err)
	}
	return st, nil
}

func (st status) serves(size int) error {
	switch {
	case st.Cluster != primary:
		return fmt.Errorf("its part of the cluster is %s", st.Cluster)
	case st.State != synced || !st.Ready:
		return fmt.Errorf("it is %s (ready: %v)", st.State, st.Ready)
	case st.Size != size:
		return fmt.Errorf("it sees %d members, not %d", st.Size, size)
	}
	return nil
}

func queryStatus(ctx context.Context, s *mysql.Server) (status, error) {
	v, err := s.QueryPairs(ctx, statusQuery)
	if err != nil {
		return status{}, err
	}
	st, err := parseStatus(v)
	if err != nil {
		return st, fmt.Errorf("status of %s: %w", s.Host.Name(), err)
	}
	return st, nil
}

// CheckAgreement implements mysql.Group: the servers are also in the same history.
func (c *cluster) CheckAgreement(ctx context.Context, servers []*mysql.Server) error {
	history := make([]string, len(servers))
	err := mysql.ForEach(ctx, servers, func(ctx context.Context, i int, s *mysql.Server) error {
		st, err := queryStatus(ctx, s)
		if err != nil {
			return err
		}
		history[i] = st.History
		if err := st.serves(len(servers)); err != nil {
			return fmt.Errorf("%s: %w", s.Host.Name(), err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, h := range history {
		if h != history[0] {
			return fmt.Errorf("%s is in another cluster than %s", servers[i].Host.Name(), servers[0].Host.Name())
		}
	}
	return nil
}

func (c *cluster) FindServing(ctx context.Context) (*mysql.Server, error) {
	return c.FirstServing(ctx, func(ctx context.Context, s *mysql.Server) error {
		st, err := queryStatus(ctx, s)
		if err != nil {
			return err
		}
		return st.serves(st.Size)
	})
}

// DescribeState implements mysql.Group.
func (c *cluster) DescribeState(ctx context.Context, s *mysql.Server) (state string, serves bool, err error) {
	st, err := queryStatus(ctx, s)
	if err != nil || st.Cluster == primary {
		return st.State, err == nil, err
	}
	return st.State + ", " + st.Cluster, false, nil
}

// Count implements database.Cluster. One member counts after it has applied everything committed before.
func (c *cluster) Count(ctx context.Context) (int64, error) {
	s, err := c.FindServing(ctx)
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	return s.Count(ctx, waits)
}

// waits begins a statement that sees everything committed before.
const waits = "SET STATEMENT wsrep_sync_wait = 1 FOR "
