package hydra

import (
	"context"
	"fmt"

	"skerry/internal/database"
	"skerry/systems/hydra/hydraclient"
)

// clientPool shares clients between workers. A shared client has one connection to a member,
// which carries the operations of its workers as frames.
type clientPool struct {
	database.ClientPool[string, *hydraclient.Client]
}

// acquire returns a client that at most share workers use, and the function that releases it.
// If share is 0, the client belongs to one worker and speaks HTTP.
func (p *clientPool) acquire(ctx context.Context, c hydraclient.Config, share int) (*hydraclient.Client, func() error, error) {
	if share == 0 || c.Dial != nil { // functions cannot be compared
		alone, err := hydraclient.New(c)
		if err != nil {
			return nil, nil, err
		}
		return alone, alone.Close, nil
	}
	c.Streams = 1
	key := fmt.Sprintf("%q", []any{c.Endpoints, c.Token, c.Timeout.String(), c.Read, c.Staleness.String(), c.Ack})
	return p.Acquire(ctx, key, database.ClientSource[*hydraclient.Client]{
		Open:       func(context.Context) (*hydraclient.Client, error) { return hydraclient.New(c) },
		Close:      (*hydraclient.Client).Close,
		MaxWorkers: share,
	})
}
