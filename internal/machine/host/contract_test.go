package host_test

import (
	"testing"

	"skerry/internal/machine/host"
	"skerry/test/hosttest"
)

func TestContract(t *testing.T) { hosttest.Run(t, host.NewTestNode(t)) }

// A container has its own network and shares everything else with its node.
func TestContractOfContainer(t *testing.T) {
	n, inside := host.NewTestNode(t), host.NewTestNode(t)
	hosttest.Run(t, n.Container(host.Space{Netns: inside.Netns(), Listen: "127.0.0.1", Addr: inside.Addr()}))
}
