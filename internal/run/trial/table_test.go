package trial

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A member that applies writes late counts all of them in the end. Records that are lost stay missing.
func TestAwaitCount(t *testing.T) {
	broken := errors.New("no server answers")
	for name, test := range map[string]struct {
		counts []int64
		err    error
		want   int64
	}{
		"all records at once":     {counts: []int64{30}, want: 30},
		"a member that is behind": {counts: []int64{0, 29, 29, 30}, want: 30},
		"a lost record":           {counts: []int64{29}, want: 29},
		"too many records":        {counts: []int64{31}, want: 31},
		"an error":                {counts: []int64{0}, err: broken},
	} {
		calls := 0
		count := func(context.Context) (int64, error) {
			n := test.counts[min(calls, len(test.counts)-1)]
			calls++
			return n, test.err
		}
		got, err := awaitCount(t.Context(), count, 30, time.Second)
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: %d records, %v, want %d, %v", name, got, err, test.want, test.err)
		}
	}
}
