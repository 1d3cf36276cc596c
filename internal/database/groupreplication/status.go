package groupreplication

import (
	"context"
	"errors"
	"fmt"
	"net"

	"skerry/internal/database/daemon"
	"skerry/internal/database/mysql"
)

const online = "ONLINE"

// membersQuery returns the group as the server sees it. A server in no group returns itself, OFFLINE.
const membersQuery = "SELECT member_host, member_port, member_state, member_role FROM performance_schema.replication_group_members"

// member is a member as another one sees it,
// https://dev.mysql.com/doc/refman/en/performance-schema-replication-group-members-table.html.
type member struct {
	host, port string
	state      string // ONLINE, RECOVERING, UNREACHABLE, OFFLINE, ERROR
	role       string // PRIMARY, SECONDARY
}

func parseMembers(rows [][]string) []member {
	var members []member
	for _, r := range rows {
		if len(r) == 4 {
			members = append(members, member{r[0], r[1], r[2], r[3]})
		}
	}
	return members
}

func queryView(ctx context.Context, s *mysql.Server) ([]member, error) {
	rows, err := s.Query(ctx, membersQuery)
	if err != nil {
		return nil, err
	}
	return parseMembers(rows), nil
}

// checkView returns nil if a view has that many members, all ONLINE, and a primary.
func checkView(view []member, size int) error {
	primary := false
	for _, m := range view {
		if m.state != online {
			return fmt.Errorf("%s is %s", m.host, m.state)
		}
		primary = primary || m.role == "PRIMARY"
	}
	if len(view) != size {
		return fmt.Errorf("%d members, not %d", len(view), size)
	}
	if !primary {
		return errNoPrimary
	}
	return nil
}

// CheckAgreement implements mysql.Group: each server sees exactly these servers, all ONLINE.
func (c *cluster) CheckAgreement(ctx context.Context, servers []*mysql.Server) error {
	return daemon.ForEach(ctx, servers, func(ctx context.Context, _ int, s *mysql.Server) error {
		v, err := queryView(ctx, s)
		if err != nil {
			return err
		}
		if err := checkView(v, len(servers)); err != nil {
			return fmt.Errorf("as %s sees it: %w", s.Host.Name(), err)
		}
		return nil
	})
}

func queryState(ctx context.Context, s *mysql.Server) (member, error) {
	v, err := queryView(ctx, s)
	if err != nil {
		return member{}, err
	}
	for _, m := range v {
		if net.JoinHostPort(m.host, m.port) == s.Addr() {
			return m, nil
		}
	}
	return member{}, errors.New("it does not see itself in its group")
}

func (c *cluster) DescribeState(ctx context.Context, s *mysql.Server) (state string, serves bool, err error) {
	m, err := queryState(ctx, s)
	if err != nil || m.state != online {
		return m.state, false, err
	}
	return m.state + ", " + m.role, true, nil
}

// FindServing implements mysql.Group: it returns the primary.
func (c *cluster) FindServing(ctx context.Context) (*mysql.Server, error) {
	return c.FirstServing(ctx, func(ctx context.Context, s *mysql.Server) error {
		m, err := queryState(ctx, s)
		if err == nil && (m.state != online || m.role != "PRIMARY") {
			err = fmt.Errorf("%s is %s, %s", s.Host.Name(), m.state, m.role)
		}
		return err
	})
}

// Count implements database.Cluster. In multi-primary mode the server first applies what the others have.
func (c *cluster) Count(ctx context.Context) (int64, error) {
	s, err := c.FindServing(ctx)
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	for _, o := range c.Others(s) {
		if c.options.single {
			break
		}
		rows, err := o.Query(ctx, "SELECT @@GLOBAL.gtid_executed")
		if err != nil {
			return 0, fmt.Errorf("counting rows: %w", err)
		}
		if _, err := s.QueryWithin(ctx, joinTimeout, "SELECT WAIT_FOR_EXECUTED_GTID_SET(?)", rows[0][0]); err != nil {
			return 0, fmt.Errorf("counting rows: waiting for those of %s: %w", o.Host.Name(), err)
		}
	}
	return s.Count(ctx, "")
}
