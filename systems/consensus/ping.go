package consensus

import "time"

type ping struct {
	sent    int64  // the sender's clock, in ns; the answer repeats it
	applied uint64 // what the sender's consumer has applied
	dropped uint64 // last entry that the sender's log has dropped
	// election is the election timeout that the sender, as leader of term, asks for, in ns.
	election int64
	term     uint64
}

// processStart is the origin of the times in pings. Only their sender reads them.
var processStart = time.Now()

func (p *peer) handlePong(sent int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sent != p.probe {
		return
	}
	p.probe = 0
	p.rtt.add(time.Since(processStart) - time.Duration(sent))
}

// newPing returns a heartbeat. Only one at a time is measured: a link that held several back while it was down delivers them
// together. A ping whose answer may have been dropped is given up.
func (p *peer) newPing(now time.Time) message {
	at := now.Sub(processStart)
	p.mu.Lock()
	if p.probe == 0 || at-time.Duration(p.probe) > pingTimeout {
		p.probe = int64(at)
	}
	p.mu.Unlock()
	ping := p.t.node.heartbeat()
	ping.sent = int64(at)
	return message{ping: &ping}
}

// roundTrip returns an upper bound of nearly all round trips, 0 out of reach. It is unknown before the first answer.
func (p *peer) roundTrip() (_ time.Duration, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.connected {
		return 0, true
	}
	most := p.rtt.upperBound()
	return most, most != 0
}

func (p *peer) describe(s *MemberStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Connected, s.RTT = p.connected, p.rtt.smoothed
	if p.failed != nil && !p.connected {
		s.Error = p.failed.Error()
	}
}

// rtt estimates round trips as RFC 6298 does for TCP. It limits the weight of a single long one: a ping that an outage held
// back is no round trip. Lasting increases are followed within a few pings.
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
	d = min(d, rttFactor*r.upperBound()+rttSlack)
	diff := r.smoothed - d
	if diff < 0 {
		diff = -diff
	}
	r.deviation += (diff - r.deviation) / 4
	r.smoothed += (d - r.smoothed) / 8
}

func (r rtt) upperBound() time.Duration {
	if r.smoothed == 0 {
		return 0
	}
	return r.smoothed + 4*r.deviation
}

const (
	// rttFactor and rttSlack bound how much longer than expected a round trip counts as.
	rttFactor = 2
	rttSlack  = time.Millisecond
	// pingTimeout bounds the wait for an answer. A longer round trip needs an election timeout beyond maxElection.
	pingTimeout = time.Second

	minElection     = 150 * time.Millisecond
	maxElection     = 10 * time.Second
	defaultElection = 500 * time.Millisecond
)

// electionTimeout returns the timeout of Config.Election for the slowest round trip.
func electionTimeout(slowest time.Duration) time.Duration {
	if slowest == 0 {
		return defaultElection
	}
	return min(max(minElection, 10*slowest), maxElection)
}
