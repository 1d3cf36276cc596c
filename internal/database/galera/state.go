package galera

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"skerry/internal/database/mysql"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

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
