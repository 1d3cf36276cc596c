package linger

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	why := errors.New("the caller has given up")
	for name, tt := range map[string]struct {
		pause, ends time.Duration // ends is the time at which the context ends, 0 immediately
		want        error
		took        time.Duration
	}{
		"the pause is over":           {time.Second, time.Minute, nil, time.Second},
		"the context ends":            {time.Minute, time.Second, why, time.Second},
		"the context has ended":       {time.Minute, 0, why, 0},
		"no wait":                     {0, time.Minute, nil, 0},
		"no wait in an ended context": {-1, 0, why, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				if tt.ends == 0 {
					cancel(why)
				}
				end := time.AfterFunc(tt.ends, func() { cancel(why) })
				defer end.Stop()
				began := time.Now()
				if err := For(ctx, tt.pause); !errors.Is(err, tt.want) {
					t.Errorf("Wait() = %v, want %v", err, tt.want)
				}
				if took := time.Since(began); took != tt.took {
					t.Errorf("Wait took %v, want %v", took, tt.took)
				}
			})
		})
	}
}
