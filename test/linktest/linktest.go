// Package linktest is the contract of link.Engine as a test. Both engines run it:
//
//	func TestContract(t *testing.T) {
//		linktest.Run(t, func(t *testing.T) link.Engine { ... }, linktest.Limits{})
//	}
//
// An early packet fails on every machine, a late one only beyond Slack. Random effects are checked to six standard
// deviations.
package linktest

import (
	"os"
	"strconv"
	"testing"
	"time"

	"skerry/internal/link"
	"skerry/test/testkit"
)

// Tolerances are the documented deviations of an engine from the contract. The zero value is the full
// contract on a current machine.
type Tolerances struct {
	// Unseeded is the reason why random choices do not follow Spec.Seed.
	Unseeded string
	// JitterByPacket is the reason why each packet's delay is drawn independently. The mean delay then grows with the
	// packet rate, because the largest of several close delays holds for all of them.
	JitterByPacket string
	// HeaderCorruption is the reason why Corrupt may also hit headers.
	HeaderCorruption string
	// Slack is the permitted lateness of the quickest of many packets; 0 means 25 ms.
	Slack time.Duration
	// Early is the permitted earliness of the quickest of many packets, for an engine on two machines that estimates
	// the difference of their clocks.
	Early time.Duration
	// Rate is the permitted relative error of bandwidth; 0 means 0.5 %.
	Rate float64
}

// Slow is an environment variable: how many times slower this machine is than a current one. It widens Slack
// and Rate and stretches the time between packets.
const Slow = "SKERRY_TEST_SLOW"

// Run runs the contract test. It creates and closes an engine for each part.
func Run(t *testing.T, newEngine func(t *testing.T) link.Engine, limits Tolerances) {
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
	s := suite{newEngine: newEngine, Tolerances: limits, pace: time.Duration(pace)}
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
	Tolerances
}
