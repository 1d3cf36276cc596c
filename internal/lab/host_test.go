package lab

import (
	"testing"

	"skerry/test/hosttest"
)

// A node of a running lab passes the contract test of hosts.
func TestLabNodesPassHostContract(t *testing.T) {
	hosttest.Run(t, mustUp(t, config(t, "contract")).Hosts()[0])
}
