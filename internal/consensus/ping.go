package consensus

import (
	"encoding/binary"
	"time"
)

// ping is what members tell each other beside raft's messages.
type ping struct {
	sent    int64  // the sender's clock, in ns; the answer repeats it
	applied uint64 // what the sender's consumer has applied
	// election is the election timeout that the sender, as leader of term, asks for, in ns.
	election int64
	term     uint64
}

// started is what pings count time from: only their sender reads it, and its differences
// are of the monotonic clock.
var started = time.Now()

func encodePing(p ping, now time.Time) []byte {
	u := binary.AppendUvarint
	return u(u(u(u([]byte{byte(framePing)}, uint64(now.Sub(started))), p.applied), uint64(p.election)), p.term)
}

func decodePing(b []byte) (ping, error) {
	d := &decoder{b: b[1:]}
	p := ping{sent: int64(d.number()), applied: d.number(), election: int64(d.number()), term: d.number()}
	if d.bad {
		return ping{}, errFrame
	}
	return p, nil
}

func encodePong(sent int64) []byte {
	return binary.AppendUvarint([]byte{byte(framePong)}, uint64(sent))
}

func decodePong(b []byte) (int64, error) {
	d := &decoder{b: b[1:]}
	sent := int64(d.number())
	if d.bad {
		return 0, errFrame
	}
	return sent, nil
}

func (p *peer) pong(sent int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rtt.add(time.Since(started) - time.Duration(sent))
}

// roundTrip is how long a round trip takes at most, nearly always; 0: out of reach.
func (p *peer) roundTrip() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.connected {
		return 0
	}
	return p.rtt.most()
}

// describe tells how the peer is reached.
func (p *peer) describe(s *MemberStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Connected, s.RTT = p.connected, p.rtt.smoothed
	if p.failed != nil && !p.connected {
		s.Error = p.failed.Error()
	}
}

// rtt estimates round trips as RFC 6298 does for TCP.
type rtt struct {
	smoothed, deviation time.Duration
}

func (r *rtt) add(d time.Duration) {
	if d <= 0 {
		return
	}
	if r.smoothed == 0 {
		r.smoothed, r.deviation = d, d/2
		return
	}
	diff := r.smoothed - d
	if diff < 0 {
		diff = -diff
	}
	r.deviation += (diff - r.deviation) / 4
	r.smoothed += (d - r.smoothed) / 8
}

// most is how long a round trip takes at most, nearly always; 0: not measured.
func (r rtt) most() time.Duration {
	if r.smoothed == 0 {
		return 0
	}
	return r.smoothed + 4*r.deviation
}

const (
	minElection     = 150 * time.Millisecond
	maxElection     = 10 * time.Second
	defaultElection = 500 * time.Millisecond
)

// electionTimeout is the rule of Config.Election for the slowest round trip.
func electionTimeout(slowest time.Duration) time.Duration {
	if slowest == 0 {
		return defaultElection
	}
	return min(max(minElection, 10*slowest), maxElection)
}
