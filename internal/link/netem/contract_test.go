package netem_test

import (
	"log/slog"
	"testing"

	"skerry/internal/link"
	"skerry/internal/link/linktest"
	"skerry/internal/link/netem"
	"skerry/internal/testkit"
)

// kernel is netem in the kernel that runs the test; TestNetemInVM brings one that
// has it.
var kernel = testkit.Feature{Name: "netem", Missing: func() string {
	if err := netem.Available(); err != nil {
		return err.Error()
	}
	return ""
}}

func TestContract(t *testing.T) {
	testkit.Need(t, testkit.Root, kernel)
	newEngine := func(t *testing.T) link.Engine {
		return netem.New(slog.New(slog.NewTextHandler(t.Output(), nil)))
	}
	linktest.Run(t, newEngine, linktest.Limits{
		Unseeded:         "netem takes a seed from Linux 6.6 on",
		JitterByPacket:   "netem draws a delay for each packet",
		HeaderCorruption: "netem flips bits of the whole frame",
	})
}
