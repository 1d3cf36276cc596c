package trial

import (
	"context"
	"errors"
	"testing"

	"skerry/internal/link/probe"
)

// A direction whose trains were disturbed, or never saturated it, is measured separately.
func TestConfirmBandwidth(t *testing.T) {
	const set = 50_000_000
	good := probe.TrainResult{Packets: 60, BPS: set, Share: 0.9, Even: 1}
	starved := probe.TrainResult{Packets: 60}
	for name, tt := range map[string]struct {
		first probe.BandwidthResult
		came  probe.TrainResult // result of every train of the second measurement
		bps   int64
		err   error
		sent  int
	}{
		"good":              {probe.BandwidthResult{BPS: set}, good, set, nil, 0},
		"off":               {probe.BandwidthResult{BPS: set / 2}, good, set, nil, 2},
		"disturbed":         {probe.BandwidthResult{Err: probe.ErrDisturbed}, good, set, nil, 1},
		"starved":           {probe.BandwidthResult{BPS: set / 2, Err: probe.ErrStarved}, good, set, nil, 1},
		"starved each time": {probe.BandwidthResult{Err: probe.ErrStarved}, starved, 0, probe.ErrStarved, 5},
		"lost":              {probe.BandwidthResult{Err: probe.ErrNoAnswer}, good, 0, probe.ErrNoAnswer, 0},
	} {
		t.Run(name, func(t *testing.T) {
			sent := 0
			way := probe.Way{Send: func(context.Context, probe.Train) (probe.TrainResult, error) { sent++; return tt.came, nil }}
			got, err := confirmBandwidth(t.Context(), probe.BandwidthRequest{Way: way, BPS: set}, tt.first)
			if got != tt.bps || !errors.Is(err, tt.err) || sent != tt.sent {
				t.Errorf("secondLook() = %d, %v after %d trains; want %d, %v after %d", got, err, sent, tt.bps, tt.err, tt.sent)
			}
		})
	}
}
