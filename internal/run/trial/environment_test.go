package trial

import (
	"context"
	"errors"
	"strings"
	"testing"

	"skerry/internal/database"
)

// unsettled is a cluster that serves after a number of negative answers.
type unsettled struct {
	database.Cluster
	refusals int
	failed   chan struct{}
}

var (
	errMoving = errors.New("a region moves")
	errKilled = errors.New("a member was killed")
)

func (c *unsettled) Ready(context.Context) error {
	if c.refusals == 0 {
		return nil
	}
	c.refusals--
	return errMoving
}
func (c *unsettled) Failed() <-chan struct{} { return c.failed }
func (c *unsettled) Err() error              { return errKilled }

// The trial waits for a cluster that is rearranging, but not for a failed one, nor after its own end.
func TestWaitReady(t *testing.T) {
	closed := make(chan struct{})
	close(closed)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	const forever = -1
	tests := map[string]struct {
		ctx     context.Context
		cluster unsettled
		want    []error
	}{
		"serves":       {ctx: t.Context(), cluster: unsettled{}},
		"serves later": {ctx: t.Context(), cluster: unsettled{refusals: 3}},
		"has failed":   {ctx: t.Context(), cluster: unsettled{refusals: forever, failed: closed}, want: []error{errMoving, errKilled}},
		"rearranging":  {ctx: ended, cluster: unsettled{refusals: forever}, want: []error{errMoving, context.Canceled}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := &environment{database: "hbase", cluster: &test.cluster}
			err := g.waitReady(test.ctx)
			if (err == nil) != (test.want == nil) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			for _, want := range test.want {
				if !errors.Is(err, want) || !strings.Contains(err.Error(), "hbase") {
					t.Errorf("got %q, want %q for hbase", err, want)
				}
			}
		})
	}
}
