package trial

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"skerry/internal/lab"
	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/record"
)

// Parameters of the link probes before the workload.
const (
	echoes       = 20
	echoInterval = 20 * time.Millisecond
	// bandwidthFloor and bandwidthCeiling bound the bandwidths that are probed, in bit/s. Below, one packet
	// train would delay the trial; above, it would measure the sender.
	bandwidthFloor   = 1_000_000
	bandwidthCeiling = 1_500_000_000
	// encryptedCeiling bounds them for links between machines, in bit/s. Above, it would measure the
	// encryption of packets.
	encryptedCeiling = 100_000_000
	// maxTrainJitter is the most jitter with which a train still arrives evenly.
	maxTrainJitter = 50 * time.Microsecond
	// maxTrainError is the relative error of an undisturbed train.
	maxTrainError = 0.01
)

// probeLinks measures the round trip and bandwidth of every link that is up.
func probeLinks(ctx context.Context, l *lab.Lab) ([]record.LinkFidelity, error) {
	var up []lab.Link
	for _, k := range l.Links() {
		if !k.AB.Down && !k.BA.Down {
			up = append(up, k)
		}
	}
	rtts, err := l.Echo(ctx, up, echoes, echoInterval)
	if err != nil {
		return nil, fmt.Errorf("measure round trips: %w", err)
	}
	var links []record.LinkFidelity
	for i, k := range up {
		links = append(links, newLinkFidelity(k, rtts[i]))
	}
	return links, probeBandwidth(ctx, l, up, links)
}

func newLinkFidelity(l lab.Link, got probe.RTTResult) record.LinkFidelity {
	set := l.AB.Latency + l.BA.Latency
	x := record.LinkFidelity{
		ID: l.ID, From: l.A, To: l.B, SetRTTMS: ms(set), SetJitterMS: ms(l.AB.Jitter + l.BA.Jitter),
		SetABbps: l.AB.Bandwidth, SetBAbps: l.BA.Bandwidth, Real: l.Real,
	}
	if len(got.Samples) > 0 {
		x.Answered = true
		x.RTTMS, x.RTTP99MS = ms(got.Median), ms(got.P99)
		if !l.Real {
			x.RTTErrorMS = ms(got.Median - set)
		}
	}
	return x
}

// probeBandwidth fills in the bandwidth of both directions of each emulated link.
func probeBandwidth(ctx context.Context, l *lab.Lab, up []lab.Link, out []record.LinkFidelity) error {
	var demands []probe.BandwidthRequest
	var into []*int64
	var of []*record.LinkFidelity
	places := l.NodeMachines()
	demand := func(x *record.LinkFidelity, k lab.Link, back bool, q link.Quality, at *int64) error {
		if k.Real || !canSendTrain(q) || places[k.A] != places[k.B] && q.Bandwidth > encryptedCeiling {
			return nil
		}
		way, err := l.ProbeWay(k, back)
		demands = append(demands, probe.BandwidthRequest{Way: way, BPS: q.Bandwidth})
		into, of = append(into, at), append(of, x)
		return err
	}
	for i, k := range up {
		x := &out[i]
		if err := errors.Join(demand(x, k, false, k.AB, &x.ABbps), demand(x, k, true, k.BA, &x.BAbps)); err != nil {
			return err
		}
	}
	results, err := probe.MeasureBandwidths(ctx, demands)
	if err != nil {
		return err
	}
	for i, got := range results {
		*into[i], err = confirmBandwidth(ctx, demands[i], got)
		switch {
		case errors.Is(err, probe.ErrNoAnswer):
			of[i].TrainLost = true
		case errors.Is(err, probe.ErrDisturbed):
			of[i].TrainDisturbed = true
		case errors.Is(err, probe.ErrStarved):
			of[i].TrainStarved = true
		case err != nil:
			return err
		}
	}
	return nil
}

// canSendTrain reports whether packet trains can measure a direction. Lost or delayed packets never arrive
// evenly.
func canSendTrain(q link.Quality) bool {
	return q.Bandwidth >= bandwidthFloor && q.Bandwidth <= bandwidthCeiling && q.Loss == 0 && q.Burst == nil && q.Jitter <= maxTrainJitter
}

// confirmBandwidth returns the bandwidth of one direction: the first result if it is close to the set
// value, otherwise the median of three trains. A disturbed or starved train is repeated while no other is
// sent. probe.ErrStarved means that the sender could not saturate the link, which is not an error of the
// link.
func confirmBandwidth(ctx context.Context, d probe.BandwidthRequest, first probe.BandwidthResult) (int64, error) {
	if errors.Is(first.Err, probe.ErrDisturbed) || errors.Is(first.Err, probe.ErrStarved) {
		first.BPS, first.Err = probe.MeasureBandwidth(ctx, d.Way, d.BPS)
	}
	measured := []int64{first.BPS}
	for err := first.Err; ; {
		switch {
		case (errors.Is(err, probe.ErrDisturbed) || errors.Is(err, probe.ErrStarved)) && len(measured) > 1:
			return first.BPS, nil // keep the first result
		case err != nil:
			return 0, err
		case len(measured) == 1 && math.Abs(float64(first.BPS)/float64(d.BPS)-1) <= maxTrainError:
			return first.BPS, nil
		case len(measured) == 3:
			slices.Sort(measured)
			return measured[1], nil
		}
		var bps int64
		bps, err = probe.MeasureBandwidth(ctx, d.Way, d.BPS)
		measured = append(measured, bps)
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
