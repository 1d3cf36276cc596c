package hydra

import (
	"context"
	"encoding/json"
	"fmt"

	"skerry/internal/database"
	"skerry/internal/system/hydra/hydraclient"
)

var _ database.Handwritten = (*Hydra)(nil)

// Handwritten implements database.Handwritten: a Get of Hydra's own client on a stream of its
// own, and the row's JSON read into a map.
func (*Hydra) Handwritten(_ context.Context, properties map[string]string) (func(context.Context, string) error, func() error, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return nil, nil, err
	}
	c, err := hydraclient.New(hydraclient.Config{Endpoints: s.endpoints, Token: s.token, Streams: 1})
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to hydra: %w", err)
	}
	read := func(ctx context.Context, key string) error {
		row, err := c.Get(ctx, defaultTable, key)
		if err != nil {
			return err
		}
		record := make(map[string]string)
		return json.Unmarshal(row.Value, &record)
	}
	return read, c.Close, nil
}
