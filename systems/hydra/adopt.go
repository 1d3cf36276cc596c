package hydra

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"skerry/internal/base/advice"
	"skerry/systems/consensus"
	"skerry/systems/hydra/cloudsql"
)

// Beginning is where a log begins that goes on after a database's state.
type Beginning struct {
	Log string `json:"log"`
	// After is the index that the state is of: the first entry is the next one.
	After uint64 `json:"after"`
}

// String is the form that ParseBeginning reads: NAME@INDEX.
func (b Beginning) String() string { return fmt.Sprintf("%s@%d", b.Log, b.After) }

// ParseBeginning reads a beginning.
func ParseBeginning(text string) (Beginning, error) {
	name, index, ok := strings.Cut(text, "@")
	after, err := strconv.ParseUint(index, 10, 63)
	if !ok || name == "" || err != nil || after == 0 {
		return Beginning{}, fmt.Errorf("%w: the beginning of a log %q is not NAME@INDEX", ErrConfig, text)
	}
	return Beginning{name, after}, nil
}

// Adopt begins a new log for a member that is not running: one that goes on after what its
// database holds (at nil), or, at every other member of the cluster, the log whose beginning
// the first was told. A database there that is not of this log has to be empty, or is emptied
// with discard: it is rebuilt from the first one's.
//
// The database is given the log's name before the log is made. Ended between the two, the
// member is refused its database, and adopting again gives it another name; the other way
// round there would be a log that no database belongs to.
func Adopt(ctx context.Context, c Config, at *Beginning, discard bool) (b Beginning, err error) {
	if err := c.Complete(); err != nil {
		return b, err
	}
	if c.Direct || c.Join || c.Witness && at == nil {
		return b, fmt.Errorf("%w: a log is begun by a member of a new cluster, with a database unless it is told where", ErrConfig)
	}
	cfg := c.replicated()
	if err := consensus.Vacant(cfg); err != nil {
		return b, err
	}
	if c.Witness {
		return *at, consensus.Begin(cfg, at.Log, at.After)
	}
	s, err := cloudsql.Open(ctx, cloudsql.Config{URL: c.Database, Cluster: c.Cluster, Durable: true, Timeout: c.DatabaseTimeout.Duration()})
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	p, err := s.Progress(ctx)
	if err != nil {
		return b, err
	}
	if at == nil {
		if b, err = give(ctx, s, p); err != nil {
			return b, err
		}
	} else if b = *at; p.Applied != 0 && p.Log != b.Log {
		if !discard {
			return b, advice.With(foreign(p, b.Log), "if another cloud's database is the one to go on with, discard this one's rows: --discard")
		}
		if err := s.Discard(ctx); err != nil {
			return b, err
		}
	}
	return b, consensus.Begin(cfg, b.Log, b.After)
}

// give gives a database the name of a new log.
func give(ctx context.Context, s *cloudsql.Store, p cloudsql.Progress) (b Beginning, err error) {
	if p.Applied == 0 {
		return b, advice.With(errors.New("the database holds nothing to go on with"), "start the member: its log begins with its first entry")
	}
	if b.Log, err = consensus.NewLogName(); err != nil {
		return b, err
	}
	b.After = p.Applied
	return b, s.Give(ctx, p, b.Log)
}
