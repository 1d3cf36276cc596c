// Package linktest is the contract of link.Engine as a test. Both engines run it:
//
//	func TestContract(t *testing.T) {
//		linktest.Run(t, func(t *testing.T) link.Engine { ... }, linktest.Limits{})
//	}
//
// It checks that links do to packets what was asked, not how exactly in time: a
// packet that is early fails on every machine, one that is late only beyond Slack.
// Random effects are checked to six standard deviations.
package linktest

import (
	"os"
	"strconv"
	"testing"
	"time"

	"skerry/internal/link"
	"skerry/internal/testkit"
)

// Limits says where an engine cannot keep the letter of the contract for a reason
// that lies outside it, and how slow the machine is. The zero value is the whole
// contract on a machine of today.
type Limits struct {
	// Unseeded is why the engine's random choices do not follow Spec.Seed.
	Unseeded string
	// JitterByPacket is why the delay of each packet is drawn on its own, so that the mean delay grows with
	// the rate of packets: of several that are close together the largest delay holds for all.
	JitterByPacket string
	// HeaderCorruption is why Corrupt may hit the packet's headers too.
	HeaderCorruption string
	// Slack is how late the quickest of many packets may be; 0 means 25 ms.
	Slack time.Duration
	// Early is how much too early the quickest of many packets may be: of an engine on two machines, which
	// learns how far their clocks are apart.
	Early time.Duration
	// Rate is the relative error allowed for bandwidth; 0 means 0.5 %.
	Rate float64
}

// Slow names the environment variable that tells how many times slower than a machine
// of today this one is; it widens Slack and Rate and stretches the time between packets.
const Slow = "SKERRY_TEST_SLOW"

// Run runs the contract test, making an engine for each part of it. Run closes the
// engines.
func Run(t *testing.T, newEngine func(t *testing.T) link.Engine, limits Limits) {
	testkit.Need(t, testkit.Root)
	if limits.Slack == 0 {
		limits.Slack = 25 * time.Millisecond
	}
	if limits.Rate == 0 {
		limits.Rate = 0.005
	}
	pace := 1
	if slow := os.Getenv(Slow); slow != "" {
		var err error
		if pace, err = strconv.Atoi(slow); err != nil || pace < 1 {
			t.Fatalf("%s is %q, want a positive number", Slow, slow)
		}
	}
	limits.Slack *= time.Duration(pace)
	if pace > 1 {
		limits.Rate *= 3
	}
	s := suite{newEngine: newEngine, Limits: limits, pace: time.Duration(pace)}
	for _, part := range []struct {
		name  string
		check func(*testing.T)
	}{
		{"create", s.create},
		{"create all or none", s.allOrNone},
		{"remove", s.remove},
		{"close", s.close},
		{"unknown link", s.unknown},
		{"concurrent calls", s.concurrent},
		{"latency", s.latency},
		{"jitter", s.jitter},
		{"jitter at any rate", s.jitterRates},
		{"loss", s.loss},
		{"burst", s.burst},
		{"loss of super-packets", s.lossOfTCP},
		{"seed", s.seed},
		{"duplicate", s.duplicate},
		{"reorder", s.reorder},
		{"corrupt", s.corrupt},
		{"checksums", s.checksums},
		{"bandwidth", s.bandwidth},
		{"rate change", s.rateChange},
		{"queue", s.queue},
		{"down", s.down},
		{"set in flight", s.setInFlight},
		{"set is all or none", s.setAllOrNone},
		{"many links", s.many},
		{"counters", s.counters},
		{"counters of super-packets", s.countersOfTCP},
		{"tcp", s.tcp},
	} {
		t.Run(part.name, part.check)
	}
}

type suite struct {
	newEngine func(t *testing.T) link.Engine
	pace      time.Duration // stretches the time between packets
	Limits
}
