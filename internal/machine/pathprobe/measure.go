package pathprobe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// Spec describes a measurement and its target.
type Spec struct {
	Addr  string           `json:"addr"` // IP address and port of a Listener
	Token [tokenBytes]byte `json:"token"`
	// Probes is the number of round trips, one every Every.
	Probes int           `json:"probes"`
	Every  time.Duration `json:"every_ns"`
	// Stream is how long a TCP stream sends, 0 for none.
	Stream time.Duration `json:"stream_ns"`
	// Course requests each round trip.
	Course bool `json:"course,omitempty"`
}

type Result struct {
	Sent int `json:"sent"`
	Lost int `json:"lost"`
	// Min, Median and Max of the round trips, as programs see them; 0 without answers.
	Min    time.Duration `json:"rtt_min_ns"`
	Median time.Duration `json:"rtt_median_ns"`
	Max    time.Duration `json:"rtt_max_ns"`
	// Bandwidth of one TCP stream in bit/s, 0 without one.
	Bandwidth int64 `json:"bandwidth_bps"`
	// Course holds the round trips in the order of sending, 0 for lost probes, if requested.
	Course []time.Duration `json:"course_ns,omitempty"`
}

// late is how long to wait for the last probe or a connection: a firewall may drop either.
const late = 2 * time.Second

// ErrNoAnswer is returned if no packet came back.
var ErrNoAnswer = errors.New("no answer")

// Measure measures from this machine to a Listener on another machine.
func Measure(ctx context.Context, o Spec) (Result, error) {
	r, err := measureRTT(ctx, o)
	if err == nil && o.Stream > 0 {
		r.Bandwidth, err = measureBandwidth(ctx, o)
	}
	if err != nil {
		return r, fmt.Errorf("measure path to %s: %w", o.Addr, err)
	}
	return r, nil
}

func measureRTT(ctx context.Context, o Spec) (Result, error) {
	var r Result
	c, err := new(net.Dialer).DialContext(ctx, "udp", o.Addr)
	if err != nil {
		return r, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	heard, left := make(chan map[uint64]time.Duration), make([]uint64, 0, o.Probes)
	began := time.Now()
	over := began.Add(time.Duration(o.Probes)*o.Every + late)
	if err := c.SetReadDeadline(over); err != nil {
		return r, err
	}
	go func() { heard <- collectReplies(c, began, o.Probes) }()
	for i := range o.Probes {
		select {
		case <-time.After(time.Until(began.Add(time.Duration(i) * o.Every))):
		case <-ctx.Done():
		}
		left = append(left, uint64(time.Since(began)))
		packet := binary.BigEndian.AppendUint64(slices.Clone(o.Token[:]), left[i])
		_, _ = c.Write(packet) // one that cannot leave is lost
		r.Sent++
	}
	came := <-heard
	if err := ctx.Err(); err != nil {
		return r, err
	}
	var trips []time.Duration
	for _, at := range left {
		trip, back := came[at]
		if back {
			trips = append(trips, trip)
		}
		if o.Course {
			r.Course = append(r.Course, trip)
		}
	}
	r.Lost = r.Sent - len(trips)
	if len(trips) == 0 {
		return r, fmt.Errorf("%w to %d UDP packets", ErrNoAnswer, r.Sent)
	}
	slices.Sort(trips)
	r.Min, r.Median, r.Max = trips[0], trips[len(trips)/2], trips[len(trips)-1]
	return r, nil
}

// collectReplies reads answers until all have arrived or the deadline passes. Each answer holds its time of sending, from
// which the returned round trips follow.
func collectReplies(c net.Conn, began time.Time, all int) map[uint64]time.Duration {
	trips := make(map[uint64]time.Duration, all)
	b := make([]byte, maxPacket)
	for len(trips) < all {
		n, err := c.Read(b)
		switch {
		case errors.Is(err, net.ErrClosed), isTimeout(err):
			return trips
		case err != nil || n != tokenBytes+8: // refused, for example
			continue
		}
		sent := binary.BigEndian.Uint64(b[tokenBytes:])
		if _, seen := trips[sent]; !seen { // the network may double it
			trips[sent] = time.Since(began) - time.Duration(sent)
		}
	}
	return trips
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// measureBandwidth sends for a time and divides the received bits by the duration.
func measureBandwidth(ctx context.Context, o Spec) (int64, error) {
	c, err := (&net.Dialer{Timeout: late}).DialContext(ctx, "tcp", o.Addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if _, err := c.Write(o.Token[:]); err != nil {
		return 0, err
	}
	piece := make([]byte, 1<<16)
	began := time.Now()
	for time.Since(began) < o.Stream {
		if _, err := c.Write(piece); err != nil {
			return 0, err
		}
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return 0, err
	}
	var arrived [8]byte
	if _, err := io.ReadFull(c, arrived[:]); err != nil {
		return 0, err
	}
	return int64(float64(8*binary.BigEndian.Uint64(arrived[:])) / time.Since(began).Seconds()), nil
}
