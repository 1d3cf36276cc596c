package runner

import (
	"context"
	"errors"
	"testing"
)

func TestCalibration(t *testing.T) {
	c, err := calibrateMachine(t.Context())
	if err != nil || c.DriverOps <= 0 || c.LoopbackP50US <= 0 || c.LoopbackP99US < c.LoopbackP50US {
		t.Errorf("%+v (%v)", c, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := calibrateMachine(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
}
