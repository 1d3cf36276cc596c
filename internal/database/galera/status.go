package galera

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"skerry/internal/database/daemon"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// States of members that serve.
const (
	synced  = "Synced"
	primary = "Primary"
)

// status is a member's report of its own state and of the cluster that it sees,
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
	err := daemon.ForEach(ctx, servers, func(ctx context.Context, i int, s *mysql.Server) error {
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

func (c *cluster) DescribeState(ctx context.Context, s *mysql.Server) (state string, serves bool, err error) {
	st, err := queryStatus(ctx, s)
	if err != nil || st.Cluster == primary {
		return st.State, err == nil, err
	}
	return st.State + ", " + st.Cluster, false, nil
}

func (c *cluster) Count(ctx context.Context) (int64, error) {
	s, err := c.FindServing(ctx)
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	return s.Count(ctx, waits)
}

// waits begins a statement that sees everything committed before.
const waits = "SET STATEMENT wsrep_sync_wait = 1 FOR "

// history is the UUID of the history that a new cluster begins. It contains no time or place.
const history = "736b6572-7279-11ee-8000-000000000000"

// position is a member's position in a history: the last applied transaction, -1 if unknown.
type position struct {
	history string
	seqno   int64
	safe    bool // it was the last to leave: a cluster may be bootstrapped from it
}

func (p position) text() string {
	safe := 0
	if p.safe {
		safe = 1
	}
	return fmt.Sprintf("# GALERA saved state\nversion: 2.1\nuuid:    %s\nseqno:   %d\nsafe_to_bootstrap: %d\n", p.history, p.seqno, safe)
}

func parsePosition(text string) (position, error) {
	p := position{seqno: -1}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		var err error
		switch value = strings.TrimSpace(value); strings.TrimSpace(name) {
		case "uuid":
			p.history = value
		case "seqno":
			p.seqno, err = strconv.ParseInt(value, 10, 64)
		case "safe_to_bootstrap":
			p.safe = value == "1"
		}
		if err != nil {
			return p, fmt.Errorf("reading grastate.dat: %q: %w", strings.TrimSpace(line), err)
		}
	}
	if p.history == "" {
		return p, fmt.Errorf("reading grastate.dat: no uuid in %q", text)
	}
	return p, nil
}

func stateFile(s *mysql.Server) string { return filepath.Join(s.Data(), "grastate.dat") }

// memberID is the UUID of the i-th member in the first view. viewText formats that view for gvwstate.dat.
func memberID(i int) string { return fmt.Sprintf("%08x-7279-11ee-8000-000000000000", i+1) }

func viewText(self, of int, segments []int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "my_uuid: %s\n#vwbeg\nview_id: 3 %s 1\nbootstrap: 0\n", memberID(self), memberID(0))
	for i := range of {
		fmt.Fprintf(&b, "member: %s %d\n", memberID(i), segments[i])
	}
	b.WriteString("#vwend\n")
	return b.String()
}

func seed(ctx context.Context, s *mysql.Server, self, of int, segments []int) error {
	for name, text := range map[string]string{
		stateFile(s):                            position{history: history}.text(),
		filepath.Join(s.Data(), "gvwstate.dat"): viewText(self, of, segments),
	} {
		if err := files.WriteText(ctx, s.Host.Files(), name, text); err != nil {
			return fmt.Errorf("seeding %s: %w", s.Host.Name(), err)
		}
	}
	return nil
}

// recovered matches "WSREP: Recovered position: UUID:SEQNO".
var recovered = regexp.MustCompile(`WSREP: Recovered position: ([0-9a-f-]{36}):(-?[0-9]+)`)

func parseRecovered(output string) (position, error) {
	m := recovered.FindStringSubmatch(output)
	if m == nil {
		return position{}, fmt.Errorf("mariadbd --wsrep-recover told no position")
	}
	n, err := strconv.ParseInt(m[2], 10, 64)
	if err != nil {
		return position{}, fmt.Errorf("mariadbd --wsrep-recover told %q: %w", m[0], err)
	}
	return position{history: m[1], seqno: n}, nil
}

// readPosition returns the position of a stopped member, for a killed one from InnoDB.
func (c *cluster) readPosition(ctx context.Context, s *mysql.Server) (position, error) {
	text, err := files.Read(ctx, s.Host.Files(), stateFile(s))
	if err != nil {
		return position{}, fmt.Errorf("reading the state of %s: %w", s.Host.Name(), err)
	}
	p, err := parsePosition(text)
	if err != nil || p.seqno >= 0 {
		return p, err
	}
	out, err := mysql.Run(ctx, s.Host, mysql.AsServerUser(host.Command{
		Name: "mariadbd", Path: c.Env.Installation.Programs["mariadbd"], Env: c.programsEnv(), Dir: s.Data(),
		Args: []string{"--defaults-file=" + s.ConfigFile(), "--wsrep-recover", "--skip-networking"},
	}))
	if err != nil {
		return p, fmt.Errorf("recovering the position of %s: %w", s.Host.Name(), err)
	}
	return parseRecovered(out)
}
